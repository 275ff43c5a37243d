package console_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/console"
)

func ExampleNew() {
	srv, err := server.New(server.Options{})
	if err != nil {
		panic(err)
	}
	defer srv.Close()
	c, err := console.New(srv, console.Options{})
	if err != nil {
		panic(err)
	}
	defer c.Close()
	web := httptest.NewServer(c) // a program has an http.Server, or calls c.Serve
	defer web.Close()

	res, err := http.Post(web.URL+"/command", "application/json", strings.NewReader(`[["ZADD","due",2,"b",1,"a"],["ZRANGE","due",0,-1]]`))
	if err != nil {
		panic(err)
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(res.Body)
	fmt.Print(string(b))
	// Output: [{"result":2},{"result":["a","b"]}]
}
