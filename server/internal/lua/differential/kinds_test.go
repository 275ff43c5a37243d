package differential

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server/servertest/judge"
	"github.com/zsetd/zsetd/server/servertest/rerun"
)

// kindsPrelude begins the programs of kinds: show collects results, try those of a protected call.
const kindsPrelude = "local out = { } local function show ( ... ) for i = 1 , select ( '#' , ... ) do out [ #out + 1 ] = tostring ( ( select ( i , ... ) ) ) end end " +
	"local function try ( f , ... ) show ( pcall ( f , ... ) ) end " +
	"local inf , nan , zero , none = 1 / 0 , 0 / 0 , 0 , nil local A , B , C = { name = 'A' } , { name = 'B' } , { name = 'C' } "

// luaKinds are the kinds of programs that [luaFuzzer.program] does not draw, in an order that does
// not change: a seed draws the same programs in each run.
var luaKinds = []struct {
	name string
	draw func(luaFuzzer) string
}{
	{"tables", luaFuzzer.tables}, {"metamethods", luaFuzzer.metamethods}, {"coroutines", luaFuzzer.coroutines}, {"varargs", luaFuzzer.varargs},
	{"patterns", luaFuzzer.patterns}, {"formats", luaFuzzer.formats}, {"numbers", luaFuzzer.numbers}, {"round trips", luaFuzzer.roundTrips},
	{"errors", luaFuzzer.errorValues}, {"arguments", luaFuzzer.anyArguments}, {"sorts", luaFuzzer.sorts},
}

func (r luaFuzzer) times(n int, f func() string) string {
	var b strings.Builder
	for range 1 + r.IntN(n) {
		b.WriteString(f() + " ")
	}
	return b.String()
}

// scalar is a constant expression, of any type but a table.
func (r luaFuzzer) scalar() string {
	return pick(r, "0", "1", "-1", "2", "3", "10", "0.5", "-0.5", "2^31", "-2^31", "2^53", "2^53+2", "1e15", "1e100", "1e308", "-1e308", "5e-324", "inf", "-inf", "nan", "zero*-1",
		"'0'", "'10'", "' 0x1F '", "'1e2'", "'-0'", "'abc'", "''", "'a\\0b'", "'inf'", "'nan'", "'3 '", "true", "false", "nil", "7", "255", "65", "100")
}

// anything is an expression of any type.
func (r luaFuzzer) anything() string {
	return pick(r, r.scalar(), r.scalar(), "A", "B", "C", "{ }", "{ 1 , 2 , 3 }", "{ 'x' , 'y' , a = 1 }", "print", "show", "string.upper", "cjson.null",
		"coroutine.create ( function ( ) end )", "function ( ... ) return ... end")
}

func (r luaFuzzer) key() string {
	switch r.IntN(8) {
	case 0, 1, 2, 3:
		return fmt.Sprint(r.IntN(20) - 2)
	case 4, 5:
		return fmt.Sprintf("'k%d'", r.IntN(30))
	case 6:
		return pick(r, "true", "false", "1.5", "-1", "2^31", "2^40", "inf", "0.1", "'1'", "''", "cjson.null", "1e100", "-2.5", "100", "1000")
	}
	return r.text(5)
}

