package archive_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/archive"
	"github.com/zsetd/zsetd/server/servertest/rerun"
	"github.com/zsetd/zsetd/server/servertest/wait"
	"github.com/zsetd/zsetd/snapshot"
	"go.etcd.io/bbolt"
)

// The promise of snapshot/README.md: files of each format open in every later version.
// testdata/formats has a file of each, which is never written again. Its program has made
// it, and its checks are the replies to reading it.

var rewrite = flag.Bool("rewrite", false, "write the file of a format that has none")

const (
	// year2100 is a deadline, in milliseconds.
	year2100 = "4102444800000"
	// longName is a key whose name the file does not hold: see snapshot/doc.go.
	longName = "long-4000"
)

// formatProgram returns the commands that make a file of each format. The first part becomes
// bases, and the second journals; in a file of format 2 the second half of those is in the log.
func formatProgram() (bases, journals []string) {
	return []string{
			"SET text value", "SET number 1234567890123", "SET expires later PXAT " + year2100, "SET gone x", "SET raw \xff\x00\xfe", "SETRANGE range 5 abc",
			"SETRANGE big 2500000 end", "SET " + longName + " long", "PFADD hll a b c", "SETBIT bits 7 1",
			"RPUSH list a b c d e f g", "RPUSH numbers 1 2 -3", "PEXPIREAT list " + year2100,
			"SADD ints 3 1 2", "SADD words a b c", "SADD mixed 1 2",
			"HSET hash a 1 b 2 c 3", "HPEXPIREAT hash " + year2100 + " FIELDS 1 b",
			"ZADD zset 1 a 2.5 b -inf c inf d 0.1 e", "ZPEXPIREAT zset " + year2100 + " MEMBERS 2 a b", "ZADD emptied 1 a 2 b", "GEOADD geo 13.361389 38.115556 Palermo",
			"XADD stream 1-1 f v", "XADD stream 2-1 f v g w", "XADD stream 3-1 f v", "XGROUP CREATE stream group 0", "XREADGROUP GROUP group ann COUNT 2 STREAMS stream >",
			"@3 SET in three", "@5 SET in five", "@7 SET in seven",
			"FUNCTION LOAD #!lua name=lib\nredis.register_function('f', function() return 'called' end)",
		}, []string{
			"DEL gone", "APPEND text +more", "SETRANGE range 0 xyz", "PERSIST expires", "SET late 1 PXAT " + year2100,
			"LPUSH list z", "LPOP list", "RPOP list", "LSET list 0 A", "LINSERT list BEFORE c bb", "LTRIM list 0 4", "LREM list 1 d",
			"SREM words b", "SADD mixed word", "HDEL hash a", "HPEXPIREAT hash " + year2100 + " FIELDS 1 c", "HPERSIST hash FIELDS 1 b",
			"ZADD zset 7 f", "ZREM zset e", "ZPERSIST zset MEMBERS 1 b", "ZPEXPIREAT zset " + year2100 + " MEMBERS 1 f", "ZREMRANGEBYRANK emptied 0 -1", "ZADD emptied 3 c",
			"XADD stream 4-1 h x", "XDEL stream 3-1", "XACK stream group 1-1", "XGROUP CREATECONSUMER stream group bob", "XCLAIM stream group bob 0 2-1 JUSTID",
			"RENAME numbers renamed", "COPY words copied", "SWAPDB 3 5", "@7 FLUSHDB",
		}
}

