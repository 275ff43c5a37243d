package tracking

import (
	"maps"
	"slices"
	"strings"
)

// Options are the options of CLIENT TRACKING.
type Options struct {
	Redirect  int64    // the client that receives the invalidations instead; 0 for none
	Broadcast bool     // for all keys with the prefixes, instead of those that the client reads
	OptIn     bool     // only keys of commands after CLIENT CACHING YES
	OptOut    bool     // not those after CLIENT CACHING NO
	NoLoop    bool     // no invalidations for the client's own changes
	Prefixes  []string // in broadcast mode; none means all keys
}

// Client is the tracking state of a client.
type Client struct {
	Redirect      int64
	Broken        bool // the client of Redirect has disconnected
	Broadcast     bool
	OptIn, OptOut bool
	NoLoop        bool
	Caching       bool // CLIENT CACHING applies to the next command, or transaction
	prefixes      map[string]struct{}
}

// Records reports whether the table is to record the keys that the client reads now.
func (c *Client) Records() bool {
	return !c.Broadcast && (!c.OptIn || c.Caching) && (!c.OptOut || !c.Caching)
}

// Prefixes returns the prefixes in order.
func (c *Client) Prefixes() []string { return slices.Sorted(maps.Keys(c.prefixes)) }

// PrefixBytes returns the bytes of the prefixes, with overhead for each.
func (c *Client) PrefixBytes(overhead int64) (n int64) {
	for p := range c.prefixes {
		n += int64(len(p)) + overhead
	}
	return n
}

// Conflict returns the error of Redis if the options conflict with each other, or with the
// current state of the client, which is nil if it does not track. It takes
// O(P log P), P prefixes given or registered.
func (o *Options) Conflict(c *Client) string {
	switch {
	case !o.Broadcast && len(o.Prefixes) > 0:
		return "ERR PREFIX option requires BCAST mode to be enabled"
	case c != nil && c.Broadcast != o.Broadcast:
		return "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then " +
			"re-enabling it with a different mode."
	case o.Broadcast && (o.OptIn || o.OptOut):
		return "ERR OPTIN and OPTOUT are not compatible with BCAST"
	case o.OptIn && o.OptOut:
		return "ERR You can't specify both OPTIN mode and OPTOUT mode"
	case c != nil && (o.OptIn && c.OptOut || o.OptOut && c.OptIn):
		return "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then " +
			"re-enabling it with a different mode."
	}
	var existing []string
	if c != nil {
		existing = c.Prefixes()
	}
	return o.overlap(existing)
}

// overlap returns the error if the prefixes overlap each other, or existing ones.
func (o *Options) overlap(existing []string) string {
	overlap := func(p, q string) bool { return strings.HasPrefix(p, q) || strings.HasPrefix(q, p) }
	message := func(p, kind, q string) string {
		p, _, _ = strings.Cut(p, "\x00") // as C prints it
		q, _, _ = strings.Cut(q, "\x00")
		return "ERR Prefix '" + p + "' overlaps with " + kind + " prefix '" + q + "'. Prefixes for a single client must not overlap."
	}
	// In sorted order the names that begin with p follow p directly, and between p
	// and a prefix of p before it there are only names that share that prefix. So a
	// name that overlaps any other overlaps a neighbour.
	sorted := slices.Sorted(slices.Values(slices.Concat(existing, o.Prefixes)))
	alone := func(p string) bool {
		i, _ := slices.BinarySearch(sorted, p)
		return (i == 0 || !overlap(sorted[i-1], p)) && (i+1 == len(sorted) || !overlap(p, sorted[i+1]))
	}
	for i, p := range o.Prefixes {
		if alone(p) {
			continue
		}
		for _, q := range existing {
			if overlap(p, q) {
				return message(p, "an existing", q)
			}
		}
		for _, q := range o.Prefixes[i+1:] {
			if overlap(p, q) {
				return message(p, "another provided", q)
			}
		}
	}
	return ""
}