// tables changes a table at random, and shows its border and its order.
func (r luaFuzzer) tables() string {
	entry := func() string {
		return pick(r, "1", "'v'", "nil", "true", "[ "+r.key()+" ] = 1", "[ "+r.key()+" ] = 'w'", fmt.Sprintf("k%d = 2", r.IntN(30))) + " ,"
	}
	change := func() string {
		k := r.key()
		switch r.IntN(16) {
		case 0, 1, 2, 3:
			return "t [ " + k + " ] = " + pick(r, "1", "'v'", "true", "{ }")
		case 4, 5, 6:
			return "t [ " + k + " ] = nil"
		case 7:
			return fmt.Sprintf("for i = %d , %d do t [ i ] = i end", r.IntN(10), r.IntN(40))
		case 8:
			return fmt.Sprintf("for i = %d , %d , -1 do t [ i ] = %s end", r.IntN(40), r.IntN(10), pick(r, "i", "nil"))
		case 9:
			return fmt.Sprintf("for i = 1 , %d do t [ 'k' .. i ] = %s end", r.IntN(40), pick(r, "i", "i", "nil"))
		case 10:
			return "try ( table.insert , t , " + pick(r, "", fmt.Sprint(r.IntN(9)-1)+" , ") + "'n' )"
		case 11:
			return "try ( table.remove , t " + pick(r, "", " , "+fmt.Sprint(r.IntN(9)-1)) + " )"
		case 12:
			return "show ( #t , table.maxn ( t ) , table.getn ( t ) )"
		case 13:
			return fmt.Sprintf("for k in pairs ( t ) do if type ( k ) == '%s' then t [ k ] = nil end end", pick(r, "number", "string"))
		case 14:
			return "t [ #t + 1 ] = " + pick(r, "1", "'e'") + " show ( #t )"
		}
		return "try ( rawset , t , " + k + " , " + pick(r, "1", "nil") + " )"
	}
	show := func() string {
		return pick(r, "for k , v in pairs ( t ) do show ( k , type ( v ) ) end", "show ( #t )", "local k = next ( t ) while k ~= nil do show ( k ) k = next ( t , k ) end",
			"table.foreach ( t , function ( k , v ) show ( k ) end )", "for i , v in ipairs ( t ) do show ( i ) end", "show ( pcall ( cjson.encode , t ) )",
			"show ( ( string.gsub ( cmsgpack.pack ( t ) , '.' , function ( c ) return string.byte ( c ) .. ' ' end ) ) )", "try ( unpack , t )", "try ( table.concat , t , ',' )", "try ( next , t , "+r.key()+" )")
	}
	body := r.times(12, func() string { return change() + " " + pick(r, "", "", show()) })
	return "local t = { " + strings.TrimSuffix(r.times(8, entry), ", ") + " } " + body + show() + " " + show()
}

// operation is an expression of two operands.
func (r luaFuzzer) operation(a, b string) string {
	switch r.IntN(14) {
	case 0:
		return "- " + a
	case 1:
		return "# " + a
	case 2:
		return "( " + a + " ) [ " + b + " ]"
	case 3:
		return "( " + a + " ) ( " + b + " )"
	case 4:
		return a + " .. " + b + " .. " + a
	}
	return a + " " + pick(r, "+", "-", "*", "/", "%", "^", "..", "==", "~=", "<", "<=", ">", ">=") + " " + b
}

// metamethods draws metatables and operations on what has them.
func (r luaFuzzer) metamethods() string {
	method := func() string {
		event := pick(r, "add", "sub", "mul", "div", "mod", "pow", "unm", "concat", "eq", "lt", "le", "index", "newindex", "call", "len", "tostring", "metatable", "mode", "gc")
		body := pick(r, "both", "both", "first", "fails", "number", "A", "yields", "'text'", "B", "nothing")
		return pick(r, "M", "N") + " . __" + event + " = " + body
	}
	x := func() string { return pick(r, "A", "B", "C", "A", "B", r.scalar(), "'s'", "{ }") }
	use := func() string {
		switch r.IntN(8) {
		case 0:
			return "try ( function ( ) " + pick(r, "A", "B", "C") + " [ " + r.scalar() + " ] = " + r.scalar() + " return rawget ( A , 'x' ) end )"
		case 1:
			return "try ( tostring , " + x() + " )"
		case 2:
			return "try ( " + pick(r, "getmetatable", "rawequal , A", "rawget , A", "setmetatable , A", "setmetatable , B") + " , " + x() + " )"
		case 3:
			return "try ( function ( ) return " + pick(r, "A", "B") + " ( " + x() + " ) end )"
		case 4:
			return "try ( function ( ) return ( " + pick(r, "A", "B", "C") + " : q ( " + x() + " ) ) end )"
		case 5:
			return "for k , v in ( function ( ) local n = 0 return " + pick(r, "A", "function ( ) n = n + 1 if n < 3 then return n end end") + " end ) ( ) do show ( k ) break end"
		}
		return "try ( function ( ) return " + r.operation(x(), x()) + " end )"
	}
	return "local M , N = { } , { } local function kind ( v ) return type ( v ) == 'table' and ( rawget ( v , 'name' ) or 'table' ) or tostring ( v ) end " +
		"local function both ( a , b , c ) show ( 'both' , kind ( a ) , kind ( b ) , kind ( c ) ) return kind ( a ) , 'second' end " +
		"local function first ( a ) return a end local function fails ( a ) error ( 'failed' ) end local function number ( ) return 42 end local function nothing ( ) end " +
		"local function yields ( ) coroutine.yield ( 1 ) end " + r.times(8, method) +
		"pcall ( setmetatable , A , M ) pcall ( setmetatable , B , " + pick(r, "M", "N", "N") + " ) pcall ( setmetatable , C , { __index = " + pick(r, "A", "B", "both") + " , __newindex = " + pick(r, "A", "B", "both") + " } ) " +
		"try ( function ( ) " + use() + " end ) " + r.times(10, func() string { return "try ( function ( ) " + use() + " end )" })
}

