package replication

import (
	"testing"

	"github.com/zsetd/zsetd/server/internal/values/sequence"
)

func id(ms uint64) sequence.StreamID { return sequence.StreamID{Ms: ms, Seq: 1} }

func pair(f, v string) [][]byte { return [][]byte{[]byte(f), []byte(v)} }

// TestIdempotence checks that what producers leave in a stream reaches replicas of zsetd, and
// does no harm in others.
func TestIdempotence(t *testing.T) {
	s := newSource()
	db, k := s.DB(0), []byte("k")
	x := db.Add(k, new(sequence.Stream)).Value().(*sequence.Stream)
	x.Add(id(1), pair("f", "v"), s.Limits.Stream)
	s.take(t)
	x = db.Edit(k).Value().(*sequence.Stream)
	x.SetIdempotenceLimits(sequence.IdempotenceLimits{Seconds: 5, Most: 7})
	x.Add(id(2), pair("f", "v"), s.Limits.Stream)
	x.Identify([]byte("p"), []byte("i"), id(2), 0)
	x.CountDuplicate()
	limits := "PING [XCFGSET k IDMP-DURATION 5 IDMP-MAXSIZE 7]"
	identified := "PING [XIDMPRECORD k p i 2-1]"
	s.want(t, "MULTI", limits, "XADD k 2-1 f v", identified, "EXEC")
	db.Put(k, db.Edit(k).Value().(*sequence.Stream).Clone(), false)
	s.want(t, "MULTI", "DEL k", "XADD k 1-1 f v", "XADD k 2-1 f v", limits, identified, "EXEC")
}

