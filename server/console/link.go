package console

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/zsetd/zsetd/protocol"
)

// LiveQueries are the queries of a request to GET /live.
type LiveQueries struct {
	Queries  []string      // such as "ZRANGE board 0 9"
	DB       int           // number of the database
	Interval time.Duration // shortest time between two replies of a query; 0 for the default
}

// Link returns the path and the query of an address of GET /live that needs no login: it is
// served for exactly these queries until a time, with the permissions of the user
// http-link-user. The secret is the parameter http-link-secret of the server; of several that
// are separated by spaces the first one signs. Link returns an error if there is no secret or no
// query, or if a query has a line end, for which a query writes \n within double quotes.
//
// The signature, in hexadecimal digits, is the HMAC-SHA256 of lines that are separated by \n: the
// word live, the number of the database, the interval as in the address or an empty line, the
// seconds since 1970 at which the link expires, and the queries.
func Link(secret string, until time.Time, of LiveQueries) (string, error) {
	secrets := strings.Fields(secret)
	switch {
	case len(secrets) == 0:
		return "", errors.New("console: a link needs a secret: the parameter http-link-secret")
	case len(of.Queries) == 0:
		return "", errors.New("console: a link needs a query")
	}
	q := url.Values{"q": of.Queries, "db": {strconv.Itoa(of.DB)}, "exp": {strconv.FormatInt(until.Unix(), 10)}}
	if of.Interval != 0 {
		q.Set("interval", of.Interval.String())
	}
	if _, err := liveQueries(q, ""); err != nil {
		return "", errors.New("console: " + strings.TrimPrefix(err.Error(), "ERR "))
	}
	text, err := linkText(q)
	if err != nil {
		return "", errors.New("console: " + strings.TrimPrefix(err.Error(), "ERR "))
	}
	q.Set("sig", hex.EncodeToString(linkSum(secrets[0], text)))
	return "/live?" + q.Encode(), nil
}

// linkError is the error of a link that is not served.
type linkError string

func (e linkError) Error() string { return string(e) }

// linkText returns what the signature of a link signs.
func linkText(q url.Values) (string, error) {
	db := q.Get("db")
	if db == "" {
		db = "0"
	}
	lines := append([]string{"live", db, q.Get("interval"), q.Get("exp")}, q["q"]...)
	for _, line := range lines {
		if strings.Contains(line, "\n") {
			return "", linkError(`ERR the link is not valid: a query has a line end: write \n within double quotes`)
		}
	}
	return strings.Join(lines, "\n"), nil
}

// linkSum returns the signature of a text.
func linkSum(secret, text string) []byte {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte(text))
	return h.Sum(nil)
}

// checkLink returns the user of a signed link, and when it expires. Its time does not depend on
// the secrets.
func (c *Console) checkLink(ctx context.Context, q url.Values, now time.Time) (who identity, until time.Time, err error) {
	reply, err := c.ask(ctx, "CONFIG", "GET", "http-link-secret", "http-link-user")
	if err != nil {
		return who, until, err
	}
	var secrets []string
	fields, _ := reply.(protocol.Map)
	for _, f := range fields {
		value, _ := f.Value.(string)
		switch f.Key {
		case "http-link-secret":
			secrets = strings.Fields(value)
		case "http-link-user":
			who = identity{name: value, linked: true}
		}
	}
	if len(secrets) == 0 {
		return who, until, linkError("ERR signed links are not served: http-link-secret is not set")
	}
	text, err := linkText(q)
	if err != nil {
		return who, until, err
	}
	sig, malformed := hex.DecodeString(q.Get("sig"))
	valid := false
	for _, secret := range secrets {
		valid = hmac.Equal(sig, linkSum(secret, text)) || valid
	}
	seconds, err := strconv.ParseInt(q.Get("exp"), 10, 64)
	switch {
	case !valid || malformed != nil || err != nil:
		return who, until, linkError("ERR the link is not valid: its signature is wrong")
	case seconds <= now.Unix():
		return who, until, linkError("ERR the link has expired")
	}
	return who, time.Unix(seconds, 0), nil
}