// formatChecks returns commands that read the file, with their replies.
func formatChecks() [][2]string {
	return [][2]string{
		{"DBSIZE", "21"}, {"GET text", "value+more"}, {"GET number", "1234567890123"}, {"GET expires", "later"}, {"PEXPIRETIME expires", "-1"}, {"EXISTS gone", "0"},
		{"GET raw", "\xff\x00\xfe"}, {"GET range", "xyz\x00\x00abc"}, {"STRLEN big", "2500003"}, {"GETRANGE big -4 -1", "\x00end"}, {"GET " + longName, "long"},
		{"PEXPIRETIME late", year2100}, {"PFCOUNT hll", "3"}, {"GETBIT bits 7", "1"},
		{"LRANGE list 0 -1", "[A b bb c]"}, {"PEXPIRETIME list", year2100}, {"LRANGE renamed 0 -1", "[1 2 -3]"},
		{"SORT ints", "[1 2 3]"}, {"OBJECT ENCODING ints", "intset"}, {"SORT words ALPHA", "[a c]"}, {"SORT copied ALPHA", "[a c]"}, {"SORT mixed ALPHA", "[1 2 word]"},
		{"HGET hash b", "2"}, {"HGET hash c", "3"}, {"HLEN hash", "2"}, {"HPEXPIRETIME hash FIELDS 3 a b c", "[-2 -1 " + year2100 + "]"},
		{"ZRANGE zset 0 -1 WITHSCORES", "[[c -Inf] [a 1] [b 2.5] [f 7] [d +Inf]]"}, {"ZPEXPIRETIME zset MEMBERS 4 a b c f", "[" + year2100 + " -1 -1 " + year2100 + "]"},
		{"ZRANGE emptied 0 -1", "[c]"}, {"GEODIST geo Palermo Palermo", "0.0000"},
		{"XRANGE stream - +", "[[1-1 [f v]] [2-1 [f v g w]] [4-1 [h x]]]"}, {"XPENDING stream group", "[1 2-1 2-1 [[bob 1]]]"},
		{"XLEN stream", "3"}, {"XREADGROUP GROUP group ann COUNT 1 STREAMS stream >", "[{stream [[4-1 [h x]]]}]"},
		{"FCALL f 0", "called"},
		{"@3 GET in", "five"}, {"@5 GET in", "three"}, {"@7 DBSIZE", "0"},
	}
}

// formatArgs splits a command line at its spaces. After @n the command runs in database n.
func formatArgs(line string) []any {
	words := strings.Split(line, " ")
	if words[0] == "FUNCTION" {
		words = strings.SplitN(line, " ", 3)
	}
	var args []any
	if db, ok := strings.CutPrefix(words[0], "@"); ok {
		args = append(args, "EVAL", "redis.call('SELECT', ARGV[1]) return redis.call(unpack(ARGV, 2))", "0", db)
		words = words[1:]
	}
	for _, word := range words {
		if word == longName {
			word = strings.Repeat("long", 1000)
		}
		args = append(args, word)
	}
	return args
}

