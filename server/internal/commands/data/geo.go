package data

import (
	"math"
	"strconv"
	"strings"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/values/geo"
	"github.com/zsetd/zsetd/zset"
)

// Locations are members of sorted sets; package geo converts between them and
// scores.

// GeoCommands returns the rows of the geo commands.
func GeoCommands() []engine.Command {
	return []engine.Command{
		{Facts: protocol.Facts{
			Name: "geoadd", Arity: -5, Flags: "write denyoom", Keys: "1 RW update",
			Group: "geo", Since: "3.2.0",
			Complexity: "O(M log N), M members given, N members of the sorted set",
			Summary:    "Add members with positions, or change the positions of members",
			Syntax:     "key condition:[NX|XX]@6.2.0 [change:CH@6.2.0] data:(longitude latitude member)...",
			History:    []string{"6.2.0 `CH`, `NX`, `XX`"},
		}, Run: geoadd},
		{Facts: protocol.Facts{
			Name: "geodist", Arity: -4, Flags: "readonly", Keys: "1 RO access",
			Group: "geo", Since: "3.2.0", Complexity: "O(1)",
			Summary: "How far two members are apart",
			Syntax:  "key member1 member2 unit:[M|KM|FT|MI]",
		}, Run: geodist},
		{Facts: protocol.Facts{
			Name: "geohash", Arity: -2, Flags: "readonly", Keys: "1 RO access",
			Group: "geo", Since: "3.2.0",
			Complexity: "O(M), M members given",
			Summary:    "Positions of members as geohashes of 11 characters",
			Syntax:     "key [member [member ...]]",
		}, Named: 2, Run: geohash},
		{Facts: protocol.Facts{
			Name: "geopos", Arity: -2, Flags: "readonly", Keys: "1 RO access",
			Group: "geo", Since: "3.2.0", Complexity: "O(M), M members given",
			Summary: "Positions of members",
			Syntax:  "key [member [member ...]]",
		}, Named: 2, Run: geopos},
		{Facts: protocol.Facts{
			Name: "georadius", Arity: -6, Flags: "write denyoom",
			Keys:   "1 RO access; STORE@6 OW update; STOREDIST@6 OW update",
			KeysBy: protocol.KeysOfGeoradius,
			Group:  "geo", Since: "3.2.0", Deprecated: "6.2.0", ReplacedBy: "`GEOSEARCH` or `GEOSEARCHSTORE` with `FROMLONLAT` and `BYRADIUS`",
			Complexity: "O(log N + A + M log M), N members of the sorted set, A near the circle, M inside",
			Summary:    "Members up to radius away from a position",
			Syntax:     "key longitude latitude radius unit:M|KM|FT|MI [WITHCOORD] [WITHDIST] [WITHHASH] count-block:[COUNT count [ANY@6.2.0]] order:[ASC|DESC] store:[STORE storekey=key:key | STOREDIST storedistkey=key:key]",
			History: []string{
				"6.2.0 `ANY`",
				"7.0.0 Units in upper case",
			},
		}, Run: georadius},
		{Facts: protocol.Facts{
			Name: "georadius_ro", Arity: -6, Flags: "readonly", Keys: "1 RO access",
			Group: "geo", Since: "3.2.10", Deprecated: "6.2.0", ReplacedBy: "`GEOSEARCH` with `FROMLONLAT` and `BYRADIUS`",
			Complexity: "O(log N + A + M log M), N members of the sorted set, A near the circle, M inside",
			Summary:    "As GEORADIUS, without STORE",
			Syntax:     "key longitude latitude radius unit:M|KM|FT|MI [WITHCOORD] [WITHDIST] [WITHHASH] count-block:[COUNT count [ANY@6.2.0]] order:[ASC|DESC]",
			History:    []string{"6.2.0 `ANY`", "7.0.0 Units in upper case"},
		}, Run: georadiusRo},
		{Facts: protocol.Facts{
			Name: "georadiusbymember", Arity: -5, Flags: "write denyoom",
			Keys:   "1 RO access; STORE@5 OW update; STOREDIST@5 OW update",
			KeysBy: protocol.KeysOfGeoradius,
			Group:  "geo", Since: "3.2.0", Deprecated: "6.2.0", ReplacedBy: "`GEOSEARCH` or `GEOSEARCHSTORE` with `FROMMEMBER` and `BYRADIUS`",
			Complexity: "O(log N + A + M log M), N members of the sorted set, A near the circle, M inside",
			Summary:    "Members up to radius away from member",
			Syntax:     "key member radius unit:M|KM|FT|MI [WITHCOORD] [WITHDIST] [WITHHASH] count-block:[COUNT count [ANY]] order:[ASC|DESC] store:[STORE storekey=key:key | STOREDIST storedistkey=key:key]",
			History:    []string{"6.2.0 `ANY`", "7.0.0 Units in upper case"},
		}, Run: georadiusbymember},
		{Facts: protocol.Facts{
			Name: "georadiusbymember_ro", Arity: -5, Flags: "readonly", Keys: "1 RO access",
			Group: "geo", Since: "3.2.10", Deprecated: "6.2.0", ReplacedBy: "`GEOSEARCH` with `FROMMEMBER` and `BYRADIUS`",
			Complexity: "O(log N + A + M log M), N members of the sorted set, A near the circle, M inside",
			Summary:    "As GEORADIUSBYMEMBER, without STORE",
			Syntax:     "key member radius unit:M|KM|FT|MI [WITHCOORD] [WITHDIST] [WITHHASH] count-block:[COUNT count [ANY]] order:[ASC|DESC]",
			History:    []string{"6.2.0 `ANY`", "7.0.0 Units in upper case"},
		}, Run: georadiusbymemberRo},
		{Facts: protocol.Facts{
			Name: "geosearch", Arity: -7, Flags: "readonly", Keys: "1 RO access",
			Group: "geo", Since: "6.2.0",
			Complexity: "O(log N + A + M log M), N members of the sorted set, A near the shape, M inside",
			Summary:    "Members inside a circle or a box around a position or a member, or inside a polygon",
			Syntax:     "key from:(FROMMEMBER member | fromlonlat:(FROMLONLAT longitude latitude)) by:(circle:((BYRADIUS radius) unit:M|KM|FT|MI) | box:((BYBOX width) height unit:M|KM|FT|MI) | polygon:((BYPOLYGON num-vertices:integer) vertices:(longitude latitude)...)@9.0.0) order:[ASC|DESC] count-block:[COUNT count [ANY]] [WITHCOORD] [WITHDIST] [WITHHASH]",
			History:    []string{"7.0.0 Units in upper case", "9.0.0 `BYPOLYGON`, of Valkey"},
		}, Run: geosearch},
		{Facts: protocol.Facts{
			Name: "geosearchstore", Arity: -8, Flags: "write denyoom", Keys: "1 OW update; 2 RO access",
			Group: "geo", Since: "6.2.0",
			Complexity: "O(log N + A + M log M), N members of the sorted set, A near the shape, M inside",
			Summary:    "Store the result of GEOSEARCH in destination",
			Syntax:     "destination source from:(FROMMEMBER member | fromlonlat:(FROMLONLAT longitude latitude)) by:(circle:((BYRADIUS radius) unit:M|KM|FT|MI) | box:((BYBOX width) height unit:M|KM|FT|MI) | polygon:((BYPOLYGON num-vertices:integer) vertices:(longitude latitude)...)@9.0.0) order:[ASC|DESC] count-block:[COUNT count [ANY]] [STOREDIST]",
			History:    []string{"7.0.0 Units in upper case", "9.0.0 `BYPOLYGON`, of Valkey"},
		}, Run: geosearchstore},
	}
}

