package console

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"testing"

	"github.com/zsetd/zsetd/protocol"
)

// TestMemberList checks that lists of members are read up to the first that is not whole.
func TestMemberList(t *testing.T) {
	for text, want := range map[string]string{
		"": "[]", "3:ann": `["ann"]`, "3:ann,3:bob": `["ann" "bob"]`, "0:,1:,": `["" ","]`, "1:,,2:1:": `["," "1:"]`,
		"4:ann": "[]", "3:ann,4:bob": `["ann"]`, "3:ann,": `["ann"]`, "-1:a": "[]", "x:ann": "[]", "3ann": "[]", ":": "[]",
	} {
		if got := fmt.Sprintf("%q", memberList(text)); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// TestPlain checks the JSON of replies, and that of values of INFO.
func TestPlain(t *testing.T) {
	for _, one := range []struct {
		value any
		want  string
	}{
		{"a\"b", `"a\"b"`}, {"\xff", `{"base64":"/w=="}`}, {protocol.Status("OK"), `"OK"`}, {protocol.ReplyError("ERR x"), `{"error":"ERR x"}`},
		{1.5, "1.5"}, {math.Inf(1), `"+Inf"`}, {math.Inf(-1), `"-Inf"`}, {math.NaN(), `"NaN"`}, {nil, "null"}, {true, "true"}, {int64(-7), "-7"},
		{[]any{"a", int64(1), nil}, `["a",1,null]`}, {[]any{}, "[]"},
		{protocol.Map{{Key: "k\xff", Value: math.Inf(1)}, {Key: int64(1), Value: "\xff"}}, `{"":{"base64":"/w=="},"k�":"+Inf"}`},
	} {
		if b, err := json.Marshal(plain(one.value)); err != nil || string(b) != one.want {
			t.Errorf("%v: %s, %v, want %s", one.value, b, err, one.want)
		}
	}
	for value, want := range map[string]any{
		"0": json.Number("0"), "12": json.Number("12"), "-1.50": json.Number("-1.50"), "0.5": json.Number("0.5"), "007": "007", "00": "00",
		"nan": "nan", "inf": "inf", "": "", "x\xff": "x�", "8.6.3": "8.6.3",
		"keys=1,expires=0": map[string]any{"keys": json.Number("1"), "expires": json.Number("0")},
	} {
		if got := infoValue(value); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %#v, want %#v", value, got, want)
		}
	}
}