// coroutines draws coroutines that yield from all places, and fail.
func (r luaFuzzer) coroutines() string {
	var body func(depth int) string
	body = func(depth int) string {
		step := func() string {
			n := r.IntN(15)
			if depth == 0 && n > 8 {
				n = r.IntN(9)
			}
			switch n {
			case 0, 1, 2:
				return "show ( coroutine.yield ( " + pick(r, "", "1", "1 , nil , 3", "...", "'y'") + " ) )"
			case 3:
				return pick(r, "error ( 'e' )", "error ( )", "error ( { } , 2 )", "error ( 'l2' , 2 )", "local x = none . x", "return 'early' , 2", "do return ... end")
			case 4:
				return "show ( coroutine.status ( coroutine.running ( ) ) )"
			case 5:
				return "for i = 1 , 2 do coroutine.yield ( i ) end"
			case 6:
				return "show ( select ( '#' , ... ) , ... )"
			case 7:
				return "local v = { coroutine.yield ( 'list' ) , 'end' , coroutine.yield ( 'again' ) } show ( #v , unpack ( v , 1 , 3 ) )"
			case 8:
				return "show ( coroutine.yield ( ) .. 'x' )"
			case 9:
				return "try ( function ( ... ) " + body(depth-1) + " end , 'p' )"
			case 10:
				return "local w = coroutine.wrap ( function ( ... ) " + body(depth-1) + " end ) show ( w ( 'w' ) ) show ( pcall ( w , 'w2' ) )"
			case 11:
				return "local t = { 3 , 1 , 2 } table.sort ( t , function ( a , b ) " + body(0) + " return a < b end )"
			case 12:
				return "show ( ( string.gsub ( 'ab' , '.' , function ( c ) " + body(0) + " return c end ) ) )"
			case 13:
				return "( function ( ... ) " + body(depth-1) + " end ) ( 'inner' )"
			}
			return "local m = setmetatable ( { } , { __index = function ( t , k ) " + body(0) + " return k end , __call = function ( ... ) " + body(0) + " end } ) show ( m . f ) show ( m ( 1 ) )"
		}
		list := ""
		for range 1 + r.IntN(4) {
			s := step()
			if strings.HasPrefix(s, "return") || strings.HasPrefix(s, "error") { // the last statement of a block
				s = "if #out % 2 == 0 then " + s + " end"
			}
			list += s + " ; "
		}
		return list
	}
	use := func() string {
		return pick(r, "show ( coroutine.resume ( co , 'r' ) )", "show ( coroutine.resume ( co ) )", "show ( coroutine.resume ( co , 1 , nil , 3 ) )", "show ( coroutine.status ( co ) )",
			"try ( co2 , 'w' )", "try ( co2 )", "show ( coroutine.resume ( co , co ) )", "try ( coroutine.resume , "+r.scalar()+" )", "try ( coroutine.wrap , "+r.scalar()+" )", "try ( coroutine.yield , 1 )",
			"try ( coroutine.status , "+r.scalar()+" )", "show ( type ( coroutine.running ( ) ) )", "for a , b in co2 do show ( a , b ) if #out > 60 then break end end")
	}
	return "local co , co2 co = coroutine.create ( function ( ... ) " + body(2) + " return 'done' , ... end ) co2 = coroutine.wrap ( function ( ... ) " + body(1) + " end ) " +
		r.times(10, func() string { return "try ( function ( ) " + use() + " end )" })
}

