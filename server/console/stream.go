package console

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
)

const (
	heartbeat   = 25 * time.Second      // longest silence of a stream
	viewerTime  = 10 * time.Second      // time for a write to a viewer
	feedBytes   = 4 << 20               // bytes that a viewer may be behind, at least
	feedKeep    = 15 * time.Second      // time after which a silent feed drops what it keeps
	minPause    = 10 * time.Millisecond // shortest interval between wakes of the viewers of a feed
	maxPause    = 100 * time.Millisecond
	viewerPause = 30 * time.Microsecond // added to the interval for each viewer
	reconnectMs = "2000"                // pause of a browser before it connects again
)

// errSlowViewer ends the stream of a viewer that is behind by more than feedBytes.
var errSlowViewer = errors.New("the stream has ended: messages arrive faster than they are read")

// stream is a response with Server-Sent Events, as in the section of that name of the HTML
// standard.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	written time.Time // when write was called last
}

// newStream begins a response. The caller ends it with a return from the handler.
func newStream(w http.ResponseWriter) (*stream, error) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // for proxies that collect a response otherwise
	s := &stream{w: w, control: http.NewResponseController(w)}
	return s, s.write([]byte("retry: " + reconnectMs + "\n\n"))
}

// write sends complete events at once.
func (s *stream) write(b []byte) error {
	s.written = time.Now()
	s.control.SetWriteDeadline(s.written.Add(viewerTime)) // not every ResponseWriter has deadlines
	if _, err := s.w.Write(b); err != nil {
		return err
	}
	return s.control.Flush()
}

// await waits until wake is ready, and writes a comment line when nothing was written for the
// time of a heartbeat. It returns false when the request or the client has ended.
func (s *stream) await(wake <-chan struct{}, request context.Context) bool {
	silence := time.NewTimer(time.Until(s.written.Add(heartbeat)))
	defer silence.Stop()
	for {
		select {
		case <-wake:
			return true
		case <-request.Done():
			return false
		case <-silence.C:
			if s.write([]byte(": \n\n")) != nil {
				return false
			}
			silence.Reset(heartbeat)
		}
	}
}

// end sends the reason for the end of the stream, as an event named end.
func (s *stream) end(err error) {
	s.write(append(append([]byte(`event: end`+"\n"+`data: {"error":`), jsonString(err.Error())...), "}\n\n"...))
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
	woken   time.Time
	waking  bool // a timer will wake the viewers
}

// viewer is one stream that follows feeds.
type viewer struct {
	wake  chan struct{} // of capacity 1
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

func (v *viewer) notify() { signal(v.wake) }

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
	v.feeds, v.at = append(v.feeds, f), append(v.at, f.base+int64(len(f.log)))
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

// show writes the events of the feeds of v until the request, a feed or the client ends.
func (v *viewer) show(s *stream, r *http.Request) {
	for {
		for i := range v.feeds {
			for {
				events, err := v.next(i)
				if err != nil {
					s.end(err)
					return
				}
				if len(events) == 0 {
					break
				}
				if s.write(events) != nil {
					return
				}
			}
		}
		if !s.await(v.wake, r.Context()) {
			return
		}
	}
}

// admitStream counts a stream against maxclients. The caller calls leave when it has ended.
func (c *Console) admitStream() (leave func(), ok bool) {
	if n := c.streams.Add(1); n > c.maxClients.Load() && n > c.askMaxClients() {
		c.streams.Add(-1)
		return nil, false
	}
	return func() { c.streams.Add(-1) }, true
}

// streamed wraps a handler of a stream: it bounds their number.
func (c *Console) streamed(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		leave, ok := c.admitStream()
		if !ok {
			c.refuse(w, r, errCapacity)
			return
		}
		defer leave()
		serve(w, r)
	}
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
