package transport

import (
	"crypto/tls"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestTLSCiphers checks lists of suites by names of OpenSSL and of IANA.
func TestTLSCiphers(t *testing.T) {
	for text, want := range map[string][]uint16{
		"":                                      nil,
		"ECDHE-RSA-AES128-GCM-SHA256":           {tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256},
		"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": {tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256},
		"AES128-SHA:DES-CBC3-SHA:TLS_RSA_WITH_AES_256_GCM_SHA384": {
			tls.TLS_RSA_WITH_AES_128_CBC_SHA, tls.TLS_RSA_WITH_3DES_EDE_CBC_SHA, tls.TLS_RSA_WITH_AES_256_GCM_SHA384,
		},
		"ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-AES128-SHA256:ECDHE-RSA-DES-CBC3-SHA": {
			tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256, tls.TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA,
		},
	} {
		if got, err := parseCiphers(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %x, %v; want %x", text, got, err, want)
		}
	}
	for text, unknown := range map[string]string{
		"XY": "XY",
		":":  "",
		// OpenSSL's selection language.
		"DEFAULT":                           "DEFAULT",
		"HIGH:!aNULL":                       "HIGH",
		"AES128-SHA:!AES256-SHA":            "!AES256-SHA",
		"ECDHE+AESGCM":                      "ECDHE+AESGCM",
		"AES128-SHA:@STRENGTH":              "@STRENGTH",
		"AES128-SHA AES256-SHA":             "AES128-SHA AES256-SHA",
		"AES128-SHA:TLS_AES_128_GCM_SHA256": "TLS_AES_128_GCM_SHA256", // of TLS 1.3
		// Suites that Go lacks.
		"DHE-RSA-AES128-SHA": "DHE-RSA-AES128-SHA",
		"ECDHE-RSA-RC4-SHA":  "ECDHE-RSA-RC4-SHA",
	} {
		ids, err := parseCiphers(text)
		if want := `unknown cipher "` + unknown + `"`; err == nil || err.Error() != want {
			t.Errorf("%q: %x, %v; want %s", text, ids, err, want)
		}
	}
}

// TestTLSCiphersOfOpenSSL checks that every name is one of OpenSSL's, and belongs to the
// same suite there.
func TestTLSCiphersOfOpenSSL(t *testing.T) {
	path, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("openssl is not installed")
	}
	suites := cipherSuites()
	for name, id := range suites {
		if strings.HasPrefix(name, "TLS_") || strings.Contains(name, "DES") { // builds of OpenSSL often lack DES
			continue
		}
		out, err := exec.Command(path, "ciphers", "-stdname", "-s", "-tls1_2", name+":@SECLEVEL=0").CombinedOutput()
		words := strings.Fields(string(out)) // TLS_… - NAME …
		if err != nil || len(words) < 3 || words[2] != name || suites[words[0]] != id {
			t.Errorf("openssl ciphers %s: %s, %v", name, out, err)
		}
	}
}

// TestTLSCiphersuites checks lists of the suites of TLS 1.3.
func TestTLSCiphersuites(t *testing.T) {
	const all = "TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384"
	for text, want := range map[string]string{
		"":                                "",
		all:                               "",
		all + ":TLS_AES_128_CCM_SHA256":   `unknown cipher "TLS_AES_128_CCM_SHA256"`,
		strings.ReplaceAll(all, ":", ","): `unknown cipher "` + strings.ReplaceAll(all, ":", ",") + `"`,
		strings.TrimSuffix(all, ":TLS_AES_256_GCM_SHA384"): "Go's crypto/tls cannot disable TLS_AES_256_GCM_SHA384: it always enables",
	} {
		err := checkCiphersuites(text)
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v; want %q", text, err, want)
		}
	}
}