// varargs draws lists of values of unknown length, in all positions.
func (r luaFuzzer) varargs() string {
	list := func() string {
		return r.join(3, "1 , ", "nil , ", "'x' , ", "( f ( 1 , 2 ) ) , ", "f ( 1 , 2 ) , ", "... , ") + pick(r, "...", "f ( ... )", "f ( )", "( ... )", "nil", "f ( f ( 2 , 3 ) , 4 )", "unpack ( { 1 , nil , 3 } , 1 , 3 )", "select ( 2 , ... )")
	}
	step := func() string {
		switch r.IntN(10) {
		case 0:
			return "show ( " + list() + " )"
		case 1:
			return "local t = { " + list() + " } show ( #t , unpack ( t , 1 , 6 ) )"
		case 2:
			return "local a , b , c = " + list() + " show ( a , b , c )"
		case 3:
			return "try ( select , " + pick(r, "'#'", "1", "2", "-1", "-2", "-9", "0", "9", "'2'", "1.9") + " , " + list() + " )"
		case 4:
			return "try ( unpack , { " + list() + " } , " + pick(r, "1 , 3", "-1 , 2", "2", "3 , 1", "1 , 5", "nil , 2", "2^31 , 2^31 + 1", "1 , 8000", "1 , 1e8", "-2^31 , 2^31") + " )"
		case 5:
			return "show ( ( function ( ... ) return " + list() + " end ) ( " + list() + " ) )"
		case 6:
			return "show ( ( function ( a , ... ) local x , y = ... return a , y , x , select ( '#' , ... ) end ) ( " + list() + " ) )"
		case 7:
			return "show ( pcall ( f , " + list() + " ) )"
		case 8:
			return "local n = 0 for i , v in ipairs ( { " + list() + " } ) do n = n + i end show ( n )"
		}
		return "show ( (function ( ... ) return arg and arg . n or select ( '#' , ... ) end) ( " + list() + " ) )"
	}
	return "local function f ( ... ) " + pick(r, "return ...", "return ... , 'f'", "return 'f' , ...", "return select ( '#' , ... ) , ...", "if ... then return ... end") + " end " +
		"local function g ( ... ) " + r.times(8, step) + " end try ( g " + pick(r, "", ", 1", ", nil", ", 1 , 2 , 3", ", nil , nil", ", 'a' , false , nil") + " )"
}

func (r luaFuzzer) pattern() string {
	return r.join(6, "a", "b", ".", "%a", "%d", "%s", "%w", "%S", "%W", "[ab]", "[^a]", "[a-c]", "[%d_]", "[]]", "[^]]", "[a-]", "(", ")", "()", "(a*)", "(.)", "*", "+", "-", "?", "%1", "%2", "%b()", "%f[%a]", "%f[^a]",
		"$", "^", "%", "[", "%.", "\\0", "%z", "x", " ")
}

// patterns calls the functions of string that match.
func (r luaFuzzer) patterns() string {
	subject := func() string {
		return "'" + r.join(10, "a", "b", "ab", "(", ")", "1", " ", "x", "_", "]", ".", "\\0", "aa", "(a)", "%", "\\200") + "'"
	}
	one := func() string {
		s, p := subject(), "'"+r.pattern()+"'"
		switch r.IntN(7) {
		case 0, 1:
			return "try ( string.find , " + s + " , " + p + pick(r, "", " , "+r.scalar(), " , 2", " , -3", " , 1 , true", " , 99") + " )"
		case 2:
			return "try ( string.match , " + s + " , " + p + pick(r, "", " , 2", " , -2", " , 0") + " )"
		case 3:
			return "try ( function ( ) local n = 0 for a , b in string.gmatch ( " + s + " , " + p + " ) do n = n + 1 show ( a , b ) if n > 20 then break end end end )"
		}
		by := pick(r, "'<%0>'", "'%1'", "'%2'", "'%%'", "'%'", "'%x'", "''", "{ a = 'T' , b = 1 , ab = false , x = { } }", "function ( ... ) show ( ... ) return ( ... ) end", "function ( ) return nil end",
			"function ( ) return { } end", "string.upper", "setmetatable ( { } , { __index = function ( t , k ) return k .. '!' end } )", "1", "nil", "function ( ) error ( 'x' ) end")
		return "try ( string.gsub , " + s + " , " + p + " , " + by + pick(r, "", " , 1", " , 0", " , 2", " , -1", " , 'x'", " , 1e10") + " )"
	}
	return r.times(6, one)
}

// formats calls string.format.
func (r luaFuzzer) formats() string {
	one := func() string {
		var format string
		args := ""
		for range 1 + r.IntN(3) {
			format += pick(r, "", "text", "%%", "\\0") + "%" + r.join(2, "", "", "-", "+", " ", "#", "0") + pick(r, "", "", "5", "12", "99", "100") + pick(r, "", "", ".0", ".3", ".14", ".20", ".", ".99") +
				pick(r, "d", "i", "u", "c", "x", "X", "o", "e", "E", "f", "g", "G", "s", "q", "s", "p", "a", "")
			args += " , " + pick(r, r.scalar(), r.literal(), "'text'", "A")
		}
		if strings.Contains(args, "A") {
			args = strings.ReplaceAll(args, " A", " type ( A )")
		}
		return "try ( string.format , '" + format + "'" + args + pick(r, "", "", " , 1") + " )"
	}
	return r.times(5, one)
}