// formatServer returns a server with the file at path. A file of format 2 has a log, which
// appendfsync always makes.
func formatServer(t *testing.T, path string, format int) (srv *server.Server, do func(line string) any) {
	t.Helper()
	config := map[string]string{"save": ""}
	if format >= 2 {
		config = map[string]string{"appendonly": "yes", "appendfsync": "always"}
	}
	srv, err := server.New(server.Options{File: path, Config: config, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { srv.Close() })
	if err := srv.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	return srv, func(line string) any {
		t.Helper()
		reply, err := srv.Do(t.Context(), formatArgs(line)...)
		if err != nil {
			t.Errorf("%.100q: %v", line, err)
		}
		return reply
	}
}

// formatFile returns the path of a copy of the file of a format. With -rewrite it makes the
// file of a format if there is none.
func formatFile(t *testing.T, format int) string {
	t.Helper()
	golden := filepath.Join("testdata", "formats", fmt.Sprintf("%d.gz", format))
	path := filepath.Join(t.TempDir(), "golden.db")
	if _, err := os.Stat(golden); errors.Is(err, os.ErrNotExist) && *rewrite {
		makeFormat(t, path, golden, format)
	}
	f, err := os.Open(golden)
	if err != nil {
		t.Fatalf("there is a file of each format, which the first version with that format writes: %v", err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err == nil {
		err = os.WriteFile(path, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func makeFormat(t *testing.T, path, golden string, format int) {
	t.Helper()
	srv, do := formatServer(t, path, format)
	bases, journals := formatProgram()
	for _, line := range bases {
		do(line)
	}
	if err := srv.Save(t.Context()); err != nil {
		t.Fatal(err)
	}
	do("BGREWRITEAOF")
	wait.Until(t, "the file is rewritten", func() bool {
		return strings.Contains(fmt.Sprint(do("INFO persistence")), "aof_rewrite_in_progress:0\r\naof_rewrite_scheduled:0")
	})
	for i, line := range journals {
		do(line)
		if i == len(journals)/2 || i == len(journals)-1 && format == 1 {
			if err := srv.Save(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	b, err := os.ReadFile(path)
	if err := errors.Join(err, srv.Close()); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	z, _ := gzip.NewWriterLevel(&out, gzip.BestCompression)
	z.Write(b)
	if err := errors.Join(z.Close(), os.MkdirAll(filepath.Dir(golden), 0o755), os.WriteFile(golden, out.Bytes(), 0o644), os.Remove(path)); err != nil {
		t.Fatal(err)
	}
}

// TestFormats opens the file of each format, reads all of it, changes it, and opens it
// again.
func TestFormats(t *testing.T) {
	rerun.Skip(t)
	current := currentFormat(t)
	ran := 0
	defer func() {
		if ran == 0 && !t.Failed() { // a pattern that names nothing would pass otherwise
			t.Error("-run chooses no format")
		}
	}()
	for format := 1; format <= current; format++ {
		t.Run(fmt.Sprint(format), func(t *testing.T) {
			ran++
			path := formatFile(t, format)
			manifest, err := snapshot.Read(path, snapshot.Visitor{})
			if err != nil || manifest.Format != format || manifest.Bases.Records < 20 || manifest.Journal.Bytes < 400 || (manifest.Log > 0) != (format == 2) {
				t.Fatalf("%v, %+v", err, manifest)
			}
			if report, err := archive.Check(path, time.Now(), nil); err != nil || len(report.Databases) != 3 || report.Libraries != 1 {
				t.Errorf("check: %v, %+v", err, report)
			}
			srv, do := formatServer(t, path, 1)
			for _, check := range formatChecks() {
				if got := fmt.Sprint(do(check[0])); got != check[1] {
					t.Errorf("%.100s: %.200q, want %q", check[0], got, check[1])
				}
			}
			do("SET new 1")
			if err := errors.Join(srv.Check(), srv.Save(t.Context()), srv.Close()); err != nil {
				t.Fatal(err)
			}
			_, do = formatServer(t, path, 1)
			if got := fmt.Sprint(do("MGET new text")); got != "[1 value+more]" {
				t.Errorf("after a change: %s", got)
			}
		})
	}
}

// currentFormat returns the number of the newest format that this version writes.
func currentFormat(t *testing.T) int {
	t.Helper()
	path := filepath.Join(t.TempDir(), "new.db")
	srv, do := formatServer(t, path, 2)
	do("SET k v")
	manifest, err := snapshot.Read(path, snapshot.Visitor{}) // nothing is written meanwhile
	if err := errors.Join(err, srv.Close()); err != nil {
		t.Fatal(err)
	}
	return manifest.Format
}

// TestNewerFormat checks that neither the server nor the tools read or change a file of a
// newer format.
func TestNewerFormat(t *testing.T) {
	rerun.Skip(t)
	current := currentFormat(t)
	path := formatFile(t, current)
	setFormat(t, path, current+1)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("newer format: %d, and this version of zsetd reads up to %d", current+1, current)
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, snapshot.ErrNewer) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
		if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
			t.Errorf("%s has changed the file (%v)", what, err)
		}
	}
	options := server.Options{File: path}
	refused("CheckConfig", server.CheckConfig(options))
	srv, err := server.New(options)
	if err == nil { // the file is read after New
		err = srv.Ready(t.Context())
		srv.Close()
	}
	refused("the server", err)
	if !strings.Contains(err.Error(), "the file is unchanged: use the version of zsetd that has written it, or a later one") {
		t.Errorf("the server gives no advice: %v", err)
	}
	to := filepath.Join(t.TempDir(), "new.db")
	_, err = archive.Check(path, time.Now(), nil)
	refused("check", err)
	_, _, err = archive.Compact(path, nil)
	refused("compact", err)
	_, err = archive.Backup(path, to, false, nil)
	refused("backup", err)
	_, err = archive.Salvage(path, to, nil)
	refused("salvage", err)
	_, err = archive.ExportJSON(io.Discard, path, time.Now(), nil)
	refused("export", err)
	if _, err := os.Stat(to); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a tool has written %s (%v)", to, err)
	}
}

// setFormat writes a number of a format to the manifest of a file, and members that this
// version does not know.
func setFormat(t *testing.T, path string, format int) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.Update(func(tx *bbolt.Tx) error {
		about := tx.Bucket([]byte("about"))
		text := about.Get([]byte("manifest"))[4:]
		text = regexp.MustCompile(`^\{"format":\d+,`).ReplaceAll(text, fmt.Appendf(nil, `{"format":%d,"spaces":"of another kind",`, format))
		sum := crc32.Checksum(append([]byte("manifest"), text...), crc32.MakeTable(crc32.Castagnoli))
		return about.Put([]byte("manifest"), append(binary.LittleEndian.AppendUint32(nil, sum), text...))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestChosenSubtests checks that a pattern for -run that chooses no subtest fails the test
// that can write files.
func TestChosenSubtests(t *testing.T) {
	rerun.Skip(t)
	out, err := exec.Command(os.Args[0], "-test.run", "TestFormats/^nosuch$").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "-run chooses no ") {
		t.Errorf("%v\n%s", err, out)
	}
}
