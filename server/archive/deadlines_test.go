package archive_test

// Tests of deadlines of members and fields in exports and imports.

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/archive"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/rdb"
	"github.com/zsetd/zsetd/zset"
)

// timedSample writes a file with deadlines of members and fields in two databases.
func timedSample(t *testing.T, path string, at int64) {
	t.Helper()
	srv := open(t, path)
	many, timed, hash := []any{"ZADD", "many"}, []any{"ZPEXPIREAT", "many", at, "MEMBERS", 2500}, []any{"HSET", "table"}
	for i := range 3000 {
		many = append(many, i, fmt.Sprint("member:", i))
		hash = append(hash, fmt.Sprint("field:", i), i)
		if i < 2500 {
			timed = append(timed, fmt.Sprint("member:", i))
		}
	}
	do(t, srv, many...)
	do(t, srv, timed...)
	do(t, srv, hash...)
	for i := range 300 {
		do(t, srv, "ZPEXPIREAT", "many", at+int64(i), "MEMBERS", 1, fmt.Sprint("member:", 2*i))
		do(t, srv, "HPEXPIREAT", "table", at+int64(i), "FIELDS", 1, fmt.Sprint("field:", 2*i))
	}
	do(t, srv, "ZADD", "few", "1.5", "a", "inf", "\xff\x00", 3, "")
	do(t, srv, "ZPEXPIREAT", "few", at, "MEMBERS", 2, "\xff\x00", "")
	do(t, srv, "HSET", "hash", "f", "v", "\xff", "\x00", "", "w")
	do(t, srv, "HPEXPIREAT", "hash", at, "FIELDS", 2, "\xff", "")
	do(t, srv, "ZADD", "{few}", 1, "a")
	do(t, srv, "ZPEXPIREAT", "{few}", at+7, "MEMBERS", 1, "a")
	do(t, srv, "EXPIREAT", "{few}", at/1000+1000)
	do(t, srv, "ZADD", "plain", 1, "a")
	do(t, srv, "COPY", "few", "few", "DB", 3)
	do(t, srv, "SAVE")
	if err := srv.Close(); err != nil {
		t.Fatal(err)
	}
}

