package console_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server/console"
)

func TestTransaction(t *testing.T) {
	t.Parallel()
	srv, c := run(t, console.Options{}, nil)
	const (
		conflict = `{"condition":%d,"error":"CONFLICT the reply of a condition is another value: nothing was changed","now":%s}`
		form     = `{"error":"ERR the body is no object {\"watch\": [key, …], \"if\": [[command, value], …], \"then\": [command, …]}"}`
	)
	for _, one := range []struct {
		body   string
		status int
		want   string
	}{
		{`{"watch":["k"],"if":[[["GET","k"],null]],"then":[["SET","k","1"]]}`, 200, `[{"result":"OK"}]`},
		{`{"watch":["k"],"if":[[["GET","k"],null]],"then":[["SET","k","2"]]}`, 409, fmt.Sprintf(conflict, 0, `"1"`)},
		{` {"watch":["k"],"if":[[["GET","k"],1],[["TYPE","k"],"string"]],"then":[["INCR","k"],["LPUSH","k","x"],["GET","k"]]}`, 200,
			`[{"result":2},{"error":"WRONGTYPE Operation against a key holding the wrong kind of value"},{"result":"2"}]`},
		{`{"watch":["k"],"if":[[["GET","k"],"2"],[["TYPE","k"],"list"]],"then":[["DEL","k"]]}`, 409, fmt.Sprintf(conflict, 1, `"string"`)},
		{`{"watch":["k"],"if":[[["LLEN","k"],"2"]],"then":[["DEL","k"]]}`, 409,
			fmt.Sprintf(conflict, 0, `{"error":"WRONGTYPE Operation against a key holding the wrong kind of value"}`)},
		{`{"watch":["b"],"if":[[["EXISTS","b"],0]],"then":[["SET","b",{"base64":"AP8N"}]]}`, 200, `[{"result":"OK"}]`},
		{`{"watch":["b"],"if":[[["GET","b"],{"base64":"AP8K"}]],"then":[["DEL","b"]]}`, 409, fmt.Sprintf(conflict, 0, `{"base64":"AP8N"}`)},
		{`{"watch":["b"],"if":[[["GET","b"],{"base64":"AP8N"}]],"then":[["APPEND","b","x"]]}`, 200, `[{"result":4}]`},
		{`{"watch":["z"],"if":[[["ZSCORE","z","m"],null]],"then":[["ZADD","z","-0","m",0.1,"n","inf","o"]]}`, 200, `[{"result":3}]`},
		{`{"watch":["z"],"if":[[["ZSCORE","z","n"],0.1],[["ZSCORE","z","n"],"1e-1"],[["ZSCORE","z","o"],"inf"]],"then":[["ZCARD","z"]]}`, 200, `[{"result":3}]`},
		{`{"watch":["z"],"if":[[["ZSCORE","z","n"],"x"]],"then":[["ZCARD","z"]]}`, 409, fmt.Sprintf(conflict, 0, `0.1`)},
		{`{"watch":["z"],"if":[[["ZSCORE","z","o"],0.1]],"then":[["ZCARD","z"]]}`, 409, fmt.Sprintf(conflict, 0, `"+Inf"`)},
		{`{"watch":["l"],"if":[[["LRANGE","l",0,-1],[]]],"then":[["RPUSH","l","a","b"]]}`, 200, `[{"result":2}]`},
		{`{"watch":["l"],"if":[[["LRANGE","l",0,-1],["a"]]],"then":[["DEL","l"]]}`, 409, fmt.Sprintf(conflict, 0, `["a","b"]`)},
		{`{"watch":["l"],"if":[[["LRANGE","l",0,-1],["a","c"]]],"then":[["DEL","l"]]}`, 409, fmt.Sprintf(conflict, 0, `["a","b"]`)},
		{`{"watch":["l"],"if":[[["LRANGE","l",0,-1],"a"]],"then":[["DEL","l"]]}`, 409, fmt.Sprintf(conflict, 0, `["a","b"]`)},
		{`{"watch":["l"],"if":[[["LINDEX","l",0],["a"]]],"then":[["DEL","l"]]}`, 409, fmt.Sprintf(conflict, 0, `"a"`)},
		{`{"watch":["l"],"if":[[["LLEN","l"],["2"]]],"then":[["DEL","l"]]}`, 409, fmt.Sprintf(conflict, 0, `2`)},
		{`{"watch":["l"],"if":[[["LPOS","l","x"],""]],"then":[["DEL","l"]]}`, 409, fmt.Sprintf(conflict, 0, `null`)},
		{`{"watch":["l"],"if":[[["LLEN","l"],2]],"then":[["NOSUCH"]]}`, 400, `{"error":"ERR unknown command 'NOSUCH'"}`},
		{`{"watch":["l"],"if":[[["NOSUCH"],2]],"then":[["DEL","l"]]}`, 400, `{"error":"ERR unknown command 'NOSUCH'"}`},
		{`{"watch":["l"],"if":[[["LLEN","l"],2]],"then":[["DEL","l"],["exec"]]}`, 400, `{"error":"ERR EXEC is not for transactions on conditions"}`},
		{`{"watch":["l"],"if":[[["MULTI"],"OK"]],"then":[["DEL","l"]]}`, 400, `{"error":"ERR MULTI is not for transactions on conditions"}`},
		{`{"watch":["l"],"if":[[["LLEN","l"],2]],"then":[["SUBSCRIBE","l"]]}`, 400, `{"error":"ERR SUBSCRIBE takes over its connection: GET /events streams messages and events"}`},
		{`{"watch":["l"],"if":[[["LLEN","l"],2]],"then":[]}`, 400, form},
		{`{"watch":["l"],"if":[],"then":[["DEL","l"]]}`, 400, form},
		{`{"watch":[],"if":[[["LLEN","l"],2]],"then":[["DEL","l"]]}`, 400, form},
		{`{"watch":["l"],"if":[[["LLEN","l"]]],"then":[["DEL","l"]]}`, 400, form},
		{`{"watch":["l"],"if":[[["LLEN","l"],[[[[[[[[1]]]]]]]]]],"then":[["DEL","l"]]}`, 400, form},
		{`{"watch":["l"],"if":[[["LLEN","l"],2]],"then":[["DEL","l"]],"else":[]}`, 400, form},
		{`{"watch":["l"],"if":[[["LLEN","l"],2]],"then":[["DEL","l"]]} x`, 400, form},
		{`{"watch":["l"],"if":[[["LLEN","l"],true]],"then":[["DEL","l"]]}`, 400, `{"error":"ERR the body is no JSON array of strings, nor an array of such arrays"}`},
		{`{"watch":["l"],"if":[[["LLEN","l"],2]],"then":[[]]}`, 400, `{"error":"ERR empty command"}`},
		{`{"watch":["l"],"if":[[["LLEN","l"],2]],"then":[["DEL","` + "\xff" + `"]]}`, 400, `{"error":"ERR the body is no UTF-8: send other bytes as {\"base64\": \"…\"}"}`},
		{`{"watch":["l"],"if":[[["LRANGE","l",0,-1],["a","b"]]],"then":[["DEL","l"]]}`, 200, `[{"result":1}]`},
	} {
		status, got := serve(c, request(t, "POST", "/command", one.body))
		if status != one.status || got != one.want {
			t.Errorf("%.200s: %d %s, want %d %s", one.body, status, got, one.status, one.want)
		}
	}

	// In another database, with types.
	if status, got := serve(c, request(t, "POST", "/command?db=2&types=1", `{"watch":["k"],"if":[[["GET","k"],null]],"then":[["SET","k","1"]]}`)); status != 200 || got != `[{"result":{"type":"simple","value":"OK"}}]` {
		t.Errorf("with db and types: %d %s", status, got)
	}
	// A user needs the permission for each step.
	for _, denied := range []string{"watch", "get", "multi", "set", "exec"} {
		srv.Must("ACL", "SETUSER", "limited", "reset", "on", "nopass", "allkeys", "+@all", "-"+denied)
		r := request(t, "POST", "/command", `{"watch":["k"],"if":[[["GET","k"],"2"]],"then":[["SET","k","changed"]]}`)
		r.SetBasicAuth("limited", "x")
		if status, got := serve(c, r); status != 400 || strings.Replace(got, "EXECABORT Transaction discarded because of: ", "", 1) != `{"error":"NOPERM User limited has no permissions to run the '`+denied+`' command"}` {
			t.Errorf("without %s: %d %s", denied, status, got)
		}
	}
	if got := srv.Must("GET", "k"); got != "2" {
		t.Errorf("k is %v", got)
	}
}

