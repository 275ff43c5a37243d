package transport_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"os"
	osexec "os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/servertest/port"
	"github.com/zsetd/zsetd/server/servertest/wait"

	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
)

// TestTLS checks the functions of plain connections over TLS.
func TestTLS(t *testing.T) {
	p := enginetest.NewPKI(t, t.TempDir(), "ca")
	p.Issue("server", &x509.Certificate{})
	alice := p.Issue("alice", &x509.Certificate{})
	srv, addr, _ := enginetest.StartTLS(t, p.Config())
	dial := func() *enginetest.Client {
		t.Helper()
		nc, err := tls.Dial("tcp", addr, p.Client(alice))
		if err != nil {
			t.Fatal(err)
		}
		return enginetest.NewClient(t, nc)
	}
	c, d := dial(), dial()
	// A pipeline, sent before any reply is read.
	value := strings.Repeat("v", 100_000)
	c.Send(fmt.Sprintf("*3\r\n$3\r\nSET\r\n$3\r\nbig\r\n$%d\r\n%s\r\n", len(value), value) + strings.Repeat("GET big\r\n", 200))
	if got := fmt.Sprint(c.Reply()); got != "OK" {
		t.Fatalf("SET: %v", got)
	}
	for range 200 {
		if got := c.Reply(); got != value {
			t.Fatalf("%.20q of %d bytes", got, len(fmt.Sprint(got)))
		}
	}
	// A blocked client that another serves; messages; a client that is killed.
	c.Send("BLPOP list 0\r\n")
	d.Send("RPUSH list x\r\n")
	if got := fmt.Sprint(c.Reply(), d.Reply()); got != "[list x] 1" {
		t.Errorf("BLPOP: %s", got)
	}
	c.Send("SUBSCRIBE ch\r\n")
	c.Reply()
	d.Send("PUBLISH ch hello\r\n")
	if got := fmt.Sprint(d.Reply(), c.Reply()); got != "1 [message ch hello]" {
		t.Errorf("SUBSCRIBE: %s", got)
	}
	d.Send("CLIENT LIST\r\n")
	for line := range strings.Lines(strings.TrimPrefix(fmt.Sprint(d.Reply()), "txt:")) {
		if !strings.Contains(line, "laddr="+addr) || strings.Contains(line, "fd=-1 ") {
			t.Errorf("CLIENT LIST: %s", line)
		}
	}
	d.Send("CLIENT KILL TYPE pubsub\r\n")
	if got := d.Reply(); fmt.Sprint(got) != "1" {
		t.Errorf("CLIENT KILL: %v", got)
	}
	if _, err := c.R.ReadByte(); err == nil {
		t.Error("a killed client can still read")
	}
	d.Send("QUIT\r\n")
	if got := d.All(); got != "+OK\r\n" { // and the end is announced, else this would be an error
		t.Errorf("QUIT: %q", got)
	}
	// Plain text is refused.
	nc := enginetest.Dial(t, addr)
	nc.Send("PING\r\nPING\r\nPING\r\n")
	if b, _ := io.ReadAll(nc); bytes.Contains(b, []byte("PONG")) {
		t.Errorf("plain text is answered: %q", b)
	}
	wait.Until(t, "no client is left", func() bool { return srv.Connected() == 0 })
}