// readPoint reads longitude and latitude.
func readPoint(c *engine.Call) geo.Point {
	p := geo.Point{Longitude: c.Float(), Latitude: c.Float()}
	if c.Err() == "" && !p.Valid() {
		c.Fail("ERR invalid longitude,latitude pair " + sixDigits(p.Longitude) + "," + sixDigits(p.Latitude))
	}
	return p
}

// sixDigits formats a number as C's %f does.
func sixDigits(f float64) string {
	if math.IsInf(f, 0) {
		return strings.TrimPrefix(strings.ToLower(strconv.FormatFloat(f, 'f', 6, 64)), "+")
	}
	return strconv.FormatFloat(f, 'f', 6, 64)
}

// readUnit reads a unit of length and returns its metres.
func readUnit(c *engine.Call) float64 {
	switch {
	case c.Is("M"):
		return 1
	case c.Is("KM"):
		return 1000
	case c.Is("FT"):
		return 0.3048
	case c.Is("MI"):
		return 1609.34
	}
	c.Fail("ERR unsupported unit provided. please use M, KM, FT, MI")
	return 1
}

func readRadius(c *engine.Call, s *geo.Shape) {
	s.Box = false
	s.Radius = c.FloatOr("ERR need numeric radius")
	if s.Radius < 0 {
		c.Fail("ERR radius cannot be negative")
	}
	s.Unit = readUnit(c)
}

