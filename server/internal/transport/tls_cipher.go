//lint:file-ignore ST1005 Some errors begin with the name of Go.

package transport

import (
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// The cipher suites of TLS up to 1.2 have two names each: the standard's, which Go
// uses, and OpenSSL's, which Redis accepts. OpenSSL's lists also have a syntax of
// their own.

// cipherSuite is a suite that Go supports.
type cipherSuite struct {
	ID       uint16
	Name     string   // OpenSSL's
	words    []string // words of a list that mean several suites, this one among them
	standard string
	insecure bool // insecure according to Go: only its own name selects it
}

// CipherSuites returns the suites of TLS up to 1.2. RC4 is not among them: it must
// not be used (RFC 7465), and current builds of OpenSSL lack it.
func CipherSuites() (list []cipherSuite) {
	for _, s := range append(tls.CipherSuites(), tls.InsecureCipherSuites()...) {
		exchange, cipher, ok := strings.Cut(strings.TrimPrefix(s.Name, "TLS_"), "_WITH_")
		if !ok || strings.HasPrefix(cipher, "RC4") {
			continue // a suite of TLS 1.3
		}
		c := cipherSuite{ID: s.ID, standard: s.Name, insecure: s.Insecure, words: []string{"ALL"}}
		kx, auth, both := strings.Cut(exchange, "_")
		if both {
			c.Name = kx + "-" + auth + "-"
			c.words = append(c.words, "ECDH", "EECDH", "ECDHE", "kECDHE", "kEECDH", "a"+auth)
			if auth == "ECDSA" {
				c.words = append(c.words, "ECDSA")
			}
		} else {
			c.words = append(c.words, "kRSA", "aRSA", "RSA")
		}
		parts := strings.Split(cipher, "_")
		hash := parts[len(parts)-1]
		switch parts[0] {
		case "AES":
			c.Name += "AES" + parts[1]
			c.words = append(c.words, "AES", "HIGH", "AES"+parts[1])
			if parts[2] == "GCM" {
				c.Name += "-GCM"
				c.words = append(c.words, "AESGCM")
			}
			c.Name += "-" + hash
		case "CHACHA20":
			c.Name += "CHACHA20-POLY1305"
			c.words = append(c.words, "HIGH", "CHACHA20")
		case "3DES":
			c.Name += "DES-CBC3-SHA"
			c.words = append(c.words, "MEDIUM", "3DES")
		}
		if hash == "SHA" {
			c.words = append(c.words, "SHA1", "SHA", "TLSv1", "TLSv1.0", "SSLv3")
		} else {
			c.words = append(c.words, "TLSv1.2")
			if parts[0] == "AES" && parts[2] == "CBC" {
				c.words = append(c.words, hash)
			}
		}
		list = append(list, c)
	}
	return list
}

// absentCiphers are words of OpenSSL for suites that Go lacks: they may be
// excluded.
const absentCiphers = " aNULL eNULL NULL LOW MEDIUM EXP EXPORT EXPORT40 EXPORT56 DES RC2 RC4 IDEA SEED CAMELLIA CAMELLIA128 " +
	"CAMELLIA256 ARIA ARIA128 ARIA256 ARIAGCM AESCCM AESCCM8 MD5 SHA384 GOST GOST89MAC GOST94 aGOST aGOST01 kGOST DH ADH AECDH EDH " +
	"DHE kDH kDHE kEDH kDHr kDHd aDH aDSS DSS PSK kPSK kECDHEPSK kDHEPSK kRSAPSK aPSK SRP kSRP aSRP KRB5 kECDHr kECDHe aECDH " +
	"COMPLEMENTOFALL COMPLEMENTOFDEFAULT SSLv2 FZA "

// ParseCiphers parses a list as OpenSSL does: names and words, words joined by plus
// signs, "!" and "-" to exclude, "+" to move to the end. The order has no effect,
// as Go has an order of its own. An empty list returns nil: Go's default.
func ParseCiphers(text string) ([]uint16, error) {
	if text == "" {
		return nil, nil
	}
	all := CipherSuites()
	in, never := map[uint16]bool{}, map[uint16]bool{}
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(":, ;", r) }) {
		how := byte(0)
		if strings.ContainsRune("!-+", rune(word[0])) {
			how, word = word[0], word[1:]
		}
		if word == "@STRENGTH" || strings.HasPrefix(word, "@SECLEVEL=") && len(word) == len("@SECLEVEL=1") && strings.ContainsRune("012", rune(word[10])) {
			continue // affects the order only; and Go requires more than level 2 does
		}
		matched := false
		for _, c := range all {
			if !c.is(word, how != 0) {
				continue
			}
			matched = true
			switch how {
			case '!':
				never[c.ID] = true
			case '-':
				delete(in, c.ID)
			case 0:
				in[c.ID] = true
			}
		}
		first, _, _ := strings.Cut(strings.ReplaceAll(word, "+", "-"), "-")
		absent := strings.Contains(absentCiphers, " "+first+" ") || strings.Contains(absentCiphers, " "+word+" ")
		switch {
		case !matched && how == 0:
			return nil, fmt.Errorf("cipher %q is not supported by Go's crypto/tls", word)
		case !matched && !absent:
			return nil, fmt.Errorf("unknown cipher %q", word)
		}
	}
	ids := []uint16{}
	for _, c := range all {
		if in[c.ID] && !never[c.ID] {
			ids = append(ids, c.ID)
		}
	}
	if len(ids) == 0 {
		return nil, errors.New("the list selects no cipher")
	}
	return ids, nil
}

// is reports whether a word of a list means the suite. Words that mean several
// suites include only those that Go calls secure, as DEFAULT does; exclude marks
// words that exclude.
func (c *cipherSuite) is(word string, exclude bool) bool {
	if word == c.Name || word == c.standard {
		return true
	}
	if c.insecure && !exclude {
		return false
	}
	if word == "DEFAULT" {
		return !c.insecure
	}
	for part := range strings.SplitSeq(word, "+") {
		if !slices.Contains(c.words, part) {
			return false
		}
	}
	return true
}

// checkCiphersuites accepts only a list that equals what Go does anyway.
func checkCiphersuites(text string) error {
	if text == "" {
		return nil
	}
	var names []string
	for _, s := range tls.CipherSuites() {
		if slices.Equal(s.SupportedVersions, []uint16{tls.VersionTLS13}) {
			names = append(names, s.Name)
		}
	}
	given := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(":, ;", r) })
	for _, name := range given {
		if !slices.Contains(names, name) {
			return fmt.Errorf("cipher %q for TLSv1.3 is not supported by Go's crypto/tls", name)
		}
	}
	for _, name := range names {
		if !slices.Contains(given, name) {
			return fmt.Errorf("Go's crypto/tls cannot disable %s: it always enables %s", name, strings.Join(names, ":"))
		}
	}
	return nil
}
