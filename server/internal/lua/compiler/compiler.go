package compiler

import (
	"errors"
	"math"
	"runtime"

	"github.com/zsetd/zsetd/server/internal/lua"
)

// Compiler compiles sources, one after another: the memory for one is used again for the
// next. One goroutine at a time uses it.
type Compiler struct {
	// Fixed returns the value of a global variable, or of a field of the fixed value of in,
	// that never changes; nil if it may change or does not exist. The code contains that value
	// in place of a look-up. in is nil for a global variable. A nil Fixed stands for one that returns nil.
	Fixed func(in lua.Value, name string) lua.Value

	// Bound returns a function that does what the fixed value f does if its first argument is a given
	// string, and takes the arguments after it; nil if there is none. A call with that string in the
	// source calls it in place of f. It may be nil.
	Bound func(f lua.Value, first string) lua.Value

	busy       bool
	tree       tree
	generators []*generator // for nested functions
}

// tree holds the nodes of a source.
type tree struct {
	exprs  slab[expr]
	stmts  slab[stmt]
	locals slab[local]
	blocks slab[block]
}

func (t *tree) reset() {
	t.exprs.reset()
	t.stmts.reset()
	t.locals.reset()
	t.blocks.reset()
}

// ErrStopped is the error of a compilation that the stop function of [Compiler.Compile]
// has ended.
var ErrStopped = errors.New("the compilation was stopped")

// InternalError begins the message of an error that is a defect of the compiler.
const InternalError = "internal error: "

// meter calls stop for each token, and as often in each later pass.
type meter struct{ stop func() bool }

// spend panics with ErrStopped if the compilation must end.
func (m meter) spend() {
	if m.stop() {
		panic(ErrStopped)
	}
}

// Compile compiles a source; chunk is its name in messages. The error is [ErrStopped] or
// a message of Lua. stop is called for each token, and as often by each later pass; it
// may compile another source. depth is that of nested protected calls, which takes from
// the 200 levels that expressions and blocks may have. The time is linear in the source.
func (c *Compiler) Compile(src, chunk string, depth int, stop func() bool) (proto *lua.Proto, err error) {
	if len(src) > math.MaxInt32 { // see point
		return nil, syntaxError(chunk + ": source of more than 2 GB")
	}
	if c.busy { // stop compiles another source
		c = &Compiler{Fixed: c.Fixed, Bound: c.Bound}
	}
	c.busy = true
	defer func() {
		c.busy = false
		c.tree.reset()
		switch r := recover().(type) {
		case nil:
		case syntaxError:
			proto, err = nil, r
		case runtime.Error:
			proto, err = nil, syntaxError(chunk+": "+InternalError+r.Error())
		default:
			if r != ErrStopped {
				panic(r)
			}
			proto, err = nil, ErrStopped
		}
	}()
	m := meter{stop}
	p := &parser{scanner: scanner{chunk: chunk, src: src, line: 1}, meter: m, depth: depth, tree: &c.tree}
	f := p.parse()
	u := &unit{chunk: chunk, src: src, meter: m, Compiler: c}
	u.resolve(f)
	return u.generate(f), nil
}
