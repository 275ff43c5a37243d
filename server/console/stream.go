package console

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/base/replyjson"
)

const (
	heartbeat   = 25 * time.Second      // longest silence of a stream
	viewerTime  = 10 * time.Second      // time for a write to a viewer
	feedBytes   = 4 << 20               // bytes that a viewer may be behind, at least
	feedKeep    = 15 * time.Second      // time after which a silent feed drops what it keeps
	minPause    = 10 * time.Millisecond // shortest interval between wakes of the viewers of a feed
	maxPause    = 100 * time.Millisecond
	viewerPause = 30 * time.Microsecond  // added to the interval for each viewer
	limitTime   = 100 * time.Millisecond // time for an answer about the limits
	reconnectMs = "2000"                 // pause of a browser before it connects again
)

// errSlowViewer ends the stream of a viewer that is behind by more than feedBytes.
var errSlowViewer = errors.New("the stream has ended: messages arrive faster than they are read")

// stream is a response with Server-Sent Events, as in the section of that name of the HTML
// standard. It takes over the connection of a request of HTTP/1.1: while it is silent it has
// one goroutine, which notices the end of the client, and no buffers. Events are written by a
// goroutine that exists as long as there are some.
type stream struct {
	c       *Console
	out     streamWriter
	taken   bool          // out is the connection of the request
	arrived chan struct{} // of capacity 1: notify was called; may be nil
	done    chan struct{} // closed when the stream has ended

	// take returns the next events, none if there are none, for how long the stream wants no
	// further ones, and the reason for its end. The bytes must not be changed.
	take  func() (events []byte, pause time.Duration, err error)
	leave []func() // ends what take reads from, and the count of the stream

	mu      sync.Mutex
	started bool // events may be written
	running bool // a goroutine writes, or timer will start one
	again   bool // notify was called meanwhile
	ended   bool
	ending  error       // ends the stream, as an error of take does
	silent  bool        // a comment line is due
	timer   *time.Timer // of a pause
	written time.Time   // when write was called last
}

// streamWriter is where a stream writes: a connection, or a response.
type streamWriter interface {
	io.WriteCloser
	SetWriteDeadline(time.Time) error
}

// responseWriter is a response as the streamWriter of a stream.
type responseWriter struct {
	http.ResponseWriter
	control *http.ResponseController
}

func (w responseWriter) Write(b []byte) (int, error) {
	n, err := w.ResponseWriter.Write(b)
	return n, errors.Join(err, w.control.Flush())
}

// SetWriteDeadline implements streamWriter. Not every ResponseWriter has deadlines.
func (w responseWriter) SetWriteDeadline(t time.Time) error {
	w.control.SetWriteDeadline(t)
	return nil
}

// Close implements io.Closer. The handler ends the response.
func (w responseWriter) Close() error { return nil }

// newViewer returns a viewer with a stream, or responds that the user or the address has too many
// and returns nil. The caller calls serve of the stream, or abandon.
func (c *Console) newViewer(w http.ResponseWriter, r *http.Request, who identity) *viewer {
	leave, err := c.admitStream(r, who)
	if err != nil {
		c.refuse(w, r, err)
		return nil
	}
	v := new(viewer)
	v.s = &stream{c: c, done: make(chan struct{}), take: v.take, leave: []func(){leave, func() { c.leave(v) }}}
	return v
}

// abandon ends a stream that is not served, and does nothing to one that is.
func (s *stream) abandon() {
	s.mu.Lock()
	served := s.started
	s.ended = s.ended || !served
	s.mu.Unlock() // a feed calls notify with its lock held, which leave wants
	if served {
		return
	}
	for _, leave := range s.leave {
		leave()
	}
	if s.taken {
		s.out.Close()
	}
}

