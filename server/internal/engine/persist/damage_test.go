package persist_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/archive"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/servertest/rerun"
	"github.com/zsetd/zsetd/snapshot"

	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
)

// damageSample makes a file with bases and journals of all types, of about so
// many bytes, a part of them free, and returns its content and what it holds. With logs there
// are changes in its log, too, and the last of them, on more than a page, make no difference:
// sectors at the end of a log that are as they were before look like a power failure.
func damageSample(t *testing.T, size int, logs bool) (file []byte, holds string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sample.db")
	var config map[string]string
	if logs {
		config = map[string]string{"appendonly": "yes", "appendfsync": "always"}
	}
	srv := enginetest.Keep(t, path, config)
	rng := rand.New(rand.NewPCG(17, 17))
	text := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		return string(b)
	}
	change := func(bytes int) {
		for bytes > 0 {
			n := 1 + rng.IntN(2000)
			key := func() string { return fmt.Sprint(rng.IntN(size / 10_000)) }
			switch rng.IntN(7) {
			case 0:
				enginetest.SayArgs(srv, "SET", "s"+key(), text(n))
			case 1:
				enginetest.SayArgs(srv, "RPUSH", "l"+key(), text(n))
			case 2:
				enginetest.SayArgs(srv, "HSET", "h"+key(), fmt.Sprint("f", rng.IntN(100)), text(n))
			case 3:
				enginetest.SayArgs(srv, "SADD", "t"+key(), rng.IntN(1000), text(n))
			case 4:
				enginetest.SayArgs(srv, "ZADD", "z"+key(), rng.IntN(1000), text(n))
			case 5:
				enginetest.SayArgs(srv, "DEL", "s"+key(), "z"+key())
			case 6:
				enginetest.SayArgs(srv, "EXPIRE", "l"+key(), 100_000)
			}
			bytes -= n * 5 / 7
		}
	}
	enginetest.SayArgs(srv, "SET", text(5000), text(100_000))
	for n := range size / 8 / 100 {
		enginetest.SayArgs(srv, "ZADD", "large", n, text(60))
	}
	change(size / 3)
	enginetest.Must(t, srv, "SAVE", "BGREWRITEAOF")
	enginetest.Rest(t, srv)
	for range 6 {
		change(size / 30)
		enginetest.Must(t, srv, "SAVE")
	}
	m, err := snapshot.Read(path, snapshot.Visitor{})
	if err != nil {
		t.Fatal(err)
	}
	if m.Bases.Records == 0 || m.Journal.Records == 0 {
		t.Fatalf("the file has %d bases and %d journals", m.Bases.Records, m.Journal.Records)
	}
	if logs {
		change(size / 10)
		for range 20 {
			enginetest.Must(t, srv, "SET last 1")
		}
		if info, err := snapshot.Inspect(path, snapshot.Visitor{}); err != nil || info.Groups < 10 {
			t.Fatalf("%v; %d groups in the log", err, info.Groups)
		}
		file, err = os.ReadFile(path)
	}
	holds = enginetest.DebugDigest(srv)
	if err := errors.Join(err, srv.Close()); err != nil {
		t.Fatal(err)
	}
	if !logs {
		file, err = os.ReadFile(path)
	}
	if err != nil {
		t.Fatal(err)
	}
	return file, holds
}

// TestDamage checks that loading a damaged file either fails, with an error that names
// the file and the position of the damage, or returns all data. There is no third
// outcome: no wrong or missing value, no panic, no load without end. Loading does not
// change the file.
func TestDamage(t *testing.T) {
	rerun.Skip(t)
	for name, logs := range map[string]bool{"saved": false, "with a log": true} {
		t.Run(name, func(t *testing.T) { testDamage(t, logs) })
	}
}

