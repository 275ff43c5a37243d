package console

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"

	"github.com/a-h/templ"
	"github.com/zsetd/zsetd/server"
)

// assets are the scripts, styles and images that the pages load. The pages are in page.templ.
// They are compiled: html/template would keep all exported methods of the program, 11 MB.
//
//go:generate go run github.com/a-h/templ/cmd/templ@v0.3.977 generate -f page.templ
//go:embed assets
var assets embed.FS

// view is a part of the page, with an address of its own.
type view struct{ Name, Path, Label string }

func views() []view {
	return []view{{"overview", "./", "Overview"}, {"keys", "keys", "Keys"}, {"messages", "messages", "Events"}, {"server", "server", "Server"}, {"prompt", "prompt", "Prompt"}}
}

// shell are the values of shellPage (page.templ).
type shell struct {
	Title, View, User, Version string
	Name, Colour               string // of the server
	Views                      []view
	Session                    bool // the user can log out
}

// pages registers the routes of the page. All addresses in it are relative, so that a program can
// mount the console below any path.
func (c *Console) pages(mux *http.ServeMux) {
	for _, v := range views() {
		route := "GET /" + v.Path
		if v.Path == "./" {
			route = "GET /{$}"
		}
		mux.HandleFunc(route, func(w http.ResponseWriter, r *http.Request) {
			user, err := c.currentUser(r)
			if err == errNoAuth || err == errWrong {
				redirect(w, "login")
				return
			}
			if err != nil {
				c.refuse(w, r, err)
				return
			}
			who, _ := c.identify(r)
			name, colour := c.face(r)
			c.render(w, r, http.StatusOK, shellPage(shell{v.Label, v.Name, user, version(), name, colour, views(), who.session != ""}))
		})
	}
	list, err := fs.ReadDir(assets, "assets")
	if err != nil {
		panic("BUG: the embedded files: " + err.Error())
	}
	for _, entry := range list {
		kind := contentType(entry.Name())
		content, err := assets.ReadFile("assets/" + entry.Name())
		if err != nil {
			panic("BUG: the embedded files: " + err.Error())
		}
		content = compact(content)
		sum := sha256.Sum256(content)
		tag := `"` + hex.EncodeToString(sum[:12]) + `"`
		mux.HandleFunc("GET /assets/"+entry.Name(), func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "no-cache") // the browser asks whether its copy is current
			w.Header().Set("ETag", tag)
			if r.Header.Get("If-None-Match") == tag {
				w.WriteHeader(http.StatusNotModified)
				return
			}
			w.Header().Set("Content-Type", kind)
			w.Write(content)
		})
	}
}

// face returns the name and the colour of the server on the page.
func (c *Console) face(r *http.Request) (name, colour string) {
	ctx, cancel := context.WithTimeout(r.Context(), limitTime) // commands wait while data are loaded
	defer cancel()
	name, _ = c.parameter(ctx, "http-title")
	colour, _ = c.parameter(ctx, "http-colour")
	return cmp.Or(name, "zsetd"), colour
}

// compact returns a script or a style sheet without its indentation and the lines that are a
// comment. No string of the assets goes over several lines.
func compact(content []byte) (b []byte) {
	for line := range bytes.Lines(content) {
		if line = bytes.TrimLeft(line, "\t"); len(line) > 1 && !bytes.HasPrefix(line, []byte("//")) {
			b = append(b, line...)
		}
	}
	return b
}

// version returns the version of the server, without that of Redis and of Go.
func version() string {
	for field := range strings.FieldsSeq(server.Version()) {
		if v, ok := strings.CutPrefix(field, "zsetd="); ok && v != "unknown" {
			return v
		}
	}
	return ""
}

// contentType returns the content type of a file of the page. The types do not depend on the
// files of the machine.
func contentType(name string) string {
	switch path.Ext(name) {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	}
	return ""
}

// render writes a page.
func (c *Console) render(w http.ResponseWriter, r *http.Request, status int, page templ.Component) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	page.Render(r.Context(), w) // an error is that of the connection
}

// refuseLogin writes the form of a login with a message.
func (c *Console) refuseLogin(w http.ResponseWriter, r *http.Request, status int, message string) {
	name, colour := c.face(r)
	c.render(w, r, status, loginPage(name, colour, message, cmp.Or(r.PostForm.Get("user"), defaultUser)))
}
