package keyslot_test

import (
	"fmt"

	"github.com/zsetd/zsetd/server/internal/base/keyslot"
)

// Keys with the same text in braces have the same slot. The first number is the check
// value of CRC-16/XMODEM.
func Example() {
	fmt.Printf("%#x\n", keyslot.Of("123456789"))
	fmt.Println(keyslot.Of("user1000") == keyslot.Of("{user1000}.following"))
	fmt.Println(keyslot.Of("foo{}{bar}") == keyslot.Of("bar"))
	// Output:
	// 0x31c3
	// true
	// false
}