func TestStreams(t *testing.T) {
	s := newSource()
	db, k := s.DB(0), []byte("k")
	edit := func() *sequence.Stream { return db.Edit(k).Value().(*sequence.Stream) }
	x := db.Add(k, new(sequence.Stream)).Value().(*sequence.Stream)
	x.Add(id(1), pair("f", "v"), s.Limits.Stream)
	s.want(t, "SELECT 0", "XADD k 1-1 f v")
	x = edit()
	for ms := uint64(2); ms <= 6; ms++ {
		x.Add(id(ms), pair("f", "v"), s.Limits.Stream)
	}
	x.Delete(id(3))
	x.Delete(id(5))
	s.want(t, "MULTI", "XADD k 2-1 f v", "XADD k 3-1 f v", "XADD k 4-1 f v", "XADD k 5-1 f v", "XADD k 6-1 f v", "XDEL k 3-1 5-1", "EXEC")
	edit().Trim(sequence.StreamTrim{MaxLen: 2})
	s.want(t, "XTRIM k MINID 4-1")

	edit().AddGroup([]byte("g"), id(1), 1)
	s.want(t, "XGROUP CREATE k g 1-1 ENTRIESREAD 1")
	g := edit().EditGroup([]byte("g"))
	c := g.AddConsumer([]byte("c"), 1000)
	g.RecordRead(c, 1000, true)
	g.ReadNext(c, 10, 1000, true, false, func(sequence.StreamEntry) {})
	s.want(t, "MULTI", "XGROUP CREATECONSUMER k g c", "XCLAIM k g c 0 4-1 6-1 TIME 1000 RETRYCOUNT 1 FORCE JUSTID",
		"XGROUP SETID k g 6-1 ENTRIESREAD 6", "EXEC")
	g = edit().EditGroup([]byte("g"))
	g.SetTimes(g.Consumer([]byte("c")), 2000, 2000)
	s.want(t)
	x = edit()
	g = x.EditGroup([]byte("g"))
	g.Deliver(g.Consumer([]byte("c")), id(4), 3000, 2)
	g.Deliver(g.Consumer([]byte("c")), id(6), 3001, 2)
	h := x.AddGroup([]byte("h"), sequence.StreamID{}, sequence.UnknownRead)
	h.AddConsumer([]byte("d"), 1)
	s.want(t, "MULTI", "XCLAIM k g c 0 4-1 TIME 3000 RETRYCOUNT 2 FORCE JUSTID", "XCLAIM k g c 0 6-1 TIME 3001 RETRYCOUNT 2 FORCE JUSTID",
		"XGROUP CREATE k h 0-0 ENTRIESREAD -1", "XGROUP CREATECONSUMER k h d", "EXEC")
	edit().EditGroup([]byte("g")).Acknowledge(id(4))
	s.want(t, "XACK k g 4-1")

	// A pending entry that is deleted: the copy of the stream has it, too.
	edit().Delete(id(6))
	edit().SetID(id(9), 20, id(6))
	s.want(t, "MULTI", "XDEL k 6-1", "XSETID k 9-1 ENTRIESADDED 20 MAXDELETEDID 6-1", "EXEC")
	db.Put([]byte("low"), edit().Clone(), false)
	db.Edit([]byte("low")).Value().(*sequence.Stream).EditGroup([]byte("g")).Acknowledge(id(6))
	s.take(t)
	db.Edit([]byte("low")).Value().(*sequence.Stream).SetID(id(5), 20, id(6))
	s.want(t, "MULTI", "XSETID low 6-1 MAXDELETEDID 6-1", "XSETID low 5-1 ENTRIESADDED 20", "EXEC")
	db.Put([]byte("copy"), edit().Clone(), false)
	s.want(t, "MULTI", "XADD copy 4-1 f v", `XADD copy 6-1 "" ""`, "XGROUP CREATE copy g 6-1 ENTRIESREAD 6", "XGROUP CREATECONSUMER copy g c",
		"XCLAIM copy g c 0 6-1 TIME 3001 RETRYCOUNT 2 FORCE JUSTID", "XGROUP CREATE copy h 0-0 ENTRIESREAD -1", "XGROUP CREATECONSUMER copy h d",
		"XDEL copy 6-1", "XSETID copy 9-1 ENTRIESADDED 20 MAXDELETEDID 6-1", "EXEC")
	edit().Trim(sequence.StreamTrim{MaxLen: 0})
	s.want(t, "XTRIM k MAXLEN 0")
	db.SetDeadline(db.Edit(k), 5000)
	db.Move(db.Edit(k), s.DB(0), []byte("l"))
	s.want(t, "MULTI", "DEL k", `XADD l 6-1 "" ""`, "XGROUP CREATE l g 6-1 ENTRIESREAD 6", "XGROUP CREATECONSUMER l g c",
		"XCLAIM l g c 0 6-1 TIME 3001 RETRYCOUNT 2 FORCE JUSTID", "XGROUP CREATE l h 0-0 ENTRIESREAD -1", "XGROUP CREATECONSUMER l h d",
		"XTRIM l MAXLEN 0", "XSETID l 9-1 ENTRIESADDED 20 MAXDELETEDID 6-1", "PEXPIREAT l 5000", "EXEC")

	x = db.Edit([]byte("l")).Value().(*sequence.Stream)
	g = x.EditGroup([]byte("g"))
	g.RemoveConsumer(g.Consumer([]byte("c")))
	x.RemoveGroup([]byte("h"))
	x.RemoveGroup([]byte("g"))
	s.want(t, "MULTI", "XGROUP DELCONSUMER l g c", "XGROUP DESTROY l h", "XGROUP DESTROY l g", "EXEC")
	x = new(sequence.Stream)
	db.Put([]byte("e"), x, false)
	s.want(t, "MULTI", `XGROUP CREATE e "" 0-0 MKSTREAM`, `XGROUP DESTROY e ""`, "EXEC")
	x = new(sequence.Stream)
	x.AddGroup([]byte("g"), sequence.StreamID{}, 0)
	db.Put([]byte("e"), x, false)
	s.want(t, "MULTI", "DEL e", "XGROUP CREATE e g 0-0 MKSTREAM ENTRIESREAD 0", "EXEC")
}