// begin begins the response.
func (s *stream) begin(w http.ResponseWriter, r *http.Request) error {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // for proxies that collect a response otherwise
	control := http.NewResponseController(w)
	s.out = responseWriter{w, control}
	var head bytes.Buffer
	if r.ProtoMajor == 1 && r.Method == http.MethodGet {
		if nc, _, err := control.Hijack(); err == nil {
			s.out, s.taken = nc, true
			head.WriteString("HTTP/1.1 200 OK\r\nConnection: close\r\nDate: " + time.Now().UTC().Format(http.TimeFormat) + "\r\n")
			h.Write(&head)
			head.WriteString("\r\n")
		}
	}
	head.WriteString("retry: " + reconnectMs + "\n\n")
	return s.write(head.Bytes())
}

// write sends complete events at once.
func (s *stream) write(b []byte) error {
	now := time.Now()
	s.mu.Lock()
	s.written, s.silent = now, false
	s.mu.Unlock()
	s.out.SetWriteDeadline(now.Add(viewerTime))
	_, err := s.out.Write(b)
	return err
}

// serve writes events until the client, the stream or the console ends. It returns at once if
// the stream has the connection.
func (s *stream) serve(r *http.Request) {
	s.c.mu.Lock()
	closed := s.c.closed
	if !closed {
		s.c.served[s] = struct{}{}
		s.c.work.Add(1)
		if s.taken {
			s.c.work.Go(s.watch)
		}
		s.mu.Lock()
		s.started = true
		s.mu.Unlock()
	}
	s.c.mu.Unlock()
	if closed {
		return // the caller abandons it
	}
	s.notify()
	if s.taken {
		return
	}
	select {
	case <-r.Context().Done():
		s.stop()
	case <-s.done:
	}
	<-s.done
}

// maxViewerInput is the number of bytes that a client of a stream may send, which are dropped.
const maxViewerInput = 4 << 10

// watch waits until the client has closed its connection.
func (s *stream) watch() {
	b := make([]byte, 64)
	for left := maxViewerInput; left > 0; {
		n, err := s.out.(net.Conn).Read(b)
		if left -= n; err != nil {
			break
		}
	}
	s.stop()
}

// notify makes the stream write the events that there are.
func (s *stream) notify() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.arrived != nil {
		signal(s.arrived)
	}
	switch {
	case s.ended:
	case s.running || !s.started:
		s.again = true
	default:
		s.running = true
		go s.run()
	}
}

// beat makes the stream write a comment line if it has written nothing for the time of a
// heartbeat.
func (s *stream) beat(now time.Time) {
	s.mu.Lock()
	silent := s.started && now.Sub(s.written) >= heartbeat
	s.silent = s.silent || silent
	s.mu.Unlock()
	if silent {
		s.notify()
	}
}

// end writes a last event with the reason, and ends the stream.
func (s *stream) end(reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || s.ending != nil {
		return
	}
	s.ending = reason
	switch {
	case !s.started:
	case !s.running || s.timer != nil && s.timer.Stop():
		s.running = true
		go s.run()
	default:
		s.again = true
	}
}

// next returns the next events, as take does.
func (s *stream) next() (events []byte, pause time.Duration, err error) {
	s.mu.Lock()
	err = s.ending
	s.mu.Unlock()
	if err != nil {
		return nil, 0, err
	}
	return s.take()
}

// run writes the events that there are, and ends the stream when that is over.
func (s *stream) run() {
	for {
		events, pause, err := s.next()
		switch {
		case err != nil:
			s.write(fmt.Appendf(nil, "event: end\ndata: {\"error\":%s,\"reason\":%q}\n\n", replyjson.String(err.Error()), endReason(err)))
			s.mu.Lock()
			s.ended = true
			s.mu.Unlock()
		case len(events) > 0:
			err = s.write(events)
		}
		s.mu.Lock()
		if err == nil && len(events) == 0 && s.silent && !s.ended {
			s.mu.Unlock()
			err = s.write([]byte(": \n\n"))
			s.mu.Lock()
		}
		s.ended = s.ended || err != nil
		switch {
		case s.ended:
			s.mu.Unlock()
			s.finish()
			return
		case pause > 0 && s.ending == nil:
			s.timer = time.AfterFunc(pause, s.run)
			s.mu.Unlock()
			return
		case len(events) == 0 && !s.again:
			s.running = false
			s.mu.Unlock()
			return
		}
		s.again = false
		s.mu.Unlock()
	}
}

