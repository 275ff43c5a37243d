package transport

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/pbkdf2"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"hash"
)

// Keys with a password, which Go's library does not read: PKCS #8 (RFC 5958) encrypted
// by PBES2 with PBKDF2 and AES-CBC (RFC 8018). OpenSSL writes such keys by default.
// Other encryptions are obsolete (PBES1, DES, RC2, PEM headers) or rare (scrypt); openssl
// converts them.

// These are the errors of an encrypted key.
var (
	errKeyEncrypted = errors.New("the key is encrypted: set tls-key-file-pass")
	errKeyPassword  = errors.New("wrong password in tls-key-file-pass")
	errKeyMethod    = errors.New("unsupported encryption of the key: convert it with openssl pkcs8 -topk8 -v2 aes-256-cbc -in old.pem -out new.pem")
)

// decryptKey returns a key file without its password, if it has one.
func decryptKey(file []byte, password string) ([]byte, error) {
	for rest := file; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return file, nil
		}
		switch {
		case block.Headers["DEK-Info"] != "": // RFC 1421
			return nil, errKeyMethod
		case block.Type != "ENCRYPTED PRIVATE KEY":
			continue
		case password == "":
			return nil, errKeyEncrypted
		}
		der, err := decryptPKCS8(block.Bytes, password)
		if err != nil {
			return nil, err
		}
		return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
	}
}

// encryptedKey is the EncryptedPrivateKeyInfo of RFC 5958 with the parameters that
// RFC 8018 defines for PBES2, PBKDF2 and AES-CBC.
type encryptedKey struct {
	Scheme struct {
		ID         asn1.ObjectIdentifier
		Parameters struct {
			Derivation struct {
				ID         asn1.ObjectIdentifier
				Parameters struct {
					Salt       []byte
					Iterations int
					KeyLength  int                      `asn1:"optional"`
					Hash       pkix.AlgorithmIdentifier `asn1:"optional"`
				}
			}
			Encryption struct {
				ID asn1.ObjectIdentifier
				IV []byte
			}
		}
	}
	Data []byte
}

// decryptPKCS8 decrypts a PKCS #8 key with a password.
func decryptPKCS8(der []byte, password string) ([]byte, error) {
	var k encryptedKey
	if _, err := asn1.Unmarshal(der, &k); err != nil {
		return nil, errKeyMethod // other schemes have other parameters
	}
	derivation, encryption := &k.Scheme.Parameters.Derivation, &k.Scheme.Parameters.Encryption
	p := &derivation.Parameters
	sum := map[string]func() hash.Hash{
		"": sha1.New, "1.2.840.113549.2.7": sha1.New, "1.2.840.113549.2.9": sha256.New,
		"1.2.840.113549.2.10": sha512.New384, "1.2.840.113549.2.11": sha512.New,
	}[p.Hash.Algorithm.String()]
	size := map[string]int{ // of the key for AES-CBC
		"2.16.840.1.101.3.4.1.2": 16, "2.16.840.1.101.3.4.1.22": 24, "2.16.840.1.101.3.4.1.42": 32,
	}[encryption.ID.String()]
	const maxIterations = 10_000_000 // bounds the time that a file can delay the start
	if k.Scheme.ID.String() != "1.2.840.113549.1.5.13" || derivation.ID.String() != "1.2.840.113549.1.5.12" ||
		sum == nil || size == 0 || p.Iterations < 1 || p.Iterations > maxIterations {
		return nil, errKeyMethod
	}
	n := len(k.Data)
	if len(encryption.IV) != aes.BlockSize || n == 0 || n%aes.BlockSize != 0 {
		return nil, fmt.Errorf("invalid length of the encrypted key: %d bytes", n)
	}
	key, err := pbkdf2.Key(sum, password, p.Salt, p.Iterations, size)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	out := make([]byte, n)
	cipher.NewCBCDecrypter(block, encryption.IV).CryptBlocks(out, k.Data)
	pad := int(out[n-1])
	if pad < 1 || pad > aes.BlockSize || !bytes.Equal(out[n-pad:], bytes.Repeat([]byte{byte(pad)}, pad)) {
		return nil, errKeyPassword
	}
	out = out[:n-pad]
	if _, err := asn1.Unmarshal(out, new(asn1.RawValue)); err != nil {
		return nil, errKeyPassword // the padding was valid by chance
	}
	return out, nil
}