func readBox(c *engine.Call, s *geo.Shape) {
	s.Box = true
	s.Width, s.Height = c.FloatOr("ERR need numeric width"), c.FloatOr("ERR need numeric height")
	if s.Width < 0 || s.Height < 0 {
		c.Fail("ERR height or width cannot be negative")
	}
	s.Unit = readUnit(c)
}

// readPolygon reads the number of vertices and their positions.
func readPolygon(c *engine.Call) geo.Shape {
	n := c.IntIn(math.MinInt32, math.MaxInt32, "ERR invalid number of vertices")
	if n < 3 || n > int64(c.Len()/2) {
		c.Fail("ERR GEOSEARCH BYPOLYGON must have at least 3 vertices")
	}
	if c.Err() != "" {
		return geo.Shape{}
	}
	vertices := make([]geo.Point, n)
	for i := range vertices {
		vertices[i] = readPoint(c)
	}
	return geo.Polygon(vertices)
}

// geoadd is ZADD, after it has converted locations to scores.
func geoadd(c *engine.Call) {
	key := c.Bytes()
	var o zaddOptions
	for reading := true; reading; {
		switch {
		case c.Is("NX"):
			o.cond |= zset.NX
		case c.Is("XX"):
			o.cond |= zset.XX
		case c.Is("CH"):
			o.ch = true
		default:
			reading = false
		}
	}
	if c.Len()%3 != 0 || o.has(zset.NX|zset.XX) {
		c.Fail(protocol.ErrSyntax)
	}
	n := c.Len() / 3
	scores, pairs := make([]float64, 0, n), make([][]byte, 0, 2*n)
	for c.More() {
		scores = append(scores, readPoint(c).Score())
		pairs = append(pairs, nil, c.Bytes())
	}
	o.validate(c, pairs)
	if c.OK() {
		zaddScores(c, key, o, scores, pairs)
	}
}

// pointOf returns the location of a member. s may be nil.
func pointOf(s *zset.Set, member []byte) (p geo.Point, ok bool) {
	if s == nil {
		return p, false
	}
	score, ok := s.Internal().Score(member)
	return geo.PointOf(score), ok
}

func geopos(c *engine.Call) {
	s, ok := engine.Read[zset.Set](c, c.Bytes())
	if !ok {
		return
	}
	members := c.Rest()
	c.Reply.Array(len(members))
	for _, member := range members {
		if p, ok := pointOf(s, member); ok {
			replyPoint(c, p)
		} else {
			c.Reply.NullArray()
		}
	}
}

func replyPoint(c *engine.Call, p geo.Point) {
	c.Reply.Array(2)
	c.Reply.Double(p.Longitude)
	c.Reply.Double(p.Latitude)
}

// replyDistance replies with four digits behind the point, in RESP2 and RESP3.
func replyDistance(c *engine.Call, d float64) {
	n := uint64(math.RoundToEven(d * 10000))
	b := strconv.AppendUint(make([]byte, 0, 32), n/10000, 10)
	b = append(b, '.')
	for digit := uint64(1000); digit > 0; digit /= 10 {
		b = append(b, '0'+byte(n/digit%10))
	}
	c.Reply.Bulk(b)
}

func geodist(c *engine.Call) {
	key, from, to := c.Bytes(), c.Bytes(), c.Bytes()
	unit := 1.0
	if c.Len() == 1 {
		unit = readUnit(c)
	}
	if !c.End() {
		return
	}
	s, ok := engine.Read[zset.Set](c, key)
	if !ok {
		return
	}
	a, ok1 := pointOf(s, from)
	b, ok2 := pointOf(s, to)
	if !ok1 || !ok2 {
		c.Reply.Null()
		return
	}
	replyDistance(c, geo.Distance(a, b)/unit)
}

func geohash(c *engine.Call) {
	s, ok := engine.Read[zset.Set](c, c.Bytes())
	if !ok {
		return
	}
	members := c.Rest()
	c.Reply.Array(len(members))
	for _, member := range members {
		if p, ok := pointOf(s, member); ok {
			c.Reply.BulkString(p.Hash())
		} else {
			c.Reply.Null()
		}
	}
}

