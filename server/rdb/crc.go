package rdb

import (
	"encoding/binary"
	"hash/crc64"
)

// crcTables are the tables of the checksum: a CRC-64 of Jones's polynomial that begins with
// 0 and is not inverted. Table i has the checksums of a byte that i zero bytes follow, so
// eight bytes are processed at once ("slicing-by-8": M. Kounavis and F. Berry, A
// Systematic Approach to Building High Performance Software-based CRC Generators, 2005).
// Package hash/crc64 does that for long texts only, and most keys are short.
type crcTables [8]crc64.Table

func newCRCTables() *crcTables {
	t := new(crcTables)
	t[0] = *crc64.MakeTable(0x95ac9329ac4bc9b5) // the polynomial, its bits reversed
	for i := range t[0] {
		for k := 1; k < len(t); k++ {
			t[k][i] = t[0][byte(t[k-1][i])] ^ t[k-1][i]>>8
		}
	}
	return t
}

// sum adds bytes to a checksum.
func (t *crcTables) sum(sum uint64, b []byte) uint64 {
	for ; len(b) >= 8; b = b[8:] {
		sum ^= binary.LittleEndian.Uint64(b)
		sum = t[7][byte(sum)] ^ t[6][byte(sum>>8)] ^ t[5][byte(sum>>16)] ^ t[4][byte(sum>>24)] ^
			t[3][byte(sum>>32)] ^ t[2][byte(sum>>40)] ^ t[1][byte(sum>>48)] ^ t[0][sum>>56]
	}
	for _, x := range b {
		sum = t[0][byte(sum)^x] ^ sum>>8
	}
	return sum
}