// TestTLSClients checks which client certificates are accepted.
func TestTLSClients(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	p, foreign := enginetest.NewPKI(t, dir, "ca"), enginetest.NewPKI(t, other, "ca")
	p.Issue("server", &x509.Certificate{})
	past := time.Now().Add(-time.Hour)
	certs := map[string][]tls.Certificate{
		"good":       {p.Issue("good", &x509.Certificate{})},
		"for client": {p.Issue("client", &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})},
		"for server": {p.Issue("not", &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})},
		"expired":    {p.Issue("old", &x509.Certificate{NotBefore: past.Add(-time.Hour), NotAfter: past})},
		"foreign":    {foreign.Issue("bob", &x509.Certificate{})},
		"none":       nil,
	}
	welcome := map[string]string{
		"yes":      "good, for client",
		"optional": "good, for client, none",
		"no":       "good, for client, for server, expired, foreign, none",
	}
	srv, addr, log := enginetest.StartTLS(t, p.Config())
	for mode, who := range welcome {
		for _, protocol := range []string{"TLSv1.2", "TLSv1.3"} {
			if _, err := srv.Do(context.Background(), "CONFIG", "SET", "tls-auth-clients", mode, "tls-protocols", protocol, "loglevel", "verbose"); err != nil {
				t.Fatal(err)
			}
			for name, cert := range certs {
				config := p.Client()
				// Whatever authorities the server names.
				config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
					if len(cert) == 0 {
						return new(tls.Certificate), nil
					}
					return &cert[0], nil
				}
				_, err := enginetest.PingTLS(addr, config)
				if want := slices.Contains(strings.Split(who, ", "), name); (err == nil) != want {
					t.Errorf("%s: a client with a certificate %q: %v", mode, name, err)
				}
			}
		}
	}
	for _, want := range []string{"cannot set up a connection", "certificate signed by unknown authority", "certificate has expired"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %q: %s", want, log)
		}
	}
}

