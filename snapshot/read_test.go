package snapshot

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"
)

// edited returns a file after another program has changed its records.
func edited(t *testing.T, file []byte, edit func(tx *bbolt.Tx) error) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "edited.db")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	o := boltOptions()
	o.NoSync = true
	db, err := bbolt.Open(path, 0o600, o)
	if err == nil {
		err = errors.Join(db.Update(edit), db.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	if file, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	return file
}

// put returns a function that gives a record of a bucket another body, with the right
// checksum.
func put(bucket, name, body string) func(tx *bbolt.Tx) error {
	return func(tx *bbolt.Tx) error {
		value := append(make([]byte, sumSize), body...)
		seal(value, []byte(name))
		return tx.Bucket([]byte(bucket)).Put([]byte(name), value)
	}
}

// TestReadEdited reads files whose pages and checksums are right, with records that do not
// belong together.
func TestReadEdited(t *testing.T) {
	file := faultFile(t, true, 2)
	long := strings.Repeat("long", longKey)
	manifest := func(edit func(m *Manifest)) func(tx *bbolt.Tx) error {
		return func(tx *bbolt.Tx) error {
			bucket := tx.Bucket([]byte(aboutBucket))
			m, err := decodeManifest(bucket.Get([]byte(manifestName)))
			if err != nil {
				return err
			}
			edit(&m)
			value, err := m.encode()
			return errors.Join(err, bucket.Put([]byte(manifestName), value))
		}
	}
	remove := func(names ...[]byte) func(tx *bbolt.Tx) error {
		return func(tx *bbolt.Tx) (err error) {
			for _, name := range names {
				err = errors.Join(err, tx.Bucket([]byte(keysBucket)).Delete(name))
			}
			return err
		}
	}
	text := func(change func(members map[string]any)) func(tx *bbolt.Tx) error {
		return func(tx *bbolt.Tx) error {
			var members map[string]any
			err := json.Unmarshal(tx.Bucket([]byte(aboutBucket)).Get([]byte(manifestName))[sumSize:], &members)
			change(members)
			b, err2 := json.Marshal(members)
			return errors.Join(err, err2, put(aboutBucket, manifestName, string(b))(tx))
		}
	}
	generation := string(binary.BigEndian.AppendUint64(nil, 1))
	for _, test := range []struct {
		says string // empty if the file is sound
		want error
		edit func(tx *bbolt.Tx) error
	}{
		{"", nil, manifest(func(*Manifest) {})},
		{"a bbolt file without a manifest", ErrForeign, func(tx *bbolt.Tx) error {
			var err error
			for _, name := range []string{aboutBucket, checkpointsBucket, groupsBucket, keysBucket} {
				err = errors.Join(err, tx.DeleteBucket([]byte(name)))
			}
			return err
		}},
		{`the first record is "\x00\x00\x00\x00" in bucket`, ErrForeign, func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte(aboutBucket)).Delete([]byte(manifestName))
		}},
		{`the first record is "other" in bucket`, ErrForeign, func(tx *bbolt.Tx) error {
			bucket, err := tx.CreateBucket([]byte("a"))
			return errors.Join(err, bucket.Put([]byte("other"), []byte("value")))
		}},
		{`unexpected record "other" in bucket ["about"]`, ErrDamaged, put(aboutBucket, "other", "value")},
		{"damaged: invalid manifest", ErrDamaged, func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte(aboutBucket)).Put([]byte(manifestName), []byte("abc"))
		}},
		{"invalid manifest: format 0, invalid character", ErrDamaged, put(aboutBucket, manifestName, "no JSON")},
		{"invalid manifest: format 0, <nil>", ErrDamaged, text(func(m map[string]any) { m["format"] = 0 })},
		{"the file has a newer format: 3,", ErrNewer, text(func(m map[string]any) { m["format"], m["spaces"] = 3, "other" })},
		{"invalid manifest: json: cannot unmarshal string", ErrDamaged, text(func(m map[string]any) { m["spaces"] = "other" })},
		{"invalid manifest: format 1, and a log of 1048", ErrDamaged, text(func(m map[string]any) { m["format"] = 1 })},
		{"invalid manifest: format 2, and a log of 0 bytes", ErrDamaged, text(func(m map[string]any) { delete(m, "log") })},
		{"a log of 1048541 bytes, not 1048542", ErrDamaged, manifest(func(m *Manifest) { m.Log++ })},
		{"records are missing: found 6 of 6 bases and 2 of 3 journal parts", ErrDamaged, manifest(func(m *Manifest) { m.Journal.Records++ })},
		{"records are missing: found 6 of 7 bases and 2 of 2 journal parts", ErrDamaged, manifest(func(m *Manifest) { m.Bases.Records++ })},
		{`the value of key "a" in space 1: chunk 1 of 3 is missing`, ErrDamaged, remove(baseName(1, "a", 1))},
		{`the value of key "a" in space 1: chunk 2 of 3 is missing`, ErrDamaged, remove(baseName(1, "a", 2))},
		{`the value of key "a" in space 1: chunk 2 of 3 is missing`, ErrDamaged, // and the last record
			remove(baseName(1, "a", 2), baseName(1, "b", 0), baseName(2, "gone", 0), baseName(2, long, 0))},
		{`the value of key "a" in space 1 begins with chunk 1, of checkpoint 2`, ErrDamaged, remove(baseName(1, "a", 0))},
		{`the value of key "b" in space 1 begins with chunk 0, of checkpoint 3`, ErrDamaged,
			put(keysBucket, string(baseName(1, "b", 0)), strings.Repeat("\x00", 7)+"\x03\x00\x00\x00\x01")},
		{`the value of key "b" in space 1: invalid header`, ErrDamaged, put(keysBucket, string(baseName(1, "b", 0)), generation+"\x00\x00\x00")},
		{`the value of key "b" in space 1, chunk 0`, ErrDamaged, put(keysBucket, string(baseName(1, "b", 0)), generation[1:])},
		{"in space 2: invalid header", ErrDamaged, put(keysBucket, string(baseName(2, long, 0)), generation+"\x00\x00\x00\x01\xff")},
		{"in space 2: invalid header", ErrDamaged, put(keysBucket, string(baseName(2, long, 0)), generation+"\x00\x00\x00\x01\x05long")},
		{"a key of 1 KB or more in space 2", ErrDamaged, put(keysBucket, string(baseName(2, long, 0)), "short")},
	} {
		path := filepath.Join(t.TempDir(), "read.db")
		if err := os.WriteFile(path, edited(t, file, test.edit), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(path, Visitor{}); !errors.Is(err, test.want) || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%q: %v", test.says, err)
		}
		f, err := Open(path, Visitor{})
		if !errors.Is(err, test.want) || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%q: Open: %v", test.says, err)
		}
		if err == nil {
			err = f.Close()
		}
		if test.want == nil && err != nil {
			t.Error(err)
		}
	}
}

