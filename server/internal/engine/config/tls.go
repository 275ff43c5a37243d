package config

import "math"

// TLSParameters are the parameters that make up a tls.Config.
type TLS struct {
	CertFile, KeyFile, KeyFilePass string
	CACertFile, CACertDir          string

	// For connections to other servers; empty: CertFile and KeyFile.
	ClientCertFile, ClientKeyFile, ClientKeyFilePass string

	AuthClients           string
	AuthClientsUser       string // the field of a certificate that names a user
	Protocols             string
	Ciphers, Ciphersuites string
	SessionCaching        bool
	SessionTimeout        int64 // seconds
}

// tlsConfigParameters returns the parameters about TLS.
func tlsConfigParameters() []Parameter {
	file := func(name string, field func(*TLS) *string, doc string) Parameter {
		return text(name, "", func(c *Settings) *string { return field(&c.TLS) }).about(doc)
	}
	return []Parameter{
		number("tls-port", 0, 0, 65535, func(c *Settings) *int64 { return &c.TLSPort }).
			about("TCP port to listen on for TLS connections; 0 disables it."),
		file("tls-cert-file", func(p *TLS) *string { return &p.CertFile },
			"Path of the certificate chain of the server (PEM). Setting it, even to the same value, reads all TLS files again."),
		file("tls-key-file", func(p *TLS) *string { return &p.KeyFile }, "Path of the private key of that certificate (PEM)."),
		file("tls-key-file-pass", func(p *TLS) *string { return &p.KeyFilePass }, "Password of the private key, which is in PKCS #8 with AES; empty means that it is not encrypted.").secret(),
		file("tls-ca-cert-file", func(p *TLS) *string { return &p.CACertFile },
			"Path of the certificates of the authorities that sign the certificates of clients (PEM)."),
		file("tls-ca-cert-dir", func(p *TLS) *string { return &p.CACertDir }, "Directory of files with such certificates, in addition to tls-ca-cert-file."),
		enum("tls-auth-clients", "yes", func(c *Settings) *string { return &c.TLS.AuthClients }, "no", "yes", "optional").
			about("Whether clients must present a certificate: `yes`; `no`; or `optional`, which verifies a certificate if there is one."),
		enum("tls-auth-clients-user", "off", func(c *Settings) *string { return &c.TLS.AuthClientsUser }, "CN", "off").
			about("Field of a client's verified certificate that names the user that the client is logged in as: `CN`, the common name; or `off`."),
		file("tls-protocols", func(p *TLS) *string { return &p.Protocols },
			"Enabled TLS versions, separated by spaces: a contiguous range of `TLSv1`, `TLSv1.1`, `TLSv1.2`, `TLSv1.3`; empty means `TLSv1.2 TLSv1.3`."),
		file("tls-ciphers", func(p *TLS) *string { return &p.Ciphers },
			"Ciphers for TLSv1.2 and earlier: names of OpenSSL or IANA, separated by colons; empty means those that Go calls secure. "+
				"A cipher that Go lacks is an error. Go chooses the order."),
		file("tls-ciphersuites", func(p *TLS) *string { return &p.Ciphersuites },
			"Cipher suites for TLSv1.3, separated by colons: empty or all three that Go has, which cannot be configured."),
		file("tls-client-cert-file", func(p *TLS) *string { return &p.ClientCertFile },
			"Path of the certificate chain for connections to a primary (PEM); empty means tls-cert-file."),
		file("tls-client-key-file", func(p *TLS) *string { return &p.ClientKeyFile }, "Path of the private key of that certificate (PEM)."),
		file("tls-client-key-file-pass", func(p *TLS) *string { return &p.ClientKeyFilePass }, "Password of that private key; empty means that it is not encrypted.").secret(),
		yesNo("tls-replication", false, func(c *Settings) *bool { return &c.TLSReplication }).
			about("Whether the connection to a primary uses TLS; tls-ca-cert-file or tls-ca-cert-dir then say whose certificate it must have."),
		yesNo("tls-session-caching", true, func(c *Settings) *bool { return &c.TLS.SessionCaching }).
			about("Whether clients may resume TLS sessions."),
		number("tls-session-cache-timeout", 300, 0, math.MaxInt32, func(c *Settings) *int64 { return &c.TLS.SessionTimeout }).
			about("Lifetime of a resumable TLS session in seconds."),
	}
}
