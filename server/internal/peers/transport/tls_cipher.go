//lint:file-ignore ST1005 An error begins with the name of Go.

package transport

import (
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
)

// The cipher suites of TLS up to 1.2 have two names each: that of IANA, which Go uses,
// and OpenSSL's, which is usual in redis.conf. Both are accepted. The lists have no
// other words of OpenSSL.

// cipherSuites returns the suites of TLS up to 1.2 by both names. RC4 is not among
// them: it must not be used (RFC 7465), and current builds of OpenSSL lack it.
func cipherSuites() map[string]uint16 {
	openSSL := strings.NewReplacer("TLS_RSA_WITH_", "", "TLS_", "", "_WITH_", "-", "AES_128_CBC", "AES128", "AES_256_CBC", "AES256",
		"AES_128", "AES128", "AES_256", "AES256", "3DES_EDE_CBC", "DES-CBC3", "CHACHA20_POLY1305_SHA256", "CHACHA20-POLY1305", "_", "-")
	suites := map[string]uint16{}
	for _, s := range append(tls.CipherSuites(), tls.InsecureCipherSuites()...) {
		if !strings.Contains(s.Name, "_WITH_") || strings.Contains(s.Name, "_RC4_") { // without WITH: TLS 1.3
			continue
		}
		suites[s.Name], suites[openSSL.Replace(s.Name)] = s.ID, s.ID
	}
	return suites
}

// parseCiphers parses names of suites that are separated by colons. The order has no
// effect, as Go has an order of its own. An empty list returns nil: Go's default.
func parseCiphers(text string) (ids []uint16, err error) {
	if text == "" {
		return nil, nil
	}
	suites := cipherSuites()
	for name := range strings.SplitSeq(text, ":") {
		id, ok := suites[name]
		if !ok {
			return nil, unknownCipher(name)
		}
		ids = append(ids, id)
	}
	return ids, nil
}

func unknownCipher(name string) error { return fmt.Errorf("unknown cipher %q", name) }

// checkCiphersuites accepts only a list of all suites of TLS 1.3 that Go has, in any
// order: Go enables them all.
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
	given := strings.Split(text, ":")
	for _, name := range given {
		if !slices.Contains(names, name) {
			return unknownCipher(name)
		}
	}
	for _, name := range names {
		if !slices.Contains(given, name) {
			return fmt.Errorf("Go's crypto/tls cannot disable %s: it always enables %s", name, strings.Join(names, ":"))
		}
	}
	return nil
}