// TestErrorOfVisitor has each function of a visitor fail. Reading ends with its error, and
// salvage does.
func TestErrorOfVisitor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "v.db")
	if err := os.WriteFile(path, faultFile(t, true, 2), 0o600); err != nil {
		t.Fatal(err)
	}
	const calls = 1 + 2 + 2 + 6 // the manifest, parts of journals, groups, chunks of bases
	for n := range calls + 1 {
		stop, left := errors.New("stop"), n
		visit := func() error {
			if left--; left == -1 {
				return stop
			}
			return nil
		}
		v := Visitor{
			Begin:   func(Manifest) error { return visit() },
			Journal: func(uint64, []byte) error { return visit() },
			Base:    func(uint64, []byte, uint64, int, int, []byte) error { return visit() },
		}
		want := stop
		if n == calls {
			want = nil
		}
		for what, read := range map[string]func() error{
			"Read":    func() error { _, err := Read(path, v); return err },
			"Salvage": func() error { _, err := Salvage(path, v); return err },
		} {
			left = n
			if err := read(); !errors.Is(err, want) || n != calls && left != -1 {
				t.Errorf("%s, visit %d fails: %v after %d visits more", what, n, err, -1-left)
			}
		}
	}
	for what, read := range map[string]func(path string) error{
		"Inspect": func(path string) error { _, err := Inspect(path, Visitor{}); return err },
		"Salvage": func(path string) error { _, err := Salvage(path, Visitor{}); return err },
		"Probe":   Probe,
	} {
		if err := read(path + ".none"); !errors.Is(err, fs.ErrNotExist) || strings.Count(err.Error(), "v.db") != 1 {
			t.Errorf("%s of no file: %v", what, err)
		}
	}
}

// TestAgain reads parts of journals again: until the end, unless they are small, and not if they
// have changed.
func TestAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.db")
	f, err := Beside(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{10, 100_000, 3_000_000} {
		if _, err := f.Write(&Checkpoint{Time: time.Unix(1, 0), Journal: slices.Values([][]byte{bytes.Repeat([]byte{byte(n)}, n)})}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(f.Publish(path), f.Close()); err != nil {
		t.Fatal(err)
	}
	var parts []Part
	var records [][]byte
	ended := false
	if _, err := Read(path, Visitor{
		Part: func(p Part) error {
			if p.Rereadable() != (len(p.Records) > 10) {
				t.Errorf("a part of %d bytes can be read again: %t", len(p.Records), p.Rereadable())
			}
			if p.Rereadable() {
				parts, records = append(parts, p), append(records, bytes.Clone(p.Records))
			}
			return nil
		},
		End: func() error {
			ended = true
			var buf []byte
			for i, p := range parts {
				got, err := p.Again(buf)
				if err != nil || !bytes.Equal(got, records[i]) {
					t.Errorf("part %d: %d bytes of %d, %v", i, len(got), len(records[i]), err)
				}
				buf = got
			}
			file, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			if _, err := file.WriteAt([]byte("x"), parts[0].at+50); err != nil {
				return err
			}
			if err := errors.Join(file.Truncate(parts[1].at+50), file.Close()); err != nil {
				return err
			}
			if _, err := parts[0].Again(nil); !errors.Is(err, ErrDamaged) {
				t.Errorf("a part that has changed: %v", err)
			}
			if _, err := parts[1].Again(nil); err == nil {
				t.Error("a part that is no longer there can be read")
			}
			return nil
		},
	}); err != nil || !ended || len(parts) < 2 {
		t.Error(err, ended, len(parts))
	}
}