// numbers calculates and compares at the edges of numbers.
func (r luaFuzzer) numbers() string {
	x := func() string { return pick(r, r.scalar(), r.literal(), r.literal(), "a", "b") }
	one := func() string {
		switch r.IntN(8) {
		case 0:
			return "try ( tonumber , " + pick(r, x(), "'"+r.join(5, "0", "1", "7", "9", "a", "f", "x", "z", "e", "-", "+", ".", " ", "p", "\\0", "nan", "inf")+"'") + pick(r, "", " , "+fmt.Sprint(r.IntN(40)), " , 16", " , 36", " , 10") + " )"
		case 1:
			return fmt.Sprintf("try ( function ( ) local n = 0 for i = %s , %s , %s do n = n + 1 show ( i ) if n > 5 then break end end end )", x(), x(), pick(r, "1", "-1", "0.1", "0", "1e300", x()))
		case 2:
			f := pick(r, "abs", "ceil", "floor", "sqrt", "deg", "rad", "modf", "frexp")
			return "try ( math." + f + " , " + x() + " )"
		case 3:
			return "try ( math." + pick(r, "fmod", "mod", "pow", "atan2", "ldexp", "max", "min") + " , " + x() + " , " + x() + " )"
		case 4:
			return "try ( function ( ) return " + x() + " " + pick(r, "<", "<=", ">", ">=", "==", "~=") + " " + x() + " end )"
		case 5:
			return "try ( function ( ) local t = { } t [ " + x() + " ] = 1 for k in pairs ( t ) do show ( k ) end return # t end )"
		}
		return "try ( function ( ) return " + x() + " " + pick(r, "+", "-", "*", "/", "%", "^") + " " + x() + pick(r, "", "", " "+pick(r, "+", "-", "*", "/", "%", "^")+" "+x()) + " end )"
	}
	return "local a , b = " + r.literal() + " , " + r.literal() + " " + r.times(8, one)
}

// roundTrips encodes tables of any order, and decodes them.
func (r luaFuzzer) roundTrips() string {
	var table func(depth int) string
	table = func(depth int) string {
		list := ""
		for range r.IntN(6) {
			v := pick(r, r.literal(), r.text(6), "true", "false", "cjson.null")
			if depth > 0 && r.IntN(3) == 0 {
				v = table(depth - 1)
			}
			list += pick(r, "", "", "[ "+r.text(3)+" ] = ", fmt.Sprintf("k%d = ", r.IntN(9)), fmt.Sprintf("[ %d ] = ", r.IntN(12)), "[ 1.5 ] = ") + v + " , "
		}
		return "{ " + list + "}"
	}
	hex := "local function hex ( s ) return type ( s ) == 'string' and ( string.gsub ( s , '.' , function ( c ) return string.format ( '%02x' , string.byte ( c ) ) end ) ) or s end "
	one := func() string {
		v := table(3)
		switch r.IntN(6) {
		case 0, 1:
			return "do local ok , s = pcall ( cjson.encode , " + v + " ) show ( s ) if ok then try ( function ( ) return cjson.encode ( cjson.decode ( s ) ) end ) end end"
		case 2, 3:
			return "do local s = cmsgpack.pack ( " + strings.ReplaceAll(v, "cjson.null", "nil") + " , 1 ) show ( hex ( s ) ) try ( function ( ) return hex ( cmsgpack.pack ( cmsgpack.unpack ( s ) ) ) end ) " +
				"try ( cmsgpack.unpack , s : sub ( 1 , " + fmt.Sprint(r.IntN(20)) + " ) ) try ( cmsgpack.unpack_limit , s , " + fmt.Sprint(r.IntN(3)) + " , " + fmt.Sprint(r.IntN(3)-1) + " ) end"
		case 4:
			layout, args := r.layout()
			return "do local ok , s = pcall ( struct.pack , '" + layout + "' , " + args + " ) show ( hex ( s ) ) if ok then try ( struct.unpack , '" + layout + "' , s ) end end"
		}
		return "try ( bit . " + pick(r, "band", "bor", "bxor", "lshift", "rshift", "arshift", "rol", "ror", "tohex", "bnot", "bswap", "tobit") + " , " + r.literal() + " , " + pick(r, r.literal(), r.scalar()) + " )"
	}
	return hex + r.times(4, one)
}

