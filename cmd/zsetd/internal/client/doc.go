// Package client connects the tools of the command line to a server: addresses and
// logins as flags, TLS, and replies with their types on the wire, which a prompt
// prints. It knows no commands but those of a login.
package client
