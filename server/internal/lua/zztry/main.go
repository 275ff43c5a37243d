package main

import (
	"bufio"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/zsetd/zsetd/server/internal/lua"
	"github.com/zsetd/zsetd/server/internal/lua/script"
)

func show(v lua.Value) {
	if t := v.Table(); t != nil {
		for i := 1; ; i++ {
			e := t.GetInt(i)
			if e.IsNil() {
				return
			}
			show(e)
		}
	}
	if f, ok := v.Number(); ok {
		fmt.Println(int64(f))
		return
	}
	if v == lua.True {
		fmt.Println("1")
	} else if v == lua.False || v.IsNil() {
		fmt.Println("None")
	} else {
		fmt.Println(lua.Display(v))
	}
}

func cpu() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func main() {
	st := script.New()
	st.Running = true
	st.Seal(lua.NewTable(0, 0), lua.NewTable(0, 0), true)
	if len(os.Args) > 2 && os.Args[1] == "bench" {
		f, err := st.Compile(os.Args[2], "user_script")
		if err != nil {
			fmt.Println(err)
			return
		}
		best := time.Hour
		for range 20 {
			n := 200
			c := cpu()
			for range n {
				st.Call(f)
			}
			best = min(best, (cpu()-c)/time.Duration(n))
		}
		fmt.Println(best)
		return
	}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		fmt.Println("> " + in.Text())
		f, err := st.Compile(in.Text(), "user_script")
		if err != nil {
			fmt.Println(err)
			continue
		}
		v, failed := st.Call(f)
		if failed != nil {
			fmt.Println("ERR", lua.Display(failed.Value))
			continue
		}
		show(v)
	}
}
