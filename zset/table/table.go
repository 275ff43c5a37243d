package table

import (
	"cmp"
	"hash/maphash"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
)

// Table maps strings to values. The zero value is empty and ready to use.
type Table[V any] struct {
	seed maphash.Seed
	m    map[string]*V
}

func (t *Table[V]) Len() int { return len(t.m) }

func (t *Table[V]) Get(key string) (v V, ok bool) {
	if p := t.m[key]; p != nil {
		return *p, true
	}
	return v, false
}
func (t *Table[V]) GetBytes(key []byte) (V, bool) { return t.Get(string(key)) }
func (t *Table[V]) Ref(key string) *V             { return t.m[key] }
func (t *Table[V]) RefBytes(key []byte) *V        { return t.m[string(key)] }
func (t *Table[V]) Set(key string, v V) (old V, replaced bool) {
	if p := t.m[key]; p != nil {
		old, *p = *p, v
		return old, true
	}
	if t.m == nil {
		t.m = map[string]*V{}
		t.seed = maphash.MakeSeed()
	}
	t.m[key] = &v
	return old, false
}
func (t *Table[V]) SetBytes(key []byte, v V) (old V, replaced bool) { return t.Set(string(key), v) }
func (t *Table[V]) Delete(key string) (old V, ok bool) {
	if p := t.m[key]; p != nil {
		delete(t.m, key)
		return *p, true
	}
	return old, false
}
func (t *Table[V]) DeleteBytes(key []byte) (old V, ok bool) { return t.Delete(string(key)) }
func (t *Table[V]) Clear()                                  { clear(t.m) }
func (t *Table[V]) Clone() *Table[V] {
	c := &Table[V]{seed: t.seed, m: map[string]*V{}}
	for k, v := range t.m {
		w := *v
		c.m[k] = &w
	}
	return c
}
func (t *Table[V]) All() iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for k, v := range t.m {
			if !yield(k, *v) {
				return
			}
		}
	}
}
func (t *Table[V]) Scan(cursor uint64, count int, yield func(key string, v V)) (next uint64) {
	if t.m == nil {
		return 0
	}
	keys := slices.Collect(maps.Keys(t.m))
	h := func(k string) uint64 { return maphash.String(t.seed, k) >> 12 }
	slices.SortFunc(keys, func(a, b string) int { return cmp.Compare(h(a), h(b)) })
	for i, k := range keys {
		if h(k) < cursor {
			continue
		}
		if count <= 0 && h(k) != h(keys[i-1]) {
			return h(k)
		}
		count--
		yield(k, *t.m[k])
	}
	return 0
}
func (t *Table[V]) Random(r *rand.Rand) (key string, v V, ok bool) {
	if len(t.m) == 0 {
		return
	}
	keys := slices.Sorted(maps.Keys(t.m))
	key = keys[r.IntN(len(keys))]
	return key, *t.m[key], true
}
func (t *Table[V]) Check() error { return nil }
func (t *Table[V]) Bytes() int   { return 0 }