// TestTransactionWatches runs increments on a condition beside those of another client: none is
// lost.
func TestTransactionWatches(t *testing.T) {
	t.Parallel()
	srv, c := run(t, console.Options{}, nil)
	srv.Must("SET", "n", 0)
	const each = 200
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range each {
			srv.Must("INCR", "n")
		}
	}()
	for range each {
		for status := 0; status != 200; {
			_, now := serve(c, request(t, "POST", "/command", `["GET","n"]`))
			var n int
			fmt.Sscanf(now, `{"result":"%d"}`, &n)
			var got string
			status, got = serve(c, request(t, "POST", "/command", fmt.Sprintf(`{"watch":["n"],"if":[[["GET","n"],%d]],"then":[["SET","n",%d]]}`, n, n+1)))
			if status != 200 && status != 409 {
				t.Fatalf("%d %s", status, got)
			}
		}
	}
	<-done
	if got := srv.Must("GET", "n"); got != fmt.Sprint(2*each) {
		t.Errorf("n is %v after %d increments", got, 2*each)
	}
}

// TestTransactionOfBusyKey tries again when a key changes and its condition holds.
func TestTransactionOfBusyKey(t *testing.T) {
	t.Parallel()
	srv, c := run(t, console.Options{}, nil)
	srv.Must("RPUSH", "l", "a")
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				srv.Must("RPUSH", "l", "x")
				srv.Must("LTRIM", "l", 0, 10)
			}
		}
	}()
	for range 20 {
		if status, got := serve(c, request(t, "POST", "/command", `{"watch":["l"],"if":[[["LINDEX","l",0],"a"]],"then":[["LSET","l",0,"a"]]}`)); status != 200 && got != `{"error":"ERR the keys change all the time: nothing was changed"}` {
			t.Errorf("%d %s", status, got)
		}
	}
	close(stop)
	<-done
}
