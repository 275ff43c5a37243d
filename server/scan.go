package server

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/zsetd/zsetd/protocol"
)

// ErrNull is the error of [Scan] for a null in place of a value: of GET, if the key does not exist.
var ErrNull = errors.New("zsetd: the reply is null")

// Scan converts a reply of [Server.Do] to a Go type. It takes both results of a call, and returns the
// error of the call if there is one:
//
//	n, err := server.Scan[int](srv.Do(ctx, "ZCARD", "due"))
//	due, err := server.Scan[[]zset.Element](srv.Do(ctx, "ZRANGE", "due", 0, -1, "WITHSCORES"))
//	user, err := server.Scan[User](srv.Do(ctx, "HGETALL", "user:1"))
//
// A reply is converted as follows. Everything else is an error, as is a number that T cannot
// represent.
//
//	text         strings and byte slices, numbers and bools that it spells, types with UnmarshalBinary
//	integer      integers, floats, strings, bools (0 and 1)
//	float        floats, strings
//	bool         bools
//	array, set   slices; arrays and structs of as many elements or fields; maps of alternating keys and values
//	map          maps; structs, whose fields are named by their tag `redis:"name"`, or else as they are, in
//	             any case: names without a field, and fields without a name, are left out
//	null         nil pointers, slices, maps and interfaces; for other types the error is ErrNull
//
// A pointer stands for what it points to, and any for the reply as it is. O(n) for n values in the reply.
func Scan[T any](reply any, err error) (v T, _ error) {
	if err != nil {
		return v, err
	}
	if err := scan(reflect.ValueOf(&v).Elem(), reply); err != nil {
		var zero T
		return zero, err
	}
	return v, nil
}

// scan sets v to the converted reply.
func scan(v reflect.Value, reply any) error {
	if e, ok := reply.(protocol.ReplyError); ok {
		return e
	}
	switch k := v.Kind(); {
	case reply == nil:
		if k != reflect.Pointer && k != reflect.Interface && k != reflect.Slice && k != reflect.Map {
			return ErrNull
		}
		v.SetZero()
		return nil
	case k == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return scan(v.Elem(), reply)
	case k == reflect.Interface:
		if r := reflect.ValueOf(reply); r.Type().AssignableTo(v.Type()) {
			v.Set(r)
			return nil
		}
		return cannotScan(v, reply)
	}
	switch r := reply.(type) {
	case string:
		return scanText(v, r)
	case protocol.Status:
		return scanText(v, string(r))
	case protocol.BigNumber:
		return scanText(v, string(r))
	case int64:
		return scanText(v, strconv.FormatInt(r, 10))
	case float64:
		if v.CanFloat() {
			v.SetFloat(r)
			return nil
		}
		if v.Kind() == reflect.String {
			return scanText(v, string(protocol.AppendFloat(nil, r)))
		}
	case bool:
		if v.Kind() == reflect.Bool {
			v.SetBool(r)
			return nil
		}
	case []any:
		return scanList(v, r, reply)
	case protocol.Set:
		return scanList(v, r, reply)
	case protocol.Push:
		return scanList(v, r, reply)
	case protocol.Map:
		return scanMap(v, r)
	}
	return cannotScan(v, reply)
}

func cannotScan(v reflect.Value, reply any) error {
	return fmt.Errorf("zsetd: cannot convert a reply of type %T to %s", reply, v.Type())
}

func scanText(v reflect.Value, s string) (err error) {
	if u, ok := v.Addr().Interface().(encoding.BinaryUnmarshaler); ok {
		return u.UnmarshalBinary([]byte(s))
	}
	bits := 0
	if v.CanInt() || v.CanUint() || v.CanFloat() {
		bits = v.Type().Bits()
	}
	switch {
	case v.Kind() == reflect.String:
		v.SetString(s)
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8:
		v.SetBytes([]byte(s))
	case v.CanInt():
		var n int64
		n, err = strconv.ParseInt(s, 10, bits)
		v.SetInt(n)
	case v.CanUint():
		var n uint64
		n, err = strconv.ParseUint(s, 10, bits)
		v.SetUint(n)
	case v.CanFloat():
		var f float64
		f, err = strconv.ParseFloat(s, bits)
		v.SetFloat(f)
	case v.Kind() == reflect.Bool && (s == "0" || s == "1"):
		v.SetBool(s == "1")
	default:
		return cannotScan(v, s)
	}
	if err != nil {
		return fmt.Errorf("zsetd: cannot convert %.40q to %s: %w", s, v.Type(), errors.Unwrap(err))
	}
	return nil
}

func scanList(v reflect.Value, list []any, reply any) error {
	switch v.Kind() {
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), len(list), len(list)))
		return scanEach(list, v.Index)
	case reflect.Array:
		if v.Len() == len(list) {
			return scanEach(list, v.Index)
		}
	case reflect.Struct:
		if fields := exported(v.Type()); len(fields) == len(list) {
			return scanEach(list, func(i int) reflect.Value { return v.FieldByIndex(fields[i].Index) })
		}
	case reflect.Map:
		if len(list)%2 == 0 {
			pairs := make(protocol.Map, len(list)/2)
			for i := range pairs {
				pairs[i] = protocol.Pair{Key: list[2*i], Value: list[2*i+1]}
			}
			return scanMap(v, pairs)
		}
	}
	return fmt.Errorf("%w: it has %d elements", cannotScan(v, reply), len(list))
}

// scanEach converts the elements of a list.
func scanEach(list []any, to func(i int) reflect.Value) error {
	for i, e := range list {
		if err := scan(to(i), e); err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
	}
	return nil
}

func scanMap(v reflect.Value, pairs protocol.Map) error {
	t := v.Type()
	switch v.Kind() {
	case reflect.Map:
		v.Set(reflect.MakeMapWithSize(t, len(pairs)))
		for _, p := range pairs {
			key, value := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
			if err := scan(key, p.Key); err != nil {
				return fmt.Errorf("a key of the map: %w", err)
			}
			if !key.Comparable() {
				return fmt.Errorf("zsetd: cannot convert a reply of type %T to a key of %s", p.Key, t)
			}
			if err := scan(value, p.Value); err != nil {
				return fmt.Errorf("the value of %v: %w", p.Key, err)
			}
			v.SetMapIndex(key, value)
		}
		return nil
	case reflect.Struct:
		fields := map[string][]int{}
		for _, f := range exported(t) {
			name, _, _ := strings.Cut(f.Tag.Get("redis"), ",")
			if name == "" {
				name = strings.ToLower(f.Name)
			}
			fields[name] = f.Index
		}
		for _, p := range pairs {
			name := fmt.Sprint(p.Key)
			index, ok := fields[name]
			if !ok {
				index, ok = fields[strings.ToLower(name)]
			}
			if !ok {
				continue
			}
			if err := scan(v.FieldByIndex(index), p.Value); err != nil {
				return fmt.Errorf("field %s: %w", name, err)
			}
		}
		return nil
	}
	return cannotScan(v, pairs)
}

// exported returns the fields of a struct that other packages see, without those of the tag "-".
func exported(t reflect.Type) (fields []reflect.StructField) {
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() && f.Tag.Get("redis") != "-" {
			fields = append(fields, f)
		}
	}
	return fields
}