// stop ends the stream.
func (s *stream) stop() {
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return
	}
	s.ended = true
	finish := !s.running || s.timer != nil && s.timer.Stop()
	s.mu.Unlock()
	s.out.Close() // ends a write
	if finish {
		s.finish()
	}
}

// finish frees what an ended stream has. It is called once, by the last goroutine that writes.
func (s *stream) finish() {
	s.out.Close()
	for _, leave := range s.leave {
		leave()
	}
	s.c.mu.Lock()
	delete(s.c.served, s)
	s.c.mu.Unlock()
	close(s.done)
	s.c.work.Done()
}

// feed is a log of events in memory that any number of viewers follow. Its bytes are written
// once and shared; a viewer has a position only.
type feed struct {
	key     feedKey
	started chan struct{} // closed when the feed follows its source, or has failed
	stop    func()        // ends the source

	interested int // viewers that follow it or are about to; under the lock of the console

	mu      sync.Mutex
	log     []byte
	base    int64 // position of log[0]
	lastID  string
	err     error // why it has ended
	viewers map[*viewer]struct{}
	added   time.Time // of the last event
	held    *message  // an event of a key that waits for its members; under the lock of the hub
	reply   string    // of a query, the newest; base counts them
	woken   time.Time
	waking  bool // a timer will wake the viewers
}

// viewer is one stream that follows feeds.
type viewer struct {
	s     *stream
	feeds []*feed
	at    []int64 // position in each feed
}

// newFeed returns a feed without a source.
func newFeed(key feedKey, stop func()) *feed {
	return &feed{key: key, started: make(chan struct{}), stop: stop, viewers: map[*viewer]struct{}{}}
}

// pause returns the shortest interval between wakes of n viewers. Each wake is a write to each
// viewer, so that many of them get more events in a write.
func pause(n int) time.Duration { return min(minPause+time.Duration(n)*viewerPause, maxPause) }

// add appends an event, and wakes the viewers: at once, or when their pause has passed since
// they were woken last.
func (f *feed) add(event []byte, id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if now.Sub(f.added) > feedKeep {
		f.base += int64(len(f.log))
		f.log = nil
	}
	if len(f.log)+len(event) > 2*feedBytes {
		drop := max(0, len(f.log)-feedBytes)
		f.base += int64(drop)
		f.log = append(make([]byte, 0, len(f.log)-drop+len(event)), f.log[drop:]...)
	}
	f.added = now
	f.log = append(f.log, event...)
	if id != "" {
		f.lastID = id
	}
	f.wakeSoon(now)
}

// wakeSoon wakes the viewers: at once, or when their pause has passed since they were woken last.
// The lock is held.
func (f *feed) wakeSoon(now time.Time) {
	switch left := pause(len(f.viewers)) - now.Sub(f.woken); {
	case f.waking:
	case left <= 0:
		f.wakeAll(now)
	default:
		f.waking = true
		time.AfterFunc(left, func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.waking = false
			f.wakeAll(time.Now())
		})
	}
}

// wakeAll wakes the viewers. The lock is held.
func (f *feed) wakeAll(now time.Time) {
	f.woken = now
	for v := range f.viewers {
		v.notify()
	}
}

func (v *viewer) notify() { v.s.notify() }

// signal makes a channel of capacity 1 ready.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// end ends the feed with an error, for viewers that have read all events.
func (f *feed) end(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = err
	}
	f.wakeAll(time.Now())
}

