package protocol_test

import (
	"fmt"
	"testing"

	"github.com/zsetd/zsetd/protocol"
)

// TestJoinArgs checks that SplitArgs returns the words of JoinArgs, whatever bytes are in
// them.
func TestJoinArgs(t *testing.T) {
	words := []string{"", "plain", "two words", `"`, `'`, `\`, "\x00", "é", "a\nb\rc\td"}
	for b := range 256 {
		words = append(words, string([]byte{byte(b)}), string([]byte{'a', byte(b), 'b'}))
	}
	line := protocol.JoinArgs(words)
	got, ok := protocol.SplitArgs(nil, []byte(line))
	if !ok || len(got) != len(words) {
		t.Fatalf("%d words of %d: %q", len(got), len(words), line)
	}
	for i, word := range words {
		if string(got[i]) != word {
			t.Errorf("%q: %q", word, got[i])
		}
	}
}

func ExampleJoinArgs() {
	fmt.Println(protocol.JoinArgs([]string{"save", "", "a b", "plain"}))
	// Output: save "" "a b" plain
}
