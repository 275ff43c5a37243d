package keyslot

// Count is the number of slots of a cluster.
const Count = 16384

// Of returns the slot of a key, from 0 to Count-1. It is a hash of the text between the
// first { and the next }, if that is not empty, or else of the whole key. O(len(key)).
func Of[T string | []byte](key T) int {
	tag := key
	for i := range len(key) {
		if key[i] != '{' {
			continue
		}
		for j := i + 1; j < len(key); j++ {
			if key[j] == '}' {
				if j > i+1 {
					tag = key[i+1 : j]
				}
				break
			}
		}
		break
	}
	crc := uint16(0) // CRC-16/XMODEM
	for i := range len(tag) {
		crc ^= uint16(tag[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc) % Count
}
