package console

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/zsetd/zsetd/server/internal/base/replyjson"
)

// fail responds with a status and {"error": reason}.
func fail(w http.ResponseWriter, status int, reason string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(append(append([]byte(`{"error":`), replyjson.String(reason)...), "}\n"...))
}

// redirect responds that the browser should get a location, relative to that of the request:
// a program may mount the console below any path.
func redirect(w http.ResponseWriter, location string) {
	w.Header().Set("Location", location)
	w.WriteHeader(http.StatusSeeOther)
}

// quoted returns a value of a request for an error message, shortened.
func quoted(s string) string { return strconv.Quote(s[:min(len(s), 100)]) }

const (
	bodyGrace  = 10 * time.Second // time for a body, apart from its size
	bodyRate   = 16 << 10         // bytes a second that a body must arrive with after that
	writeTime  = time.Minute      // time without progress after which a client is cut
	writeChunk = 32 << 10         // bytes of one progress
)

// body reads the body of a request and ends it when it arrives slowly: a client that sends a
// byte now and then (slow loris) keeps no connection.
type body struct {
	io.ReadCloser
	control *http.ResponseController
	begin   time.Time
	n       int64
}

func newBody(w http.ResponseWriter, r *http.Request) *body {
	return &body{ReadCloser: r.Body, control: http.NewResponseController(w), begin: time.Now()}
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (n int, err error) {
	limit := bodyGrace + time.Duration(b.n)*time.Second/bodyRate
	b.control.SetReadDeadline(b.begin.Add(limit)) // not every ResponseWriter has deadlines
	n, err = b.ReadCloser.Read(p)
	b.n += int64(n)
	if err == io.EOF { // otherwise the deadline stays: net/http reads the rest of the body
		b.control.SetReadDeadline(time.Time{})
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = errors.New("the body arrives too slowly")
	}
	return n, err
}

// writer writes a response, and fails when the client takes none of it for writeTime.
type writer struct {
	w       io.Writer
	control *http.ResponseController
}

func newWriter(w http.ResponseWriter) *writer {
	return &writer{w, http.NewResponseController(w)}
}

// Write implements io.Writer.
func (w *writer) Write(p []byte) (n int, err error) {
	for len(p) > 0 {
		w.control.SetWriteDeadline(time.Now().Add(writeTime)) // not every ResponseWriter has deadlines
		m, err := w.w.Write(p[:min(len(p), writeChunk)])
		n += m
		if err != nil {
			return n, err
		}
		p = p[m:]
	}
	return n, nil
}