// TestTLSUser checks that clients are logged in as the users that their certificates name.
func TestTLSUser(t *testing.T) {
	p := enginetest.NewPKI(t, t.TempDir(), "ca")
	p.Issue("server", &x509.Certificate{})
	srv, addr, _ := enginetest.StartTLS(t, p.Config())
	do := func(args ...any) any {
		t.Helper()
		reply, err := srv.Do(context.Background(), args...)
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	whoami := func(config *tls.Config) string {
		t.Helper()
		c, err := tls.Dial("tcp", addr, config)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprint(c, "ACL WHOAMI\r\n")
		reply, err := protocol.DecodeFrom(bufio.NewReader(c))
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(reply)
	}
	do("CONFIG", "SET", "tls-auth-clients", "optional")
	do("ACL", "SETUSER", "alice", "on", ">secret", "+@all")
	do("ACL", "SETUSER", "bob", "off", "+@all")
	named := func(name string) *tls.Config { return p.Client(p.Issue(name, &x509.Certificate{})) }
	alice := named("alice")
	alice.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	if got := whoami(alice); got != "default" {
		t.Errorf("without the parameter: %s", got)
	}
	do("CONFIG", "SET", "tls-auth-clients-user", "cn")
	for range 2 { // the second one resumes a session
		if got := whoami(alice); got != "alice" {
			t.Errorf("alice: %s", got)
		}
	}
	for _, name := range []string{"bob", "nosuch", "alice "} {
		do("ACL", "LOG", "RESET")
		if got := whoami(named(name)); got != "default" {
			t.Errorf("%q: %s", name, got)
		}
		if log := fmt.Sprint(do("ACL", "LOG")); !strings.Contains(log, "tls-cert") || !strings.Contains(log, name) {
			t.Errorf("%q: ACL LOG has %s", name, log)
		}
	}
	if got := whoami(p.Client()); got != "default" {
		t.Errorf("without a certificate: %s", got)
	}
	if info := do("INFO", "stats"); !strings.Contains(info.(string), "acl_access_denied_tls_cert:3\r\n") {
		t.Errorf("INFO: %s", info)
	}
}

// TestTLSReload checks that certificates are reloaded by CONFIG SET and when their files
// change, and that invalid ones change nothing.
func TestTLSReload(t *testing.T) {
	p := enginetest.NewPKI(t, t.TempDir(), "ca")
	p.Issue("server", &x509.Certificate{})
	alice := p.Issue("alice", &x509.Certificate{})
	srv, addr, log := enginetest.StartTLS(t, p.Config())
	ctx := context.Background()
	set := func(args ...any) error {
		_, err := srv.Do(ctx, append([]any{"CONFIG", "SET"}, args...)...)
		return err
	}
	serial := func() int64 {
		t.Helper()
		state, err := enginetest.PingTLS(addr, p.Client(alice))
		if err != nil {
			t.Fatal(err)
		}
		return state.PeerCertificates[0].SerialNumber.Int64()
	}
	if got := serial(); got != 2 {
		t.Fatalf("certificate %d", got)
	}
	p.Issue("server", &x509.Certificate{}) // 4
	if err := set("tls-cert-file", p.Path("server.crt")); err != nil {
		t.Fatal(err)
	}
	if got := serial(); got != 4 {
		t.Errorf("after CONFIG SET: certificate %d", got)
	}
	// The files change without CONFIG SET. In between the key does not match the certificate.
	p.Issue("server", &x509.Certificate{}) // 5
	soon := func(want int64) {
		t.Helper()
		if !wait.Holds(func() bool { return serial() == want }) {
			t.Fatalf("certificate %d, not %d; %s", serial(), want, log)
		}
	}
	soon(5)
	p.Write("server.key", []byte("nonsense"))
	wait.Until(t, "the log names the unusable files", func() bool {
		if got := serial(); got != 5 {
			t.Fatalf("certificate %d", got)
		}
		return strings.Contains(log.String(), "cannot use the changed TLS files; keeping the previous ones")
	})
	failed := "ERR CONFIG SET failed (possibly related to argument '%s') - Unable to update TLS configuration. Check server logs."
	for args, name := range map[string]string{
		"tls-key-file " + p.Path("server.key"):                           "tls-key-file",
		"tls-cert-file " + p.Path("nowhere"):                             "tls-cert-file",
		"timeout 7 tls-ciphers XY tls-ciphersuites XY":                   "tls-ciphers",
		"tls-ciphersuites TLS_AES_128_CCM_SHA256":                        "tls-ciphersuites",
		"tls-protocols SSLv3":                                            "tls-protocols",
		"tls-ca-cert-file " + p.Path("server.key"):                       "tls-ca-cert-file",
		"tls-ca-cert-dir " + p.Path("nowhere"):                           "tls-ca-cert-dir",
		"tls-ca-cert-file " + p.Path("nowhere") + " tls-auth-clients no": "tls-ca-cert-file",
	} {
		words := []any{}
		for _, word := range strings.Fields(args) {
			words = append(words, word)
		}
		if err := set(words...); err == nil || err.Error() != fmt.Sprintf(failed, name) {
			t.Errorf("CONFIG SET %s: %v", args, err)
		}
	}
	if got := serial(); got != 5 {
		t.Errorf("after what was refused: certificate %d", got)
	}
	srv.Mu.Lock()
	if srv.Config.Timeout != 0 || srv.Config.TLS.Ciphers != "" {
		t.Error("half of what was refused was done")
	}
	srv.Mu.Unlock()
	p.Issue("server", &x509.Certificate{}) // 6
	soon(6)

	// A client of an authority that was removed cannot resume its session.
	config := p.Client(alice)
	config.ClientSessionCache = tls.NewLRUClientSessionCache(4)
	resumed := func() bool {
		t.Helper()
		state, err := enginetest.PingTLS(addr, config)
		if err != nil {
			t.Fatal(err)
		}
		return state.DidResume
	}
	resumed()
	if !resumed() {
		t.Error("a session is not resumed")
	}
	srv.Advance(301 * time.Second)
	if resumed() {
		t.Error("a session is resumed that is too old")
	}
	if err := set("tls-session-caching", "no"); err != nil {
		t.Fatal(err)
	}
	resumed()
	if resumed() {
		t.Error("a session is resumed with tls-session-caching no")
	}
	if err := set("tls-session-caching", "yes"); err != nil {
		t.Fatal(err)
	}
	resumed()
	others := enginetest.NewPKI(t, t.TempDir(), "ca")
	if err := set("tls-ca-cert-file", others.Path("ca.crt")); err != nil {
		t.Fatal(err)
	}
	if _, err := enginetest.PingTLS(addr, config); err == nil {
		t.Error("a session is resumed whose certificate is not good any more")
	}
	if err := set("tls-ca-cert-dir", p.Dir); err != nil { // beside the others
		t.Fatal(err)
	}
	if got := serial(); got != 6 {
		t.Errorf("certificate %d", got)
	}
}

// TestTLSStart checks that a server with an unusable configuration does not start.
func TestTLSStart(t *testing.T) {
	p := enginetest.NewPKI(t, t.TempDir(), "ca")
	p.Issue("server", &x509.Certificate{})
	p.Issue("other", &x509.Certificate{})
	p.Write("empty", nil)
	p.Write("damaged", []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"))
	p.Write("locked.key", []byte("-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n"))
	for _, folder := range []string{"folder/within", "other"} {
		if err := os.MkdirAll(p.Path(folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	p.Write("folder/text", []byte("no certificate"))
	p.Write("other/damaged", []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"))
	for change, want := range map[string]string{
		"tls-cert-file=":                          "No tls-cert-file configured!",
		"tls-key-file=":                           "No tls-key-file configured!",
		"tls-ca-cert-file=":                       "Either tls-ca-cert-file or tls-ca-cert-dir must be specified",
		"tls-cert-file=" + p.Path("nowhere"):      "Failed to load certificate: open " + p.Path("nowhere"),
		"tls-cert-file=" + p.Path("empty"):        "failed to find any PEM data in certificate input",
		"tls-key-file=" + p.Path("nowhere"):       "Failed to load private key: open " + p.Path("nowhere"),
		"tls-key-file=" + p.Path("locked.key"):    "Failed to load private key: " + p.Path("locked.key") + ": ",
		"tls-ca-cert-file=" + p.Path("damaged"):   "Failed to configure CA certificate(s) file/directory: " + p.Path("damaged") + ": ",
		"tls-ca-cert-file=" + p.Path("nowhere"):   "Failed to configure CA certificate(s) file/directory: open " + p.Path("nowhere"),
		"tls-ca-cert-dir=" + p.Path("nowhere"):    "Failed to configure CA certificate(s) file/directory: open " + p.Path("nowhere"),
		"tls-ca-cert-dir=" + p.Path("folder"):     p.Path("folder") + ": no certificate found in the directory",
		"tls-ca-cert-dir=" + p.Path("other"):      p.Path("other/damaged") + ": ",
		"tls-key-file=" + p.Path("other.key"):     "private key does not match public key",
		"tls-key-file=" + p.Path("server.crt"):    "Failed to load certificate",
		"tls-ca-cert-file=" + p.Path("empty"):     "no certificate found",
		"tls-ca-cert-dir=" + p.Path("empty"):      "Failed to configure CA certificate(s) file/directory: ",
		"tls-protocols=TLSv1.1 TLSv1.3":           "Go enables all versions between TLSv1.1 and a later one",
		"tls-ciphers=HIGH:!aNULL":                 `Failed to configure ciphers: HIGH:!aNULL: unknown cipher "HIGH"`,
		"tls-ciphers=DHE-RSA-AES256-GCM-SHA384":   `unknown cipher "DHE-RSA-AES256-GCM-SHA384"`,
		"tls-ciphersuites=TLS_AES_128_GCM_SHA256": "Go's crypto/tls cannot disable TLS_AES_256_GCM_SHA384",
		"tls-ciphersuites=TLS_AES_128_CCM_SHA256": `unknown cipher "TLS_AES_128_CCM_SHA256"`,
		"tls-auth-clients=maybe":                  "argument(s) must be one of the following: no, yes, optional",
		"tls-cluster=yes":                         "TLS between nodes is not supported",
	} {
		config := p.Config()
		config["tls-port"] = "1"
		name, value, _ := strings.Cut(change, "=")
		config[name] = value
		srv, err := enginetest.New(engine.Options{Config: config})
		if err == nil {
			srv.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", change, err, want)
		}
	}
	// Without TLS the parameters are not checked, as in Redis.
	srv, err := enginetest.New(engine.Options{Config: map[string]string{"tls-cert-file": "/nowhere", "tls-ciphers": "XY"}})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	if _, err := srv.Do(context.Background(), "CONFIG", "SET", "tls-protocols", "SSLv3"); err != nil {
		t.Error(err)
	}
	// A certificate that has expired is the clients' affair, but the log says so.
	past := time.Now().Add(-time.Hour)
	p.Issue("server", &x509.Certificate{NotBefore: past.Add(-time.Hour), NotAfter: past})
	_, addr, log := enginetest.StartTLS(t, p.Config())
	if _, err := enginetest.PingTLS(addr, p.Client(p.Issue("alice", &x509.Certificate{}))); err == nil || !strings.Contains(err.Error(), "expired") {
		t.Errorf("of an expired certificate clients say %v", err)
	}
	if !strings.Contains(log.String(), "level=WARN msg=\"TLS certificate loaded\"") {
		t.Errorf("nothing is said of an expired certificate: %s", log)
	}
}

// ListenAndServe listens for TLS, alone or beside the others, and CONFIG SET
// changes that.
func TestTLSPort(t *testing.T) {
	p := enginetest.NewPKI(t, t.TempDir(), "ca")
	p.Issue("server", &x509.Certificate{})
	alice := p.Client(p.Issue("alice", &x509.Certificate{}))
	config := p.Config()
	port := unusedPort(t)
	config["port"], config["tls-port"], config["bind"], config["cluster-enabled"] = "0", port, "127.0.0.1", "yes"
	srv, err := enginetest.New(engine.Options{Config: config})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- srv.ListenAndServe() }()
	wait.Until(t, "the server listens", func() bool { _, err := enginetest.PingTLS("127.0.0.1:"+port, alice); return err == nil })
	ctx := context.Background()
	do := func(args ...any) string {
		t.Helper()
		reply, err := srv.Do(ctx, args...)
		if err != nil {
			return err.Error()
		}
		return fmt.Sprint(reply)
	}
	if info := do("INFO", "server"); !strings.Contains(info, "tcp_port:"+port+"\r\n") ||
		!strings.Contains(info, "listener0:name=tls,bind=127.0.0.1,port="+port+"\r\n") {
		t.Error(info)
	}
	nc, err := tls.Dial("tcp", "127.0.0.1:"+port, alice)
	if err != nil {
		t.Fatal(err)
	}
	c := enginetest.NewClient(t, nc)
	c.Send("CLUSTER NODES\r\n")
	if got := fmt.Sprint(c.Reply()); !strings.Contains(got, ":"+port+"@") { // where a client that speaks TLS has to go
		t.Errorf("CLUSTER NODES: %s", got)
	}
	plain, other := unusedPort(t), unusedPort(t)
	if got := do("CONFIG", "SET", "port", plain); got != "OK" {
		t.Fatal(got)
	}
	d := enginetest.Dial(t, "127.0.0.1:"+plain)
	d.Send("CLUSTER NODES\r\nCLUSTER SHARDS\r\n")
	if got := fmt.Sprint(d.Reply()); !strings.Contains(got, ":"+plain+"@") {
		t.Errorf("CLUSTER NODES: %s", got)
	}
	if got := fmt.Sprint(d.Reply()); !strings.Contains(got, "port "+plain+" tls-port "+port) {
		t.Errorf("CLUSTER SHARDS: %s", got)
	}
	if got := do("CONFIG", "SET", "tls-port", other); got != "OK" {
		t.Fatal(got)
	}
	if _, err := enginetest.PingTLS("127.0.0.1:"+other, alice); err != nil {
		t.Error(err)
	}
	if _, err := enginetest.PingTLS("127.0.0.1:"+port, alice); err == nil {
		t.Error("the port of before is still served")
	}
	want := "ERR CONFIG SET failed (possibly related to argument 'tls-port') - Unable to listen on this port. Check server logs."
	if got := do("CONFIG", "SET", "tls-port", plain); got != want {
		t.Error(got)
	}
	if _, err := enginetest.PingTLS("127.0.0.1:"+other, alice); err != nil {
		t.Error(err)
	}
	if got := do("CONFIG", "SET", "tls-port", "0"); got != "OK" {
		t.Fatal(got)
	}
	c.Send("PING\r\n")
	if got := fmt.Sprint(c.Reply()); got != "PONG" {
		t.Errorf("a connected client is not served any more: %v", got)
	}
	if got := do("CONFIG", "SET", "tls-cert-file", "/nowhere"); got != "OK" { // not checked without TLS
		t.Error(got)
	}
	want = "ERR CONFIG SET failed (possibly related to argument 'tls-port') - Unable to update TLS configuration. Check server logs."
	if got := do("CONFIG", "SET", "tls-port", other); got != want {
		t.Error(got)
	}
	srv.Close()
	if err := <-done; err != engine.ErrServerClosed {
		t.Error(err)
	}
}

// TestTLSSilentClients checks that clients that connect and send nothing, or never read,
// delay neither other clients nor Close.
func TestTLSSilentClients(t *testing.T) { tlsSilence(t, 0) }

// tlsSilence fails the test if it takes longer than the limit to close all
// connections. 0 is none.
func tlsSilence(t *testing.T, limit time.Duration) {
	p := enginetest.NewPKI(t, t.TempDir(), "ca")
	p.Issue("server", &x509.Certificate{})
	alice := p.Client(p.Issue("alice", &x509.Certificate{}))
	config := p.Config()
	config["maxclients"] = "31"
	srv, addr, _ := enginetest.StartTLS(t, config)
	var silent []net.Conn
	for range 30 {
		nc, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		silent = append(silent, nc)
	}
	if _, err := enginetest.PingTLS(addr, alice); err != nil {
		t.Fatalf("beside silent clients: %v", err)
	}
	clients := func() int { return srv.Connected() }
	wait.Until(t, "the ping has left", func() bool { return clients() == 30 })
	stuck, err := tls.Dial("tcp", addr, alice)
	if err != nil {
		t.Fatal(err)
	}
	defer stuck.Close()
	if _, err := enginetest.PingTLS(addr, alice); err == nil {
		t.Error("there are more than maxclients")
	}
	if _, err := io.WriteString(stuck, "SETRANGE k 1048575 x\r\n"+strings.Repeat("GET k\r\n", 40)); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "replies wait", func() bool { // its replies fill what the system takes
		srv.Mu.Lock()
		defer srv.Mu.Unlock()
		for _, s := range srv.Clients.Sessions {
			if s.Queue.Unsent.Load() > 0 {
				return true
			}
		}
		return false
	})
	for _, nc := range silent[:10] {
		nc.Close()
	}
	wait.Until(t, "10 clients have left", func() bool { return clients() == 21 })
	start := time.Now()
	if got, err := srv.Do(context.Background(), "CLIENT", "KILL", "TYPE", "normal"); err != nil || fmt.Sprint(got) == "0" {
		t.Errorf("CLIENT KILL: %v, %v", got, err)
	}
	srv.Close()
	if took := time.Since(start); limit > 0 && took > limit {
		t.Errorf("to close them took %v", took)
	}
}

func TestTLSVersions(t *testing.T) {
	p := enginetest.NewPKI(t, t.TempDir(), "ca")
	p.Issue("server", &x509.Certificate{})
	config := p.Config()
	config["tls-auth-clients"] = "no"
	srv, addr, _ := enginetest.StartTLS(t, config)
	all := []uint16{tls.VersionTLS10, tls.VersionTLS11, tls.VersionTLS12, tls.VersionTLS13}
	for words, spoken := range map[string]string{
		"": "0011", "TLSv1.2 TLSv1.3": "0011", "tlsV1.3": "0001", "TLSv1 TLSv1.1": "1100", "TLSv1.1 TLSv1.2 TLSv1.3": "0111", "TLSv1.2": "0010",
	} {
		if _, err := srv.Do(context.Background(), "CONFIG", "SET", "tls-protocols", words); err != nil {
			t.Fatal(err)
		}
		for i, version := range all {
			c := p.Client()
			c.MinVersion, c.MaxVersion = version, version
			if _, err := enginetest.PingTLS(addr, c); (err == nil) != (spoken[i] == '1') {
				t.Errorf("tls-protocols %q: %s: %v", words, tls.VersionName(version), err)
			}
		}
	}
	if _, err := srv.Do(context.Background(), "CONFIG", "SET", "tls-protocols", "TLSv1.2", "tls-ciphers", "ECDHE-ECDSA-AES256-GCM-SHA384"); err != nil {
		t.Fatal(err)
	}
	if state, err := enginetest.PingTLS(addr, p.Client()); err != nil || state.CipherSuite != tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 {
		t.Errorf("%s, %v", tls.CipherSuiteName(state.CipherSuite), err)
	}
}

// TestTLSRedisCLI checks TLS connections of redis-cli.
func TestTLSRedisCLI(t *testing.T) {
	cli, err := osexec.LookPath("redis-cli")
	if err != nil {
		t.Skip("redis-cli is not installed")
	}
	if help, _ := osexec.Command(cli, "--help").CombinedOutput(); !bytes.Contains(help, []byte("--tls")) {
		t.Skip("redis-cli is built without TLS")
	}
	p := enginetest.NewPKI(t, t.TempDir(), "ca")
	p.Issue("server", &x509.Certificate{})
	p.Issue("alice", &x509.Certificate{})
	_, addr, _ := enginetest.StartTLS(t, p.Config())
	_, port, _ := net.SplitHostPort(addr)
	run := func(in string, args ...string) string {
		args = append([]string{"-h", "127.0.0.1", "-p", port, "--tls", "--cacert", p.Path("ca.crt")}, args...)
		cmd := osexec.Command(cli, args...)
		cmd.Stdin = strings.NewReader(in)
		out, _ := cmd.CombinedOutput()
		return string(out)
	}
	cert := []string{"--cert", p.Path("alice.crt"), "--key", p.Path("alice.key")}
	if got := run("", append(cert, "SET", "k", "v")...); got != "OK\n" {
		t.Errorf("SET: %q", got)
	}
	if got := run("PING\nGET k\n", append(cert, "--tls-ciphersuites", "TLS_CHACHA20_POLY1305_SHA256")...); got != "PONG\nv\n" {
		t.Errorf("a script: %q", got)
	}
	var commands strings.Builder
	for i := range 20000 {
		fmt.Fprintf(&commands, "SET key:%d %d\r\n", i, i)
	}
	if got := run(commands.String(), append(cert, "--pipe")...); !strings.Contains(got, "errors: 0, replies: 20000") {
		t.Errorf("--pipe: %q", got)
	}
	if got := run("", "PING"); strings.Contains(got, "PONG") {
		t.Errorf("without a certificate: %q", got)
	}
}

// TestTLSOwnListener serves a TLS listener with the configuration of the embedding program.
func TestTLSOwnListener(t *testing.T) {
	p := enginetest.NewPKI(t, t.TempDir(), "ca")
	cert := p.Issue("server", &x509.Certificate{})
	srv, err := enginetest.New(engine.Options{Config: map[string]string{"requirepass": "x"}})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go srv.Serve(tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{cert}}))
	nc, err := tls.Dial("tcp", l.Addr().String(), p.Client())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(time.Minute))
	io.WriteString(nc, "AUTH x\r\nPING\r\n")
	r := bufio.NewReader(nc)
	for _, want := range []string{"+OK\r\n", "+PONG\r\n"} {
		if got, err := r.ReadString('\n'); got != want {
			t.Errorf("%q, %v", got, err)
		}
	}
}

// No client keeps the server from closing its connections: to say goodbye, TLS would
// wait for five seconds.
func TestMeasureTLSClose(t *testing.T) {
	enginetest.Measured(t)
	tlsSilence(t, 4*time.Second)
}

func unusedPort(t *testing.T) string {
	t.Helper()
	number, err := port.Free()
	if err != nil {
		t.Fatal(err)
	}
	return number
}
