package browser

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"strings"
	"testing"
)

// testForms reads values that are JSON, gzip, MessagePack, base64 and times.
func testForms(t *testing.T, open func(...string) *page) {
	p := open(live()...)
	var gz, zl, bomb bytes.Buffer
	w := gzip.NewWriter(&gz)
	w.Write([]byte(`{"compressed":[1,2.0]}`))
	w.Close()
	z := zlib.NewWriter(&zl)
	z.Write([]byte("plain text"))
	z.Close()
	w = gzip.NewWriter(&bomb)
	w.Write(make([]byte, 20<<20))
	w.Close()
	// A value of each kind of the specification, in an array of 16 bits of length.
	packed := "\xdc\x00\x19" + "\x7f" + "\xff" + "\xc0" + "\xc2" + "\xc3" + "\xa4a\"é" + "\xc4\x02\x00\xff" + "\xd9\x01b" + "\xca\x3f\x00\x00\x00" + "\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00" +
		"\xcc\xff" + "\xcd\xff\xff" + "\xce\xff\xff\xff\xff" + "\xcf\xff\xff\xff\xff\xff\xff\xff\xff" + "\xd0\x80" + "\xd1\x80\x00" + "\xd2\x80\x00\x00\x00" + "\xd3\x80\x00\x00\x00\x00\x00\x00\x00" +
		"\x81\x01\x90" + "\xde\x00\x01\xa1k\xc0" + "\xd6\xff\x00\x00\x00\x01" + "\xd7\xff\x00\x00\x00\x04\x00\x00\x00\x00" + "\xc7\x0c\xff\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff" + "\xd4\x05\xab" + "\xc5\x00\x01\x01"
	shown := `[ 127, -1, null, false, true, "a\"é", bytes 00ff, "b", 0.5, 1.5, 255, 65535, 4294967295, 18446744073709551615, -128, -32768, -2147483648, -9223372036854775808,` +
		` { 1: [] }, { "k": null }, 1970-01-01T00:00:01.000Z, 1970-01-01T00:00:00.000Z, 1969-12-31T23:59:59.000Z, extension 5: ab, bytes 01 ]`
	for _, one := range []struct {
		name, value, form, want string // without a form: the one that the page chooses
	}{
		{"json", `{"a":[1,{}]}`, "", `{ "a": [ 1, {} ] }`},
		{"gzip", gz.String(), "", `{ "compressed": [ 1, 2.0 ] }`},
		{"zlib", zl.String(), "gzip", "plain text"},
		{"bomb", bomb.String(), "", "It becomes more than 700,000 bytes."},
		{"cut", gz.String()[:15], "", "The compressed data are damaged, or not all here."},
		{"no gzip", "text", "gzip", "This is neither gzip nor zlib."},
		{"msgpack", packed, "", shown},
		{"map", "\x82\xa7compact\xc3\xa6schema\x00", "", `{ "compact": true, "schema": 0 }`},
		{"short", "\x82\xa7compact\xc3\xa6sch", "msgpack", "This is no MessagePack, or not all of it."},
		{"long", "\x01\x02", "msgpack", "This is no MessagePack: 1 bytes follow the first value."},
		{"unused", "\xc1", "msgpack", "This is no MessagePack."},
		{"deep", strings.Repeat("\x91", 1000), "msgpack", "This MessagePack is nested too deeply."},
		{"lies", "\xdd\xff\xff\xff\xff\x01", "msgpack", "This is no MessagePack, or not all of it."},
		{"base64 of JSON", "eyJhIjoxfQ==", "frombase64", `{ "a": 1 }`},
		{"base64 of an address", "PDw_Pz8-Pg", "frombase64", "<<???>>"},
		{"no base64", "a b!", "frombase64", "This is no base64."},
		{"as base64", "\xff\xfe", "base64", "//4="},
		{"hex", "AB\xff", "hex", "00000000 41 42 ff AB."},
		{"seconds", "1700000000", "date", "2023-11-14T22:13:20.000Z"},
		{"milliseconds", "1700000000123", "date", "2023-11-14T22:13:20.123Z"},
		{"microseconds", "1700000000123456", "date", "2023-11-14T22:13:20.123Z"},
		{"nanoseconds", "1700000000123456789", "date", "read as nanoseconds since 1970"},
		{"no date", "soon", "date", "This is no number of a time."},
	} {
		p.srv.Must("SET", "form", one.value)
		p.visit("keys?key=form")
		p.is(`document.querySelector('#detail pre.text')?.textContent`)
		if one.form != "" {
			p.fill("#detail select[aria-label=Form]", one.form)
		}
		p.until(one.name+" is read", func() bool {
			return strings.Contains(strings.Join(strings.Fields(p.text("#detail pre.text")), " "), one.want)
		})
	}
	// A form that needs all of a value has it, and a field of a hash has the forms, too.
	p.srv.Must("SET", "form", `["`+strings.Repeat("x", 100_000)+`"]`)
	p.visit("keys?key=form")
	p.shows("#detail .pager", "bytes 0 to 16,384 of 100,004")
	p.fill("#detail select[aria-label=Form]", "json")
	p.until("the JSON is whole", func() bool { return len(p.text("#detail pre.text")) > 100_000 })
	p.srv.Must("HSET", "hash", "f", gz.String()+strings.Repeat("\x00", 300))
	p.visit("keys?key=hash")
	p.click("#detail button", "all")
	p.fill("#dialog select[aria-label=Form]", "hex")
	p.shows("#dialog pre", "1f 8b")
}