// The commands that search. They differ in their arguments and share the search.

// geoSearch is the parameters of a search and of its reply.
type geoSearch struct {
	shape geo.Shape
	count int64
	any   bool
	order order

	withDist, withHash, withCoord bool

	store     bool
	dst       []byte
	storeDist bool

	fromMember, fromPoint, byRadius, byBox, byPolygon bool // the options that GEOSEARCH was given
}

// order is the order of the results, by distance.
type order uint8

const (
	unsorted order = iota
	ascending
	descending
)

// option reads an option that all of these commands accept.
func (g *geoSearch) option(c *engine.Call) bool {
	switch {
	case c.Is("WITHDIST"):
		g.withDist = true
	case c.Is("WITHHASH"):
		g.withHash = true
	case c.Is("WITHCOORD"):
		g.withCoord = true
	case c.Is("ANY"):
		g.any = true
	case c.Is("ASC"):
		g.order = ascending
	case c.Is("DESC"):
		g.order = descending
	case c.Len() >= 2 && c.Is("COUNT"):
		g.count = c.Int()
		if c.Err() == "" && g.count <= 0 {
			c.Fail("ERR COUNT must be > 0")
		}
	default:
		return false
	}
	return true
}

// storeOption reads the destination of GEORADIUS.
func (g *geoSearch) storeOption(c *engine.Call) bool {
	switch {
	case c.Len() >= 2 && c.Is("STORE"):
		g.storeDist = false
	case c.Len() >= 2 && c.Is("STOREDIST"):
		g.storeDist = true
	default:
		return false
	}
	g.store, g.dst = true, c.Bytes()
	return true
}

// noPoint is the error for a member that is no place.
func noPoint(c *engine.Call, member []byte) string {
	return c.Config().Words("ERR could not decode requested zset member", "ERR member "+engine.Clip(member, len(member))+" does not exist")
}

// shapeOption reads the centre and the shape of GEOSEARCH. Redis looks up the
// member immediately.
func (g *geoSearch) shapeOption(c *engine.Call, s *zset.Set) bool {
	switch {
	case g.byPolygon && !protocol.EqualFold(c.Peek(0), "BYPOLYGON"): // it has a center, and is the only shape
		return false
	case c.Len() >= 2 && !g.fromPoint && c.Is("FROMMEMBER"):
		g.fromMember = true
		var ok bool
		member := c.Bytes()
		if g.shape.Center, ok = pointOf(s, member); !ok && s != nil {
			c.Fail(noPoint(c, member))
		}
	case c.Len() >= 3 && !g.fromMember && c.Is("FROMLONLAT"):
		g.fromPoint = true
		g.shape.Center = readPoint(c)
	case c.Len() >= 3 && !g.byBox && c.Is("BYRADIUS"):
		g.byRadius = true
		readRadius(c, &g.shape)
	case c.Len() >= 4 && !g.byRadius && c.Is("BYBOX"):
		g.byBox = true
		readBox(c, &g.shape)
	case c.Len() >= 2 && !g.fromMember && !g.fromPoint && !g.byRadius && !g.byBox && c.Is("BYPOLYGON"):
		g.byPolygon = true
		g.shape = readPolygon(c)
	default:
		return false
	}
	return true
}

func georadius(c *engine.Call) { georadiusWith(c, true) }

func georadiusRo(c *engine.Call) { georadiusWith(c, false) }

// georadiusWith checks the key before its other arguments, as Redis does.
func georadiusWith(c *engine.Call, mayStore bool) {
	s, ok := engine.Read[zset.Set](c, c.Bytes())
	if !ok {
		return
	}
	var g geoSearch
	g.shape.Center = readPoint(c)
	readRadius(c, &g.shape)
	g.radiusOptions(c, mayStore)
	g.run(c, s, "georadiusstore")
}

func georadiusbymember(c *engine.Call) { georadiusbymemberWith(c, true) }

func georadiusbymemberRo(c *engine.Call) { georadiusbymemberWith(c, false) }

func georadiusbymemberWith(c *engine.Call, mayStore bool) {
	s, ok := engine.Read[zset.Set](c, c.Bytes())
	if !ok {
		return
	}
	var g geoSearch
	if s == nil {
		c.Skip(3) // without a key Redis does not check them
	} else {
		member := c.Bytes()
		if g.shape.Center, ok = pointOf(s, member); !ok {
			c.Fail(noPoint(c, member))
		}
		readRadius(c, &g.shape)
	}
	g.radiusOptions(c, mayStore)
	g.run(c, s, "georadiusstore")
}

