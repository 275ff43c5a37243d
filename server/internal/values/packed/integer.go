package packed

import "encoding/binary"

// IntWidth returns the number of bytes for an integer: 2, 4 or 8.
func IntWidth(n int64) int {
	switch n {
	case int64(int16(n)):
		return 2
	case int64(int32(n)):
		return 4
	}
	return 8
}

// ReadInt returns the integer of width bytes at the beginning of b.
func ReadInt(b []byte, width int) int64 {
	switch width {
	case 2:
		return int64(int16(binary.LittleEndian.Uint16(b)))
	case 4:
		return int64(int32(binary.LittleEndian.Uint32(b)))
	}
	return int64(binary.LittleEndian.Uint64(b))
}

// WriteInt writes n, which must fit, to the first width bytes of b.
func WriteInt(b []byte, width int, n int64) {
	switch width {
	case 2:
		binary.LittleEndian.PutUint16(b, uint16(n))
	case 4:
		binary.LittleEndian.PutUint32(b, uint32(n))
	default:
		binary.LittleEndian.PutUint64(b, uint64(n))
	}
}
