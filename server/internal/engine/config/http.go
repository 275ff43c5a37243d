package config

import (
	"errors"
	"math"
	"strings"
)

// HTTP are the parameters of the console.
type HTTP struct {
	Port    int64
	Bind    string
	Hosts   string
	Origins string
	TLS     bool

	LinkSecret, LinkUser string

	Title, Colour string

	StreamsPerAddress, StreamsPerUser int64
}

// httpParameters returns the parameters of the console. They are hidden for the same reason as
// transport.
func httpParameters() []Parameter {
	return []Parameter{
		number("http-port", 0, 0, 65535, func(c *Settings) *int64 { return &c.HTTP.Port }).immutable().hide().
			about("TCP port of the console, on which the command zsetd serves a page, POST /command, metrics and events over HTTP; 0 disables it."),
		text("http-bind", "127.0.0.1 -::1", func(c *Settings) *string { return &c.HTTP.Bind }).words().immutable().hide().
			about("Addresses of the console, in the form of `bind`."),
		text("http-hosts", "", func(c *Settings) *string { return &c.HTTP.Hosts }).words().immutable().hide().check(isHostList).
			about("Names by which browsers reach the console, separated by spaces, besides addresses and names of the loopback; `*` means every name, which lets other sites reach it by DNS rebinding."),
		text("http-origins", "", func(c *Settings) *string { return &c.HTTP.Origins }).words().immutable().hide().check(isOriginList).
			about("Sites, as in `https://example.org`, separated by spaces, whose pages may read /events, /live and /rank of the console, as the default user or as the user that the address names."),
		text("http-link-secret", "", func(c *Settings) *string { return &c.HTTP.LinkSecret }).words().secret().hide().check(isSecretList).
			about("Secrets, separated by spaces, that sign links to /live of the console, which need no login. The first one signs new links; the others are valid, too, so that a secret can be replaced. Each has at least 16 bytes. Empty means that there are no such links."),
		text("http-link-user", "default", func(c *Settings) *string { return &c.HTTP.LinkUser }).hide().
			about("User whose permissions a signed link has. It needs no password."),
		text("http-title", "", func(c *Settings) *string { return &c.HTTP.Title }).words().hide().
			about("Name of this server on the page of the console, and in the titles of its tabs; empty for zsetd."),
		enum("http-colour", "none", func(c *Settings) *string { return &c.HTTP.Colour }, "none", "red", "orange", "green", "blue", "purple", "grey").hide().
			about("Colour of the line at the top of the console's page, by which servers are told apart."),
		yesNo("http-tls", false, func(c *Settings) *bool { return &c.HTTP.TLS }).immutable().hide().
			about("Whether the console uses TLS, as the parameters whose names begin with `tls-` say."),
		number("http-streams-per-address", 2000, 0, math.MaxInt32, func(c *Settings) *int64 { return &c.HTTP.StreamsPerAddress }).hide().
			about("Event streams of the console that one address, or one network of 64 bits of IPv6, may have at a time; 0 means as many as `maxclients`. A proxy is one address."),
		number("http-streams-per-user", 5000, 0, math.MaxInt32, func(c *Settings) *int64 { return &c.HTTP.StreamsPerUser }).hide().
			about("Event streams of the console that one user may have at a time; 0 means as many as `maxclients`."),
	}
}

// isHostList accepts names of hosts without scheme and port.
func isHostList(s string) error {
	for word := range strings.FieldsSeq(s) {
		if strings.ContainsAny(word, ":/") {
			return errors.New("a host is a name without scheme and port")
		}
	}
	return nil
}

// minSecret is the number of bytes of a secret, which those that have a link may try to guess.
const minSecret = 16

// isSecretList accepts secrets that are long enough.
func isSecretList(s string) error {
	for word := range strings.FieldsSeq(s) {
		if len(word) < minSecret {
			return errors.New("a secret has at least 16 bytes")
		}
	}
	return nil
}

// isOriginList accepts schemes with hosts, without a path.
func isOriginList(s string) error {
	for word := range strings.FieldsSeq(s) {
		scheme, host, ok := strings.Cut(word, "://")
		if !ok || scheme != "http" && scheme != "https" || host == "" || strings.ContainsAny(host, "/?#@") {
			return errors.New("an origin is a scheme and a host, as in https://example.org")
		}
	}
	return nil
}