// errorValues raises values of all types and catches them in all ways.
func (r luaFuzzer) errorValues() string {
	v := func() string {
		return pick(r, r.scalar(), "'text'", "{ err = 'field' }", "{ err = 5 }", "{ }", "A", "setmetatable ( { } , { __tostring = function ( ) return 'shown' end } )", "{ err = { } }", "{ ok = 'fine' }", "{ err = 'E x' , ignore_error_stats_update = true }")
	}
	raise := func() string {
		return pick(r, "error ( "+v()+" )", "error ( "+v()+" , "+pick(r, "0", "1", "2", "3", "'1'", "9")+" )", "assert ( "+pick(r, "nil", "false", v())+pick(r, "", " , "+v())+" )", "none ( )", "local x = none . y", "none . y = 1",
			"return none .. 'x'", "return none + 1", "return { } < { }", "return { } < 1", "return # none", "return - { }", "nosuch ( )", "nosuch = 1", "A . b . c = 1", "A : nosuch ( )", "string.rep ( )", "('x') : rep ( { } )", "('x') . y . z = 1",
			"redis.call ( 'nosuch' )", "redis.call ( 'get' )", "redis.call ( )", "redis.error_reply ( 'E' )", "for i = 1 , { } do end", "for i in none do end", "local t = { } t [ none ] = 1", "local t = { } t [ nan ] = 1", "return math.floor ( 'x' )",
			"string.format ( '%d' , 'x' )", "setmetatable ( 1 , { } )", "error ( )", "return f ( )")
	}
	call := func() string {
		f := "function ( ... ) " + pick(r, "", "local l = 1 ", "local none = 5 ", "do local y end ") + raise() + " end"
		switch r.IntN(8) {
		case 0:
			return "show ( xpcall ( " + f + " , " + pick(r, "function ( e ) show ( 'handler' , e ) return e end", "function ( e ) return 'h' , 2 end", "function ( e ) error ( 'again' ) end", "tostring", "type", "nil", "1", "function ( e ) return { e } end", "A") + " ) )"
		case 1:
			return "try ( pcall , " + f + " )"
		case 2:
			return "show ( coroutine.resume ( coroutine.create ( " + f + " ) ) )"
		case 3:
			return "try ( coroutine.wrap ( " + f + " ) )"
		case 4:
			return "try ( function ( ) ( " + f + " ) ( ) end )"
		case 5:
			return "try ( function ( ) return ( " + f + " ) ( ) end )"
		case 6:
			return "try ( function ( ) table.sort ( { 1 , 2 , 3 } , " + f + " ) end )"
		}
		return "try ( " + f + " )"
	}
	body := r.times(5, call)
	if r.IntN(3) == 0 { // the error that ends the script is no table: one without err ends redis-server
		body += pick(r, "error ( 'last' )", "error ( { err = 'My error' } )", "error ( 'last' , 2 )", "none . x = 1", "nosuch ( )", "redis.call ( 'nosuch' )", "error ( 5 )", "return redis.error_reply ( 'x' )", "local f = function ( ) error ( 'in' ) end f ( )") + pick(r, " ", "\n")
		body = strings.Replace(body, "return redis", "do return redis", 1)
		if strings.Contains(body, "do return redis") {
			body = strings.TrimSpace(body) + " end "
		}
	}
	return "local function f ( ) error ( 'f' , 2 ) end " + body
}

