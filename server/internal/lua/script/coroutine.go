package script

import "github.com/zsetd/zsetd/server/internal/lua"

// coroutineLibrary is section 5.2 of the manual of Lua 5.1.
func (st *State) coroutineLibrary() *lua.Table {
	t := st.library(
		entry{"create", func(c *call) { c.push(c.newCoroutine().Value()) }},
		entry{"resume", func(c *call) {
			if co := c.coroutine(1); co != nil {
				results, err := c.vm.Resume(co, c.args.Slice(2)...)
				if !c.protected(results, err) && c.err == nil {
					c.push(err.Value)
				}
			}
		}},
		entry{"running", func(c *call) { c.push(c.vm.Running().Value()) }},
		entry{"status", func(c *call) {
			if co := c.coroutine(1); co != nil {
				c.push(lua.Text(c.vm.Status(co)))
			}
		}},
		entry{"wrap", func(c *call) {
			co := c.newCoroutine()
			c.push(c.State.function(func(c *call) { c.wrapped(co) }))
		}},
	)
	t.SetText(nil, "yield", lua.NewFunction(func(vm *lua.Machine, a lua.Args) (int, *lua.Error) { return vm.Yield(a) }).Value())
	return t
}

func (c *call) newCoroutine() *lua.Coroutine {
	f := c.at(1).Function()
	if f == nil || f.Proto == nil {
		c.argError(1, "Lua function expected")
		return nil
	}
	return c.vm.NewCoroutine(f)
}

func (c *call) coroutine(n int) *lua.Coroutine {
	co := c.at(n).Coroutine()
	if co == nil {
		c.argError(n, "coroutine expected")
	}
	return co
}

// wrapped is the function that wrap returns.
func (c *call) wrapped(co *lua.Coroutine) {
	results, err := c.vm.Resume(co, c.args.Slice(1)...)
	switch {
	case err == nil:
		c.results = append(c.results, results...)
	case err.Fatal:
		c.fail(err)
	default:
		v := err.Value
		if text, ok := v.Str(); ok {
			v = lua.Text(c.vm.Where(1) + text)
		}
		c.fail(c.vm.Throw(v))
	}
}
