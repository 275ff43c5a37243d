package forward

import "testing"

// TestWordAt checks that words of commands and replies are found, and that malformed
// replies have none.
func TestWordAt(t *testing.T) {
	for _, test := range []struct {
		array               string
		i                   int
		before, word, after string
	}{
		{"*2\r\n$4\r\nSCAN\r\n$2\r\n17\r\n", 1, "*2\r\n$4\r\nSCAN\r\n", "17", ""},
		{"*4\r\n$4\r\nscan\r\n$1\r\n0\r\n$5\r\ncount\r\n$1\r\n1\r\n", 1, "*4\r\n$4\r\nscan\r\n", "0", "$5\r\ncount\r\n$1\r\n1\r\n"},
		{"*2\r\n$1\r\n5\r\n*0\r\n", 0, "*2\r\n", "5", "*0\r\n"},
		{"*2\r\n:5\r\n*0\r\n", 0, "", "", ""},
		{"*2\r\n$-1\r\n*0\r\n", 0, "", "", ""},
		{"*2\r\n$9\r\n5\r\n", 0, "", "", ""},
		{"+OK\r\n", 0, "", "", ""},
		{"", 0, "", "", ""},
	} {
		before, word, after := wordAt([]byte(test.array), test.i)
		if string(before) != test.before || string(word) != test.word || string(after) != test.after {
			t.Errorf("%q: %q, %q, %q", test.array, before, word, after)
		}
	}
}
