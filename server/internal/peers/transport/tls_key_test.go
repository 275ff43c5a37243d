package transport

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTLSKeyPassword reads keys that OpenSSL has encrypted.
func TestTLSKeyPassword(t *testing.T) {
	plain, err := os.ReadFile("testdata/tls/plain.key")
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(plain)
	want, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob("testdata/tls/pkcs8-*.enc")
	if len(files) < 7 { // pkcs8-iter-1 was written with -iter 1
		t.Fatalf("only %q", files)
	}
	for _, path := range files {
		file, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for password, wantErr := range map[string]error{"": errKeyEncrypted, "no": errKeyPassword} {
			if _, err := decryptKey(file, password); err != wantErr {
				t.Errorf("%s with the password %q: %v, want %v", path, password, err, wantErr)
			}
		}
		key, err := decryptKey(file, "secret")
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		block, _ := pem.Decode(key)
		if got, err := x509.ParsePKCS8PrivateKey(block.Bytes); err != nil || !want.(*ecdsa.PrivateKey).Equal(got) {
			t.Errorf("%s: another key, %v", path, err)
		}
	}
	if got, err := decryptKey(plain, "whatever"); err != nil || !bytes.Equal(got, plain) {
		t.Errorf("a key without a password: %v", err)
	}
}

// TestTLSKeyUnsupported checks that the error of every other encryption names the
// command that converts the key.
func TestTLSKeyUnsupported(t *testing.T) {
	files, _ := filepath.Glob("testdata/tls/unsupported-*.enc")
	if len(files) < 7 {
		t.Fatalf("only %q", files)
	}
	for _, path := range files {
		file, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decryptKey(file, "secret"); err != errKeyMethod {
			t.Errorf("%s: %v", path, err)
		}
	}
	if !strings.Contains(errKeyMethod.Error(), "openssl pkcs8 -topk8 -v2 aes-256-cbc -in old.pem -out new.pem") {
		t.Error(errKeyMethod)
	}
}

// TestTLSKeyDamaged checks that damaged key files do not panic, and that truncated ones
// return an error.
func TestTLSKeyDamaged(t *testing.T) {
	file, err := os.ReadFile("testdata/tls/pkcs8-aes-256-cbc.enc")
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(file)
	if _, err := decryptPKCS8(block.Bytes, "secret"); err != nil {
		t.Fatal(err)
	}
	for i := range block.Bytes {
		if _, err := decryptPKCS8(block.Bytes[:i], "secret"); err == nil {
			t.Errorf("the first %d bytes are a key", i)
		}
		for _, x := range []byte{1, 0x80, 0xff} {
			damaged := bytes.Clone(block.Bytes)
			damaged[i] ^= x
			decryptPKCS8(damaged, "secret")
		}
	}
}

// TestTLSKeyIterations checks the bounds of the work that a key file may ask for.
func TestTLSKeyIterations(t *testing.T) {
	file, err := os.ReadFile("testdata/tls/pkcs8-iter-1.enc")
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(file)
	for iterations, want := range map[int]error{0: errKeyMethod, -1: errKeyMethod, 1: nil, 2: errKeyPassword, 10_000_001: errKeyMethod} {
		var k encryptedKey
		if _, err := asn1.Unmarshal(block.Bytes, &k); err != nil {
			t.Fatal(err)
		}
		k.Scheme.Parameters.Derivation.Parameters.Iterations = iterations
		der, err := asn1.Marshal(k)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decryptPKCS8(der, "secret"); err != want {
			t.Errorf("%d iterations: %v, want %v", iterations, err, want)
		}
	}
}
