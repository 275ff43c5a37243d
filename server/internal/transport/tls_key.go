package transport

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/des"
	"crypto/pbkdf2"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"hash"
)

// Keys with a password. OpenSSL writes two formats. Go's library reads the old one
// (openssl rsa -aes256), but not PKCS #8 (openssl pkcs8, genpkey, req). This file
// reads PKCS #8 with the algorithms that OpenSSL has used since 2000.

// ErrKeyEncrypted is an error of a private key file.
var (
	ErrKeyEncrypted = errors.New("the key is encrypted: set tls-key-file-pass")
	ErrKeyPassword  = errors.New("wrong password in tls-key-file-pass")
	ErrKeyMethod    = errors.New("unsupported encryption of the key: convert it with openssl pkcs8 -topk8 -v2 aes-256-cbc")
)

// DecryptKey returns a key file without its password, if it has one.
func DecryptKey(file []byte, password string) ([]byte, error) {
	for rest := file; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return file, nil
		}
		//lint:ignore SA1019 A key in this format relies on the permissions of its file.
		old := x509.IsEncryptedPEMBlock(block)
		if !old && block.Type != "ENCRYPTED PRIVATE KEY" {
			continue
		}
		if password == "" {
			return nil, ErrKeyEncrypted
		}
		der, err := []byte(nil), error(nil)
		if old {
			//lint:ignore SA1019 As above.
			der, err = x509.DecryptPEMBlock(block, []byte(password))
			if errors.Is(err, x509.IncorrectPasswordError) {
				err = ErrKeyPassword
			}
		} else {
			block.Type = "PRIVATE KEY"
			der, err = DecryptPKCS8(block.Bytes, password)
		}
		if err != nil {
			return nil, err
		}
		return pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: der}), nil
	}
}

// encryptedKey and the next two types are defined in RFC 5958 and RFC 8018.
type encryptedKey struct {
	Algorithm pkix.AlgorithmIdentifier
	Data      []byte
}

type pbes2 struct{ Derivation, Encryption pkix.AlgorithmIdentifier }

type pbkdf2Parameters struct {
	Salt       []byte
	Iterations int
	KeyLength  int                      `asn1:"optional"`
	Hash       pkix.AlgorithmIdentifier `asn1:"optional"`
}

// DecryptPKCS8 decrypts a key with a password: PBES2 with PBKDF2, and AES or triple
// DES.
func DecryptPKCS8(der []byte, password string) ([]byte, error) {
	var outer encryptedKey
	var scheme pbes2
	var p pbkdf2Parameters
	var iv []byte
	if _, err := asn1.Unmarshal(der, &outer); err != nil {
		return nil, err
	}
	oid := func(a pkix.AlgorithmIdentifier) string { return a.Algorithm.String() }
	if oid(outer.Algorithm) != "1.2.840.113549.1.5.13" {
		return nil, ErrKeyMethod
	}
	if _, err := asn1.Unmarshal(outer.Algorithm.Parameters.FullBytes, &scheme); err != nil {
		return nil, err
	}
	if oid(scheme.Derivation) != "1.2.840.113549.1.5.12" {
		return nil, ErrKeyMethod
	}
	if _, err := asn1.Unmarshal(scheme.Derivation.Parameters.FullBytes, &p); err != nil {
		return nil, err
	}
	sum := map[string]func() hash.Hash{
		"": sha1.New, "1.2.840.113549.2.7": sha1.New, "1.2.840.113549.2.9": sha256.New,
		"1.2.840.113549.2.10": sha512.New384, "1.2.840.113549.2.11": sha512.New,
	}[oid(p.Hash)]
	type method struct {
		size int
		make func([]byte) (cipher.Block, error)
	}
	m, known := map[string]method{
		"2.16.840.1.101.3.4.1.2": {16, aes.NewCipher}, "2.16.840.1.101.3.4.1.22": {24, aes.NewCipher},
		"2.16.840.1.101.3.4.1.42": {32, aes.NewCipher}, "1.2.840.113549.3.7": {24, des.NewTripleDESCipher},
	}[oid(scheme.Encryption)]
	const maxIterations = 10_000_000 // bounds the time that a file can delay the start
	if sum == nil || !known || p.Iterations < 1 || p.Iterations > maxIterations {
		return nil, ErrKeyMethod
	}
	if _, err := asn1.Unmarshal(scheme.Encryption.Parameters.FullBytes, &iv); err != nil {
		return nil, err
	}
	key, err := pbkdf2.Key(sum, password, p.Salt, p.Iterations, m.size)
	if err != nil {
		return nil, err
	}
	block, err := m.make(key)
	if err != nil {
		return nil, err
	}
	n := len(outer.Data)
	if len(iv) != block.BlockSize() || n == 0 || n%len(iv) != 0 {
		return nil, fmt.Errorf("invalid length of the encrypted key: %d bytes", n)
	}
	out := make([]byte, n)
	cipher.NewCBCDecrypter(block, iv).CryptBlocks(out, outer.Data)
	pad := int(out[n-1])
	if pad < 1 || pad > len(iv) || !bytes.Equal(out[n-pad:], bytes.Repeat([]byte{byte(pad)}, pad)) {
		return nil, ErrKeyPassword
	}
	if out = out[:n-pad]; asn1Error(out) != nil {
		return nil, ErrKeyPassword // the padding was valid by chance
	}
	return out, nil
}

// asn1Error returns the error of parsing a value on its own.
func asn1Error(der []byte) error {
	var v asn1.RawValue
	_, err := asn1.Unmarshal(der, &v)
	return err
}
