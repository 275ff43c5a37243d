package console

import (
	"fmt"
	"html"
	"net/http"

	"github.com/zsetd/zsetd/server"
)

// pages registers the routes of the page.
func (c *Console) pages(mux *http.ServeMux) {
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		if _, err := c.currentUser(r); err != nil {
			redirect(w, "login")
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, "<!DOCTYPE html><title>zsetd</title><p>%s</p>\n", html.EscapeString(server.Version()))
	})
}

// loginPage writes the form of a login with a message.
func (c *Console) loginPage(w http.ResponseWriter, _ *http.Request, status int, message string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	fmt.Fprintf(w, `<!DOCTYPE html><title>zsetd</title><p>%s</p><form method="post" action="login">`+
		`<input name="user" autocomplete="username"><input name="password" type="password" autocomplete="current-password"><button>Log in</button></form>`+"\n",
		html.EscapeString(message))
}