// anyArguments calls functions of the libraries with any arguments.
func (r luaFuzzer) anyArguments() string {
	one := func() string {
		f := pick(r, "string.byte", "string.char", "string.find", "string.gsub", "string.len", "string.lower", "string.match", "string.reverse", "string.sub", "string.upper", "string.format", "string.gmatch",
			"table.concat", "table.foreach", "table.foreachi", "table.getn", "table.insert", "table.maxn", "table.remove", "table.setn", "math.floor", "math.max", "math.fmod", "math.ldexp", "math.frexp", "math.modf",
			"tonumber", "tostring", "type", "select", "unpack", "rawget", "rawset", "rawequal", "next", "pairs", "ipairs", "getmetatable", "setmetatable", "assert", "error", "pcall", "xpcall", "loadstring", "load",
			"coroutine.create", "coroutine.resume", "coroutine.status", "coroutine.wrap", "coroutine.yield", "coroutine.running", "cjson.encode", "cjson.decode", "cmsgpack.pack", "cmsgpack.unpack", "cmsgpack.unpack_one", "cmsgpack.unpack_limit",
			"struct.pack", "struct.unpack", "struct.size", "bit.band", "bit.tohex", "bit.lshift", "redis.sha1hex", "redis.status_reply", "redis.error_reply", "redis.call", "redis.pcall", "redis.setresp", "redis.log")
		args := make([]string, r.IntN(4))
		for i := range args {
			args[i] = r.anything()
		}
		if f == "table.insert" && len(args) > 1 { // Redis moves up to 2^31 elements there, for minutes
			args[1] = pick(r, "0", "-1", "2", "0.5", "10", "inf", "nan", "'3 '", "'abc'", "nil", "{ }", "true")
		}
		list := strings.Join(args, " , ")
		switch r.IntN(3) {
		case 0:
			return "try ( " + strings.TrimSuffix(f+" , "+list, " , ") + " )"
		case 1:
			return "try ( function ( ) local l = " + f + " return l ( " + list + " ) end )"
		}
		return "try ( function ( ) return ( " + f + " ( " + list + " ) ) end )"
	}
	return r.times(6, one)
}

// sorts sorts tables, also in orders that are none.
func (r luaFuzzer) sorts() string {
	list := make([]string, r.IntN(24))
	for i := range list {
		list[i] = pick(r, fmt.Sprint(r.IntN(20)), fmt.Sprint(r.IntN(20)), r.literal())
		if r.IntN(60) == 0 {
			list[i] = pick(r, "'x'", "nil", "{ }", "nan")
		}
	}
	by := pick(r, "", "", " , function ( a , b ) return a < b end", " , function ( a , b ) return a > b end", " , function ( a , b ) return a <= b end", " , function ( ) return true end", " , function ( ) return false end",
		" , function ( a , b ) return a % 5 < b % 5 end", " , function ( a , b ) n = n + 1 if n > 20 then error ( 'enough' ) end return a < b end", " , function ( a , b ) t [ 1 ] = 5 return a < b end", " , 1", " , nil",
		" , function ( a , b ) n = n + 1 return n % 3 == 0 end")
	return "local n , t = 0 , { " + strings.Join(list, " , ") + " } try ( table.sort , t" + by + " ) show ( unpack ( t , 1 , " + fmt.Sprint(len(list)) + " ) ) show ( n ) try ( table.sort , t ) show ( unpack ( t , 1 , " + fmt.Sprint(len(list)) + " ) )"
}

// TestDifferentialKinds compares what random programs of the other kinds reply. There is one of
// each kind for a hundred commands of -differential.n. Sines, logarithms and the like are not drawn:
// their last digits may differ.
func TestDifferentialKinds(t *testing.T) {
	rerun.Skip(t)
	real, ours, seed, _ := luaPeers(t)
	written := luaWritten()
	reply := func(t *testing.T, p *judge.Peer, argv []string) string {
		r, err := p.Pipeline([][]string{argv})
		if err != nil { // its reply would be taken for that of the next program
			t.Fatalf("seed %d: %q: %v", seed, argv, err)
		}
		return written(r[0])
	}
	for i, kind := range luaKinds {
		t.Run(kind.name, func(t *testing.T) {
			r := luaFuzzer{rand.New(rand.NewPCG(seed, uint64(i)))}
			reports := 0
			for range (*differentialN + 99) / 100 {
				source := kindsPrelude + kind.draw(r) + " return table.concat ( out , '|' )"
				argv := []string{"EVAL", source, "0"}
				differ := func(argv []string) (want, got string, differ bool) {
					w, g := reply(t, real, argv), judge.InWordsOf(opponent(), reply(t, ours, argv))
					return w, g, w != g
				}
				if _, _, ok := differ(argv); !ok {
					continue
				}
				argv = shrunk(argv, differ)
				w, g, again := differ(argv)
				if !again { // where Redis puts a key that a table had before depends on its garbage collector
					continue
				}
				t.Errorf("seed %d: %q\nwant %q\ngot  %q", seed, argv[1], w, g)
				if reports++; reports == maxReports {
					return
				}
			}
		})
	}
}
