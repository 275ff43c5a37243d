package rdb

import (
	"encoding/binary"
	"strings"

	"github.com/zsetd/zsetd/protocol"
)

// opLegacyFunction is the opcode of libraries of functions in files of release
// candidates of Redis 7.0.
const opLegacyFunction = 246

// AppendFunctions appends the reply of FUNCTION DUMP for libraries with the given
// codes.
func (c *Codec) AppendFunctions(dst []byte, codes []string) []byte {
	start := len(dst)
	for _, code := range codes {
		dst = c.appendText(append(dst, opFunction), []byte(code))
	}
	return c.appendFooter(dst, start, version)
}

// Functions returns the codes of the libraries in such a payload. They are nil, and
// wrong is "", if version or checksum are invalid; wrong is the error text of Redis
// for any other error.
func (c *Codec) Functions(b []byte) (codes []string, wrong string) {
	if len(b) < 10 {
		return nil, ""
	}
	body, foot := b[:len(b)-10], b[len(b)-10:]
	if !known(int(binary.LittleEndian.Uint16(foot))) && !c.AnyVersion || !c.intact(b) {
		return nil, ""
	}
	codes = []string{}
	in := &input{rest: body}
	for len(in.rest) > 0 {
		var code string
		switch in.byte() {
		case opFunction:
			code = string(in.text())
			wrong = in.errorText(wrong, "Failed loading library payload")
		case opLegacyFunction:
			code, wrong = in.legacyFunction()
		default:
			return nil, "given type is not a function"
		}
		if wrong != "" {
			return nil, wrong
		}
		codes = append(codes, code)
	}
	return codes, ""
}

// errorText returns before, or now if before is empty and the input is bad or spoiled.
func (in *input) errorText(before, now string) string {
	if before == "" && !in.sound() {
		return now
	}
	return before
}

// legacyFunction reads a library whose name and engine are stored beside its code.
func (in *input) legacyFunction() (code, wrong string) {
	name := string(in.text())
	wrong = in.errorText(wrong, "Failed loading library name")
	engine := string(in.text())
	wrong = in.errorText(wrong, "Failed loading engine name")
	described := in.length()
	wrong = in.errorText(wrong, "Failed loading library description indicator")
	if described != 0 {
		in.text()
		wrong = in.errorText(wrong, "Failed loading library description")
	}
	blob := string(in.text())
	wrong = in.errorText(wrong, "Failed loading library blob")
	return "#!" + engine + " name=" + name + "\n" + blob, wrong
}

// AppendLibrary appends a library of functions to a file, which then only Redis
// since 7.0 and Valkey can load; [Target.Functions] says whether the target can.
func (w *Writer) AppendLibrary(dst []byte, code string) []byte {
	start := len(dst)
	return w.add(w.codec.appendText(append(dst, opFunction), []byte(code)), start)
}

// LibraryName returns the name of a library of functions, which its first line
// contains, or "".
func LibraryName(code string) string {
	line, _, _ := strings.Cut(code, "\n")
	words, _ := protocol.SplitArgs(nil, []byte(line))
	for _, word := range words {
		if len(word) > 5 && protocol.EqualFold(word[:5], "NAME=") {
			return string(word[5:])
		}
	}
	return ""
}
