package admin

import (
	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/engine/tracking"
)

// The handlers of CLIENT TRACKING, which package tracking describes.

func clientTracking(c *engine.Call) {
	on := c.Bytes()
	var o tracking.Options
	for c.More() {
		switch {
		case c.Len() > 1 && c.Is("REDIRECT"):
			if o.Redirect != 0 {
				c.Fail("ERR A client can only redirect to a single other client")
			}
			if o.Redirect = c.Int(); c.Err() == "" && c.Engine.Clients.Find(o.Redirect) == nil {
				c.Fail("ERR The client ID you want redirect to does not exist")
			}
		case c.Len() > 1 && c.Is("PREFIX"):
			o.Prefixes = append(o.Prefixes, c.String())
		case c.Is("BCAST"):
			o.Broadcast = true
		case c.Is("OPTIN"):
			o.OptIn = true
		case c.Is("OPTOUT"):
			o.OptOut = true
		case c.Is("NOLOOP"):
			o.NoLoop = true
		default:
			c.Fail(protocol.ErrSyntax)
		}
		if c.Err() != "" {
			break // later words may be wrong in other ways
		}
	}
	switch {
	case protocol.EqualFold(on, "ON"):
		if e := o.Conflict(c.Session.Tracking()); e != "" {
			c.Fail(e)
		}
		if c.OK() {
			c.Session.Track(&o)
			c.Reply.OK()
		}
	case protocol.EqualFold(on, "OFF"):
		if c.OK() {
			c.Session.Untrack()
			c.Reply.OK()
		}
	default:
		c.Fail(protocol.ErrSyntax)
		c.OK()
	}
}

func clientCaching(c *engine.Call) {
	t := c.Session.Tracking()
	switch {
	case t == nil:
		c.Fail("ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled")
	case c.Is("YES"):
		if !t.OptIn {
			c.Fail("ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.")
		}
	case c.Is("NO"):
		if !t.OptOut {
			c.Fail("ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.")
		}
	default:
		c.Fail(protocol.ErrSyntax)
	}
	if !c.OK() {
		return
	}
	t.Caching = true
	c.Reply.OK()
}

func clientGetredir(c *engine.Call) { c.Reply.Int(c.Session.Redirection()) }

func clientTrackinginfo(c *engine.Call) {
	flags := []string{"off"}
	var prefixes []string
	if t := c.Session.Tracking(); t != nil {
		flags[0] = "on"
		for _, f := range []struct {
			is   bool
			name string
		}{
			{t.Broadcast, "bcast"},
			{t.OptIn, "optin"},
			{t.OptIn && t.Caching, "caching-yes"},
			{t.OptOut, "optout"},
			{t.OptOut && t.Caching, "caching-no"},
			{t.NoLoop, "noloop"},
			{t.Broken, "broken_redirect"},
		} {
			if f.is {
				flags = append(flags, f.name)
			}
		}
		prefixes = t.Prefixes()
	}
	c.Reply.Map(3)
	c.Reply.BulkString("flags")
	c.Reply.Set(len(flags))
	for _, f := range flags {
		c.Reply.BulkString(f)
	}
	c.Reply.BulkString("redirect")
	c.Reply.Int(c.Session.Redirection())
	c.Reply.BulkString("prefixes")
	c.Reply.Array(len(prefixes))
	for _, p := range prefixes {
		c.Reply.BulkString(p)
	}
}