// follow makes v follow f from now on. The function before, if any, is called at that instant.
func (v *viewer) follow(f *feed, before func(*feed)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if before != nil {
		before(f)
	}
	f.viewers[v] = struct{}{}
	at := f.base + int64(len(f.log))
	if f.key.kind == ofQuery {
		at = 0 // v has no reply yet
	}
	v.feeds, v.at = append(v.feeds, f), append(v.at, at)
}

// leave makes v follow nothing.
func (v *viewer) leave() {
	for _, f := range v.feeds {
		f.mu.Lock()
		delete(f.viewers, v)
		f.mu.Unlock()
	}
}

// next returns the events of the i-th feed that v has not got. The bytes must not be changed.
func (v *viewer) next(i int) ([]byte, error) {
	f := v.feeds[i]
	f.mu.Lock()
	defer f.mu.Unlock()
	from := v.at[i] - f.base
	if from < 0 {
		return nil, errSlowViewer
	}
	events := f.log[from:len(f.log):len(f.log)]
	v.at[i] = f.base + int64(len(f.log))
	if len(events) == 0 {
		return nil, f.err
	}
	return events, nil
}

// take is that of its stream.
func (v *viewer) take() (events []byte, pause time.Duration, err error) {
	for i := range v.feeds {
		if events, err = v.next(i); err != nil || len(events) > 0 {
			return events, 0, err
		}
	}
	return nil, 0, nil
}

// limitError is the error of a stream above a limit by parameter.
type limitError string

func (e limitError) Error() string { return string(e) }

// admitStream counts a stream against maxclients, and those of its address and its user against
// their limits. The caller calls leave when it has ended.
func (c *Console) admitStream(r *http.Request, who identity) (leave func(), err error) {
	limits := c.askLimits(r.Context())
	address, user := "from "+networkOf(r.RemoteAddr), "of "+who.name // no user has the name of an address
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case int64(c.streams) >= limits.clients:
		return nil, errCapacity
	case limits.perAddress > 0 && int64(c.counts[address]) >= limits.perAddress:
		return nil, limitError(fmt.Sprintf("ERR too many streams to this address: http-streams-per-address is %d", limits.perAddress))
	case limits.perUser > 0 && int64(c.counts[user]) >= limits.perUser:
		return nil, limitError(fmt.Sprintf("ERR too many streams of this user: http-streams-per-user is %d", limits.perUser))
	}
	c.streams++
	c.counts[address]++
	c.counts[user]++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.streams--
		for _, name := range []string{address, user} {
			if c.counts[name]--; c.counts[name] == 0 {
				delete(c.counts, name)
			}
		}
	}, nil
}

// streamLimits are the parameters that bound the streams; 0 for no limit of an address or a user.
type streamLimits struct{ clients, perAddress, perUser int64 }

// askLimits returns the limits, or those that it returned last if the server does not answer.
func (c *Console) askLimits(ctx context.Context) streamLimits {
	ctx, cancel := context.WithTimeout(ctx, limitTime) // commands wait while data are loaded
	defer cancel()
	reply, err := c.ask(ctx, "CONFIG", "GET", "maxclients", "http-streams-per-address", "http-streams-per-user")
	fields, _ := reply.(protocol.Map)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range fields {
		n, invalid := strconv.ParseInt(fmt.Sprint(f.Value), 10, 64)
		switch {
		case err != nil || invalid != nil:
		case f.Key == "maxclients":
			c.limits.clients = n
		case f.Key == "http-streams-per-address":
			c.limits.perAddress = n
		case f.Key == "http-streams-per-user":
			c.limits.perUser = n
		}
	}
	return c.limits
}

// start lets the viewers in.
func (f *feed) start() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.isStarted() {
		close(f.started)
	}
}

// isStarted reports whether start has been called.
func (f *feed) isStarted() bool {
	select {
	case <-f.started:
		return true
	default:
		return false
	}
}