func testDamage(t *testing.T, logs bool) {
	size := 1 << 20
	times := func(n int) int { return n / 8 }
	if *faults > 0 {
		size = 17 << 20
		times = func(n int) int { return n * *faults / 200 }
	}
	whole, holds := damageSample(t, size, logs)
	dir := t.TempDir()
	if shm := "/dev/shm"; *faults > 0 { // hundreds of files of 17 MB
		if d, err := os.MkdirTemp(shm, "damage"); err == nil {
			dir = d
			t.Cleanup(func() { os.RemoveAll(d) })
		}
	}
	path := filepath.Join(dir, "damaged.db")
	rng := rand.New(rand.NewPCG(3, 3))
	where := regexp.MustCompile(`page \d|journal|log|manifest|the value of|key "|base "|truncated|empty|records|not a zsetd snapshot`)
	pages := len(whole) / 4096
	type row struct{ damaged, foreign, whole int }
	table := map[string]*row{}
	slowest := time.Duration(0)
	try := func(kind string, file []byte) {
		t.Helper()
		if table[kind] == nil {
			table[kind] = &row{}
		}
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		got, took, err := loadDamaged(path)
		slowest = max(slowest, took)
		if now, e := os.ReadFile(path); e != nil || !bytes.Equal(now, file) {
			t.Fatalf("%s: loading has changed the file: %v", kind, e)
		}
		switch {
		case err == nil && got == holds:
			table[kind].whole++
		case err == nil:
			t.Fatalf("%s: loaded without an error, and the data are wrong", kind)
		case !strings.Contains(err.Error(), path) || !where.MatchString(err.Error()) || strings.Contains(err.Error(), "\n"), len(err.Error()) > len(path)+300:
			t.Errorf("%s: the error does not say where: %v", kind, err)
		case errors.Is(err, snapshot.ErrForeign):
			table[kind].foreign++
		case errors.Is(err, snapshot.ErrDamaged), len(file) == 0 && errors.Is(err, snapshot.ErrEmpty):
			table[kind].damaged++
		default:
			t.Errorf("%s: %v", kind, err)
		}
		if err != nil {
			return
		}
		// The damage hit nothing, and does so when the file is written again.
		srv, err := enginetest.OpenKeep(path, nil)
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		enginetest.SayArgs(srv, "SET", "another", strings.Repeat("x", 20_000))
		enginetest.Must(t, srv, "SAVE")
		now := enginetest.DebugDigest(srv)
		if err := srv.Close(); err != nil {
			t.Fatal(err)
		}
		if got, _, err := loadDamaged(path); err != nil || got != now {
			t.Fatalf("%s: after another checkpoint: %v", kind, err)
		}
	}
	for range times(240) {
		file := bytes.Clone(whole)
		at := rng.IntN(len(file))
		file[at] ^= 1 << rng.IntN(8)
		try("1 bit flipped", file)
	}
	for range times(120) { // the important parts: headers and tables of pages
		file := bytes.Clone(whole)
		at := rng.IntN(pages)*4096 + rng.IntN(16+4*16)
		file[at] ^= 1 << rng.IntN(8)
		try("1 bit flipped at the beginning of a page", file)
	}
	for range times(60) {
		file := bytes.Clone(whole)
		at := rng.IntN(len(file)/512) * 512
		clear(file[at : at+512])
		try("a sector zeroed", file)
	}
	for range times(60) {
		file := bytes.Clone(whole)
		at := rng.IntN(pages) * 4096
		clear(file[at : at+4096])
		try("a page zeroed", file)
	}
	for range times(60) {
		try("truncated", bytes.Clone(whole[:rng.IntN(len(whole))]))
	}
	for _, n := range []int{0, 1, 512, 4095, 4096, 8191, 8192, 12288, 16384, len(whole) - 4096, len(whole) - 1} {
		try("truncated", bytes.Clone(whole[:n]))
	}
	for range times(60) {
		file := bytes.Clone(whole)
		a, b := file[rng.IntN(pages)*4096:], file[rng.IntN(pages)*4096:]
		for i := range 4096 {
			a[i], b[i] = b[i], a[i]
		}
		try("two pages swapped", file)
	}
	for range times(60) {
		file := bytes.Clone(whole)
		copy(file[rng.IntN(pages)*4096:][:4096], file[rng.IntN(pages)*4096:])
		try("a page written in the place of another", file)
	}
	for range times(60) {
		file := bytes.Clone(whole)
		a := rng.IntN(pages)
		n := min(1+rng.IntN(64), pages-a)
		for i := a * 4096; i < (a+n)*4096; i++ {
			file[i] = byte(rng.Uint32())
		}
		try("a region overwritten", file)
	}
	t.Logf("a file of %d KB; refused as damaged, as foreign, loaded whole (the damage hit what is free):", len(whole)>>10)
	for _, kind := range slices.Sorted(maps.Keys(table)) {
		r := table[kind]
		t.Logf("%4d of %4d  %4d  %4d  %s", r.damaged, r.damaged+r.foreign+r.whole, r.foreign, r.whole, kind)
	}
	t.Logf("the slowest load took %v", slowest.Round(time.Millisecond))
}

// loadDamaged loads a file and returns the sum of what it holds.
func loadDamaged(path string) (holds string, took time.Duration, err error) {
	start := time.Now()
	srv, err := enginetest.New(engine.Options{Config: map[string]string{"enable-debug-command": "yes"}})
	if err != nil {
		return "", 0, err
	}
	defer srv.Close()
	loaded := keyspace.New(16, keyspace.Hooks{})
	loaded.SetNow(time.Now().UnixMilli())
	l := archive.Loader{Keys: loaded}
	if err := l.Read(path); err != nil {
		return "", time.Since(start), err
	}
	took = time.Since(start)
	srv.InTurn(func() { srv.Keys.Adopt(loaded) })
	if err := srv.Check(); err != nil {
		return "", took, err
	}
	return enginetest.DebugDigest(srv), took, nil
}

// TestStalePages checks that a page of an earlier state of the file, in place of the
// current one, is detected, though the page itself is valid.
func TestStalePages(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "k.db")
	srv := enginetest.Keep(t, path, nil)
	enginetest.Fill(srv, 2000, 100)
	enginetest.Must(t, srv, "SAVE")
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		enginetest.Must(t, srv, fmt.Sprintf("SET fill:%d %d", i*5, i))
		if i%30 == 29 {
			enginetest.Must(t, srv, "SAVE")
		}
	}
	holds := enginetest.DebugDigest(srv)
	srv.InTurn(func() { srv.Ending.Flags.Nosave = true }) // after one more checkpoint page 2 may refer to a complete earlier state
	if err := srv.Close(); err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	refused, loaded := 0, 0
	// Meta pages are excluded: they refer to the previous checkpoint, which is complete.
	for at := 2 * 4096; at < min(len(before), len(after)); at += 4096 {
		if bytes.Equal(before[at:at+4096], after[at:at+4096]) {
			continue
		}
		file := bytes.Clone(after)
		copy(file[at:at+4096], before[at:])
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		got, _, err := loadDamaged(path)
		switch {
		case err != nil:
			refused++
		case got != holds:
			t.Errorf("page %d is stale, and loading has not detected it", at/4096)
		default:
			loaded++
		}
	}
	t.Logf("an earlier page in the place of the current: %d refused, %d had hit what is free", refused, loaded)
	if refused == 0 {
		t.Error("nothing was refused")
	}
}