func (g *geoSearch) radiusOptions(c *engine.Call, mayStore bool) {
	for c.More() {
		if !g.option(c) && !(mayStore && g.storeOption(c)) {
			c.Fail(protocol.ErrSyntax)
		}
	}
	if g.store && (g.withDist || g.withHash || g.withCoord) {
		c.Fail("ERR STORE option in GEORADIUS is not compatible with WITHDIST, WITHHASH and WITHCOORD options")
	}
}

func geosearch(c *engine.Call) {
	var g geoSearch
	geosearchWith(c, &g)
}

func geosearchstore(c *engine.Call) {
	g := geoSearch{store: true, dst: c.Bytes()}
	geosearchWith(c, &g)
}

func geosearchWith(c *engine.Call, g *geoSearch) {
	s, ok := engine.Read[zset.Set](c, c.Bytes())
	if !ok {
		return
	}
	for c.More() {
		switch {
		case g.option(c), g.shapeOption(c, s):
		case g.store && c.Is("STOREDIST"):
			g.storeDist = true
		default:
			c.Fail(protocol.ErrSyntax)
		}
	}
	switch name := string(c.Argv[0]); {
	case g.store && (g.withDist || g.withHash || g.withCoord):
		c.Fail("ERR GEOSEARCHSTORE is not compatible with WITHDIST, WITHHASH and WITHCOORD options")
	case g.byPolygon:
	case !g.fromMember && !g.fromPoint:
		c.Fail("ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for " + name)
	case !g.byRadius && !g.byBox:
		c.Fail("ERR exactly one of " + c.Config().Words("BYRADIUS and BYBOX", "BYRADIUS, BYBOX and BYPOLYGON") + " can be specified for " + name)
	}
	g.run(c, s, "geosearchstore")
}

// geoMatch is a member within the shape.
type geoMatch struct {
	member   string
	score    float64
	distance float64 // in metres
	place    geo.Point
}

// run searches s, which may be nil, and replies.
func (g *geoSearch) run(c *engine.Call, s *zset.Set, event string) {
	if g.any && g.count == 0 {
		c.Fail("ERR the ANY argument requires COUNT argument")
	}
	if !c.OK() {
		return
	}
	var list []geoMatch
	if s != nil {
		list = g.search(s)
	}
	if g.count > 0 && g.order == unsorted && !g.any {
		g.order = ascending // for the nearest ones
	}
	n := len(list)
	if g.count > 0 {
		n = int(min(g.count, int64(n)))
	}
	switch g.order {
	case ascending:
		sortNearest(list, n, compareDistances)
	case descending:
		sortNearest(list, n, func(a, b geoMatch) int { return compareDistances(b, a) })
	}
	list = list[:n]
	if g.store {
		result := new(zset.Set)
		for _, f := range list {
			score := f.score
			if g.storeDist {
				score = f.distance / g.shape.Unit
			}
			result.Add(f.member, score)
		}
		zstore(c, g.dst, result, event)
		return
	}
	g.reply(c, list)
}

func compareDistances(a, b geoMatch) int {
	switch {
	case a.distance < b.distance:
		return -1
	case a.distance > b.distance:
		return 1
	}
	return 0
}

func (g *geoSearch) search(s *zset.Set) (list []geoMatch) {
	for _, r := range g.shape.Ranges() {
		for member, score := range s.ByScore(zset.ScoreRange{Min: r.Min, Max: r.Max, MaxExclusive: true}) {
			p := geo.PointOf(score)
			if d, ok := g.shape.Contains(p); ok {
				list = append(list, geoMatch{member, score, d, p})
			}
			if g.any && int64(len(list)) >= g.count {
				return list
			}
		}
	}
	return list
}

func (g *geoSearch) reply(c *engine.Call, list []geoMatch) {
	parts := 1
	for _, with := range []bool{g.withDist, g.withHash, g.withCoord} {
		if with {
			parts++
		}
	}
	c.Reply.Array(len(list))
	for _, f := range list {
		if parts > 1 {
			c.Reply.Array(parts)
		}
		c.Reply.BulkString(f.member)
		if g.withDist {
			replyDistance(c, f.distance/g.shape.Unit)
		}
		if g.withHash {
			c.Reply.Int(geo.Truncate(f.score))
		}
		if g.withCoord {
			replyPoint(c, f.place)
		}
	}
}