// deadlinesOf reads all deadlines of members and fields in a file, as text.
func deadlinesOf(t *testing.T, path string) (members, fields map[string]int64) {
	t.Helper()
	members, fields = map[string]int64{}, map[string]int64{}
	if _, err := archive.Each(path, nil, func(v archive.Value) error {
		var d *zset.Set
		to := members
		switch x := v.Value.(type) {
		case *zset.Set:
			d = x.Deadlines()
		case *keyspace.Hash:
			d, to = x.Deadlines(), fields
		}
		if d != nil {
			for m, at := range d.All() {
				to[fmt.Sprintf("%d %q %q", v.DB, v.Key, m)] = int64(at)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return members, fields
}

// sameDeadlines compares the deadlines in two files.
func sameDeadlines(t *testing.T, what string, got, want map[string]int64) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d deadlines, want %d", what, len(got), len(want))
	}
	for k, at := range want {
		if got[k] != at {
			t.Errorf("%s: %s has %d, want %d", what, k, got[k], at)
			return
		}
	}
}

func TestExportDeadlines(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f.db")
	at := time.Now().Add(aYear).UnixMilli()
	timedSample(t, path, at)
	want := digest(t, path)
	members, fields := deadlinesOf(t, path)
	if len(members) < 2500 || len(fields) < 300 {
		t.Fatal(len(members), len(fields))
	}
	exports := map[string]func(w io.Writer, now time.Time) (archive.Exported, error){
		"json": func(w io.Writer, now time.Time) (archive.Exported, error) {
			return archive.ExportJSON(w, path, now, nil)
		},
	}
	targets := map[string]rdb.Target{"any": rdb.Any, "redis5": rdb.Redis5, "redis7": rdb.Redis7, "redis8": rdb.Redis8, "valkey9": rdb.Valkey9}
	for name, to := range targets {
		exports["commands "+name] = func(w io.Writer, now time.Time) (archive.Exported, error) {
			return archive.ExportCommands(w, path, to, now, nil)
		}
		exports["rdb "+name] = func(w io.Writer, now time.Time) (archive.Exported, error) {
			return archive.ExportRDB(w, path, to, now, nil)
		}
	}
	load := func(what string, source io.Reader) (string, archive.Imported) {
		t.Helper()
		to := filepath.Join(t.TempDir(), "to.db")
		var in archive.Imported
		var err error
		switch kind, _, _ := strings.Cut(what, " "); kind {
		case "json":
			in, err = new(archive.Import).JSON(source, to)
		case "rdb":
			in, err = new(archive.Import).RDB(source, to)
		default:
			in, err = server.ImportCommands(source, to, 0, new(archive.Import))
		}
		if err != nil {
			t.Fatal(what, err)
		}
		return to, in
	}
	for what, export := range exports {
		var out bytes.Buffer
		done, err := export(&out, time.Now())
		if err != nil || done.Keys != 7 || done.MemberDeadlines != int64(len(members)) {
			t.Fatalf("%s: %+v, %v", what, done, err)
		}
		kept := fields
		if strings.HasSuffix(what, "redis5") || strings.HasSuffix(what, "redis7") {
			if kept = nil; done.FieldDeadlines != 0 || done.LostDeadlines != int64(len(fields)) || done.LostOf != `key "hash" of database 0` {
				t.Errorf("%s: %+v", what, done)
			}
		} else if done.FieldDeadlines != int64(len(fields)) || done.LostDeadlines != 0 {
			t.Errorf("%s: %+v", what, done)
		}
		native := what == "json" || what == "commands any"
		if got := bytes.Contains(out.Bytes(), []byte("zsetd:deadlines:")); got == native {
			t.Errorf("%s: companions: %v", what, got)
		}
		to, in := load(what, &out)
		if in.Keys != 7 {
			t.Errorf("%s: %+v", what, in)
		}
		gotMembers, gotFields := deadlinesOf(t, to)
		sameDeadlines(t, what, gotMembers, members)
		sameDeadlines(t, what, gotFields, kept)
		if got := digest(t, to); kept != nil && got != want {
			t.Errorf("%s: digest %s, want %s", what, got, want)
		}

		// Members and fields past their deadlines are left out.
		out.Reset()
		if done, err = export(&out, time.UnixMilli(at+200)); err != nil || done.Expired != 1 || done.Keys != 6 {
			t.Errorf("%s: %+v, %v", what, done, err)
		}
		if done.MemberDeadlines >= int64(len(members)) || done.MemberDeadlines == 0 || done.FieldDeadlines+done.LostDeadlines >= int64(len(fields)) {
			t.Errorf("%s: %+v", what, done)
		}
		to, _ = load(what, &out)
		r, err := archive.Check(to, time.UnixMilli(at), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range r.Databases[0].Types {
			// table loses the fields with deadlines up to at+199, hash two of three.
			if x.Type == "hash" && x.Elements != 3000-200+1 || x.Type == "zset" && (x.Elements < 500 || x.Elements > 700) {
				t.Errorf("%s: %+v", what, x)
			}
		}
	}
}

// A key without remaining members is expired.
func TestExportExpiredMembers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.db")
	srv := open(t, path)
	at := time.Now().Add(aYear)
	do(t, srv, "ZADD", "z", 1, "a")
	do(t, srv, "ZPEXPIREAT", "z", at.UnixMilli(), "MEMBERS", 1, "a")
	do(t, srv, "HSET", "h", "f", "v")
	do(t, srv, "HPEXPIREAT", "h", at.UnixMilli(), "FIELDS", 1, "f")
	do(t, srv, "SET", "s", "x")
	do(t, srv, "SAVE")
	srv.Close()
	done, err := archive.ExportJSON(io.Discard, path, at.Add(time.Second), nil)
	if err != nil || done.Expired != 2 || done.Keys != 1 || done.MemberDeadlines != 0 || done.FieldDeadlines != 0 {
		t.Errorf("%+v, %v", done, err)
	}
}

// An export for Redis fails if a companion has the name of another key.
func TestExportCompanionCollision(t *testing.T) {
	for _, key := range []string{"zz", "a"} { // the order of the file differs
		path := filepath.Join(t.TempDir(), "f.db")
		srv := open(t, path)
		do(t, srv, "ZADD", key, 1, "m")
		do(t, srv, "ZPEXPIREAT", key, time.Now().Add(aYear).UnixMilli(), "MEMBERS", 1, "m")
		do(t, srv, "SET", "zsetd:deadlines:{"+key+"}", "x")
		do(t, srv, "SAVE")
		srv.Close()
		want := fmt.Sprintf("the member deadlines of key %q of database 0 are exported as key \"zsetd:deadlines:{%s}\", which exists already", key, key)
		if _, err := archive.ExportRDB(io.Discard, path, rdb.Redis7, time.Now(), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("rdb: %v", err)
		}
		if _, err := archive.ExportCommands(io.Discard, path, rdb.Redis7, time.Now(), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("commands: %v", err)
		}
		if _, err := archive.ExportCommands(io.Discard, path, rdb.Any, time.Now(), nil); err != nil {
			t.Error(err)
		}
	}
}

// Redis writes keys in any order: companions behind their sorted set are
// recognized, too. A sorted set that is no companion stays a key.
func TestImportCompanions(t *testing.T) {
	limits := keyspace.DefaultLimits()
	set := func(elements ...zset.Element) *zset.Set { return zset.Load(elements) }
	at := float64(time.Now().Add(aYear).UnixMilli())
	keys := []struct {
		db    int
		key   string
		value any
	}{
		{0, "behind", set(zset.Element{Member: "a", Score: 1}, zset.Element{Member: "b", Score: 2})},
		{0, "zsetd:deadlines:{behind}", set(zset.Element{Member: "a", Score: at}, zset.Element{Member: "gone", Score: at})},
		{0, "zsetd:deadlines:{first}", set(zset.Element{Member: "a", Score: at + 1})},
		{0, "first", set(zset.Element{Member: "a", Score: 1})},
		{0, "{tag}key", set(zset.Element{Member: "a", Score: 1})},
		{0, "zsetd:deadlines:{tag}key", set(zset.Element{Member: "a", Score: at + 2})},
		{0, "zsetd:deadlines::{tag}", set(zset.Element{Member: "a", Score: at + 3})},
		{0, "{tag}", set(zset.Element{Member: "a", Score: 1})},
		{0, "tag", set(zset.Element{Member: "a", Score: 1})},
		{0, "zsetd:deadlines:{alone}", set(zset.Element{Member: "a", Score: at})},
		{0, "zsetd:deadlines:{string}", set(zset.Element{Member: "a", Score: at})},
		{0, "string", keyspace.NewString([]byte("x"))},
		{0, "zsetd:deadlines:{scores}", set(zset.Element{Member: "a", Score: 1.5})},
		{0, "scores", set(zset.Element{Member: "a", Score: 1})},
		{0, "zsetd:deadlines:untagged", set(zset.Element{Member: "a", Score: at})},
		{1, "zsetd:deadlines:{behind}", set(zset.Element{Member: "b", Score: at})},
	}
	w := rdb.NewWriter(rdb.NewCodec(&limits), rdb.Redis7)
	file := w.AppendHead(nil)
	var commands strings.Builder
	for _, k := range keys {
		file = w.AppendKey(file, k.db, k.key, k.value, 0)
		fmt.Fprintf(&commands, "SELECT %d\r\n", k.db)
		if s, ok := k.value.(*zset.Set); ok {
			for m, score := range s.All() {
				fmt.Fprintf(&commands, "ZADD %s %.17g %s\r\n", k.key, score, m)
			}
		} else {
			fmt.Fprintf(&commands, "SET %s x\r\n", k.key)
		}
	}
	file = w.AppendEnd(file)
	want := map[string]int64{
		`0 "behind" "a"`: int64(at), `0 "first" "a"`: int64(at) + 1, `0 "{tag}key" "a"`: int64(at) + 2, `0 "{tag}" "a"`: int64(at) + 3,
	}
	for what, load := range map[string]func(path string) (archive.Imported, error){
		"rdb": func(path string) (archive.Imported, error) {
			return new(archive.Import).RDB(bytes.NewReader(file), path)
		},
		"commands": func(path string) (archive.Imported, error) {
			return server.ImportCommands(strings.NewReader(commands.String()), path, 0, new(archive.Import))
		},
	} {
		path := filepath.Join(t.TempDir(), "f.db")
		in, err := load(path)
		if err != nil || in.Keys != int64(len(keys)-4) {
			t.Errorf("%s: %+v, %v", what, in, err)
			continue
		}
		members, _ := deadlinesOf(t, path)
		sameDeadlines(t, what, members, want)
		r, err := archive.Check(path, time.Now(), nil)
		if err != nil || r.Databases[0].Keys != int64(len(keys)-5) || r.Databases[1].Keys != 1 {
			t.Errorf("%s: %+v, %v", what, r, err)
		}
	}
}
