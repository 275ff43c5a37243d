package differential

import (
	"fmt"
	"strings"
)

// programmer draws programs of Lua that end: each loop and each function takes fuel.
// Spaces separate tokens, and occur nowhere else.
type programmer struct {
	luaFuzzer
	scopes   [][]string // names of local variables
	vararg   []bool     // of the functions that enclose the place
	loops    int        // in the innermost function
	depth    int        // of statements
	size     int        // statements that may still be drawn
	declared int
}

// program returns a program that returns what it has printed.
func (r luaFuzzer) program() string {
	p := &programmer{luaFuzzer: r, size: 6 + r.IntN(30), vararg: []bool{true}}
	p.scopes = [][]string{{"a", "b", "s", "t", "arr", "f", "obj", "none"}}
	head := "local fuel , out = 300 , { } local function burn ( ) fuel = fuel - 1 if fuel < 0 then error ( 'fuel' ) end end " +
		"local function show ( ... ) for i = 1 , select ( '#' , ... ) do out [ #out + 1 ] = tostring ( ( select ( i , ... ) ) ) end end " +
		"local a , b , s , t , arr , none = 1 , 2.5 , 'text' , { x = 1 , y = { z = 'deep' } } , { 10 , 20 , 30 } " +
		"local function f ( u , ... ) burn ( ) return u , ... end " +
		"local meta = { __concat = function ( v , w ) return 'joined' end , " +
		"__index = function ( v , k ) return k end , __call = function ( self , v ) return v , 'called' end , " +
		"__eq = function ( ) return true end , __lt = function ( ) return true end , __le = function ( ) return false end } " +
		"local obj = setmetatable ( { } , meta ) " +
		"local num = setmetatable ( { } , { __add = function ( v , w ) return 'sum' end , __mod = function ( ) return 'rest' end , " +
		"__unm = function ( ) return 'minus' end } ) "
	text := head + p.block() + " return table.concat ( out , '|' )"
	// Errors name lines.
	var b strings.Builder
	words := strings.Fields(text)
	for i, word := range words {
		b.WriteString(word)
		if i+1 < len(words) && words[i+1] == "(" { // a call on another line is an error
			b.WriteByte(' ')
		} else {
			b.WriteString(pick(r, " ", " ", " ", " ", "\n"))
		}
	}
	return b.String()
}

// mutant returns a program that is probably wrong.
func (r luaFuzzer) mutant() string {
	words := strings.Fields(r.program())
	for range 1 + r.IntN(3) {
		i := r.IntN(len(words))
		switch r.IntN(5) {
		case 0:
			words = append(words[:i], words[i+1:]...)
		case 1:
			words = words[:i+1]
		case 2:
			j := r.IntN(len(words))
			words[i], words[j] = words[j], words[i]
		default:
			words[i] = pick(r, "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "if", "in", "local", "nil",
				"not", "or", "repeat", "return", "then", "true", "until", "while", "+", "-", "*", "/", "%", "^", "#", "==", "~=",
				"<=", ">=", "<", ">", "=", "(", ")", "{", "}", "[", "]", ";", ":", ",", ".", "..", "...", "1", "0x1g", "1e", "1..2",
				"'x'", "'\\300'", "'\\97b\\\"c\\z'", "'open", "\"", "[[long]]", "[=[a]]b]=]", "[=", "[[", "[==[\r\n", "--", "--[[", "--[[x]]",
				"~", "@", "$", "\x00", "\x01", "\x7f", "\xff", "name", "a.b", "a:b()", "f{}", "f''")
		}
		if len(words) == 0 {
			break
		}
	}
	var b strings.Builder
	for _, word := range words {
		b.WriteString(word)
		b.WriteString(pick(r, " ", " ", " ", " ", "\n", "\r\n", " --c\n"))
	}
	return b.String()
}

func (p *programmer) name() string {
	scope := p.scopes[p.IntN(len(p.scopes))]
	if len(scope) == 0 || p.IntN(40) == 0 {
		return pick(p.luaFuzzer, "nosuch", "KEYS", "string", "redis", "none", "a")
	}
	return pick(p.luaFuzzer, scope...)
}

func (p *programmer) declare() string {
	p.declared++
	name := fmt.Sprintf("v%d", p.declared%12)
	top := len(p.scopes) - 1
	p.scopes[top] = append(p.scopes[top], name)
	return name
}

// block returns statements with a scope of their own.
func (p *programmer) block(params ...string) string {
	p.scopes = append(p.scopes, params)
	p.depth++
	var list []string
	for range 1 + p.IntN(5) {
		if p.size <= 0 || p.depth > 6 {
			break
		}
		p.size--
		if p.IntN(3) == 0 || p.depth == 1 && p.IntN(2) == 0 {
			list = append(list, p.guarded())
		} else {
			list = append(list, p.statement())
		}
	}
	if p.loops > 0 && p.IntN(8) == 0 {
		list = append(list, "break")
	}
	p.depth--
	p.scopes = p.scopes[:len(p.scopes)-1]
	return strings.Join(list, pick(p.luaFuzzer, " ", " ", " ; "))
}

// guarded returns statements whose error does not end the program.
func (p *programmer) guarded() string {
	loops := p.loops
	p.loops, p.vararg = 0, append(p.vararg, true)
	body := p.block()
	p.loops, p.vararg = loops, p.vararg[:len(p.vararg)-1]
	return "show ( pcall ( function ( ... ) " + body + " end , " + p.expr(1) + " ) )"
}

func (p *programmer) loop(params ...string) string {
	p.loops++
	b := p.block(params...)
	p.loops--
	return "burn ( ) " + b
}

func (p *programmer) function(method bool) string {
	loops := p.loops
	p.loops = 0
	params := []string{}
	for range p.IntN(3) {
		p.declared++
		params = append(params, fmt.Sprintf("v%d", p.declared%12))
	}
	list := append([]string(nil), params...)
	dots := p.IntN(3) == 0
	if dots {
		list = append(list, "...")
	}
	if method {
		params = append(params, "self")
	}
	p.vararg = append(p.vararg, dots)
	body := p.block(params...)
	p.scopes = append(p.scopes, params)
	switch p.IntN(4) {
	case 0:
	case 1:
		body += " return " + p.call(2)
	default:
		body += " return " + p.values(3)
	}
	p.scopes = p.scopes[:len(p.scopes)-1]
	p.vararg = p.vararg[:len(p.vararg)-1]
	p.loops = loops
	return "( " + strings.Join(list, " , ") + " ) burn ( ) " + body + " end"
}

func (p *programmer) values(n int) string {
	list := make([]string, 1+p.IntN(n))
	for i := range list {
		list[i] = p.expr(3)
	}
	return strings.Join(list, " , ")
}

func (p *programmer) target() string {
	switch p.IntN(6) {
	case 0:
		return pick(p.luaFuzzer, "t", "obj", p.name()) + " ." + pick(p.luaFuzzer, " x", " y", " q")
	case 1:
		return "arr [ " + pick(p.luaFuzzer, "1", "2", "3") + " ]"
	case 2:
		return "t [ " + p.expr(1) + " ]"
	}
	if p.IntN(25) == 0 {
		return "undeclared"
	}
	return p.name()
}

func (p *programmer) statement() string {
	r := p.luaFuzzer
	switch p.IntN(29) {
	case 24:
		return "show ( unpack ( { " + p.values(3) + pick(r, "", " ; x = "+p.expr(2)) + pick(r, " }", " ; }", " , f ( "+p.expr(1)+" , 2 ) }", " , ( f ( 1 , 2 ) ) }") + " , 1 , 4 ) )"
	case 25:
		head := pick(r, "for i = 1 , 3 do", "local i = 0 while i < 3 do i = i + 1", "for k , i in ipairs ( { 1 , 2 , 3 } ) do", "local i = 0 repeat i = i + 1")
		tail := "if i == 2 then " + pick(r, "break", "c = nil", "do break end", "local d = c arr [ 3 ] = function ( ) return d end break") + " end "
		end := "end"
		if strings.HasSuffix(head, "repeat i = i + 1") {
			end = "until " + pick(r, "c == 3", "i > 3", "not c")
		}
		return "do " + head + " burn ( ) local c = i arr [ i ] = function ( ... ) c = c + i return c , ... end do " + p.loop("i", "c") + " end " + tail + end +
			" end show ( pcall ( arr [ 1 ] , 7 ) ) show ( pcall ( arr [ 1 ] ) ) show ( pcall ( arr [ 3 ] ) )"
	case 26:
		return "local function rec ( n , ... ) burn ( ) if n <= 0 then return " + p.values(2) + " end return " +
			pick(r, "rec ( n - 1 , ... )", "1 + rec ( n - 1 )", "( rec ( n - 1 , n ) )", "{ rec ( n - 1 ) }", "n , rec ( n - 1 )") + " end show ( pcall ( rec , 3 , " + p.expr(1) + " ) )"
	case 27:
		return "show ( " + p.expr(5) + " )"
	case 28:
		n := 1 + p.IntN(4)
		list := make([]string, n)
		for i := range list {
			list[i] = p.declare()
		}
		return "local " + strings.Join(list, " , ") + " = " + pick(r, "f ( "+p.expr(2)+" , 2 , 3 )", "( f ( 1 , 2 ) )", "f ( 1 ) , f ( 2 , 3 )", "nil") + " show ( " + strings.Join(list, " , ") + " )"
	case 0, 1, 2:
		v := p.values(3)
		names := []string{p.declare()}
		for range p.IntN(3) {
			names = append(names, p.declare())
		}
		return "local " + strings.Join(names, " , ") + pick(r, " = "+v, " = "+v, " = "+v, "")
	case 3, 4, 5:
		list := []string{p.target()}
		for range p.IntN(3) {
			list = append(list, p.target())
		}
		return strings.Join(list, " , ") + " = " + p.values(3)
	case 6:
		s := "if " + p.expr(3) + " then " + p.block()
		for range p.IntN(3) {
			s += " elseif " + p.expr(3) + " then " + p.block()
		}
		if p.IntN(2) == 0 {
			s += " else " + p.block()
		}
		return s + " end"
	case 7:
		return "while " + p.expr(3) + " do " + p.loop() + " end"
	case 8:
		p.scopes = append(p.scopes, nil)
		v := p.expr(2)
		name := p.declare()
		p.loops++
		body := "repeat burn ( ) local " + name + " = " + v + pick(r, "", " ; arr [ 1 ] = function ( ) return "+name+" end") +
			" do " + p.block() + " end until " + p.expr(2)
		p.loops--
		p.scopes = p.scopes[:len(p.scopes)-1]
		return body
	case 9, 10:
		limits := pick(r, "1 , 3", "3 , 1 , -1", "1 , 2 , 0.5", "a , 3", "'1' , '2'", p.expr(1)+" , 3", "1 , "+p.expr(1), "1 , 2 , "+p.expr(1))
		return "for i = " + limits + " do " + p.loop("i") + " end"
	case 11, 12:
		over := pick(r, "ipairs ( arr )", "pairs ( arr )", "next , arr", "pairs ( { x = 1 , y = 2 , 3 , z = 4 } )", "pairs ( t )", "coroutine.wrap ( function ( ) for i = 1 , 3 do coroutine.yield ( i , i ) end end )",
			"function ( u , c ) c = ( c or 0 ) + 1 if c < 3 then return c , c end end", "ipairs ( "+p.expr(2)+" )", pick(r, "none", "1", "nil", "s", "t", "arr", "nosuch", "a + 1"))
		return pick(r, "burn ( )", "") + " for k , v in " + over + " do " + p.loop("k", "v") + " end"
	case 13:
		return "do " + p.block() + " end"
	case 14:
		name := p.declare()
		return "local function " + name + " " + p.function(false)
	case 15:
		if p.IntN(2) == 0 {
			return "function t : " + pick(r, "m", "n") + " " + p.function(true)
		}
		return "function " + pick(r, "t . m", "t . y . g", p.name(), p.name()+" . q") + " " + p.function(false)
	case 16:
		return "show ( pcall ( function " + p.function(false) + " ) )"
	case 17:
		return "local co = coroutine.wrap ( function " + p.function(false) + " ) show ( co ( " + p.values(2) + " ) )"
	case 18:
		return "show ( coroutine.resume ( coroutine.create ( function ( ... ) " + "show ( coroutine.yield ( ... ) ) return " + p.expr(2) + " end ) , " + p.values(2) + " ) )"
	case 19:
		return "show ( pcall ( error , " + pick(r, "'text'", "nil", "tostring ( a )") + " ) )"
	case 20:
		switch p.IntN(6) {
		case 0, 1, 2:
			return p.call(3)
		case 3:
			return "show ( num + 1 , 2 + num , num % num , num % 2 , - num )"
		}
		return "error ( " + pick(r, "'raised'", "{ err = 'raised' }", "'level' , 2", "'plain' , 0") + " )"
	}
	return "show ( " + p.values(3) + " )"
}

// call returns a call, which is a statement, too.
func (p *programmer) call(depth int) string {
	r := p.luaFuzzer
	args := func() string {
		switch {
		case p.IntN(4) == 0 || depth <= 0:
			return "( )"
		case p.IntN(8) == 0:
			return pick(r, "'text'", "{ 1 , 2 }", "[[long]]")
		}
		return "( " + p.expr(depth-1) + pick(r, "", " , "+p.expr(depth-1)) + " )"
	}
	switch p.IntN(10) {
	case 0:
		return "t : " + pick(r, "m", "n", "q") + " " + args()
	case 1:
		return "s : " + pick(r, "upper", "len", "sub", "nosuch", "find", "byte") + " " + args()
	case 2:
		return "string . " + pick(r, "upper", "len", "sub", "format", "reverse") + " " + args()
	case 3:
		return "obj " + args()
	case 4:
		return pick(r, "tostring", "tonumber", "type", "select", "unpack", "assert", "rawget", "math.floor", "math.max", "redis.call") + " " + args()
	case 5:
		return "t . " + pick(r, "x", "y . z", "m") + " " + args()
	case 6:
		return "( function " + p.function(false) + " ) " + args()
	}
	return pick(r, "f", "f", p.name()) + " " + args()
}

// expr returns an expression.
func (p *programmer) expr(depth int) string {
	r := p.luaFuzzer
	if depth <= 0 {
		if p.IntN(12) == 0 && p.vararg[len(p.vararg)-1] {
			return "..."
		}
		return pick(r, p.name(), p.name(), p.name(), "nil", "true", "false", "1", "2", "3.5", "10", "'x'", "'10'", "\"q\\\"\\65\\n\"", "''", "0x10", "1e2")
	}
	sub := func() string { return p.expr(depth - 1 - p.IntN(2)) }
	switch p.IntN(16) {
	case 0:
		return sub() + " " + pick(r, "+", "-", "*", "/", "-") + " " + sub()
	case 1:
		return sub() + " " + pick(r, "+", "-", "*") + " " + sub() + pick(r, " + 1", " % 7", " / 4", " - a", " % a", " ^ 2")
	case 2:
		return sub() + pick(r, " / 2", " % 3", " ^ 2", " % 2.5", " % "+sub())
	case 3:
		// One variable, so that strings grow slowly.
		some := pick(r, "'x'", "1", "( a + 1 )", "# s", "2.5", "t", "f ( 1 )", "nil", "tostring ( nil )", "t . y . z", "none . x")
		return pick(r, p.name()+" .. "+some, some+" .. "+p.name(), some+" .. "+p.name()+" .. 1", "'x' .. "+some+" .. 'y' .. "+p.name(), some+" .. "+some)
	case 4:
		return sub() + " " + pick(r, "==", "~=", "<", "<=", ">", ">=") + " " + sub()
	case 5, 6:
		return sub() + pick(r, " and ", " or ") + sub()
	case 7:
		return sub() + pick(r, " and ", " or ") + sub() + pick(r, " and ", " or ") + sub()
	case 8:
		return "( " + sub() + " )" + pick(r, "", "", " . x", " [ 1 ]", " : m ( )", " ( )")
	case 9:
		return "not " + sub()
	case 10:
		return pick(r, "- ", "# ") + pick(r, "s", "arr", "( "+sub()+" )", "obj")
	case 11:
		return pick(r, "t", "arr", "obj", p.name()) + pick(r, " . x", " . y . z", " [ 1 ]", " [ "+sub()+" ]", " . q")
	case 12:
		return "{ " + pick(r, "", sub(), sub()+" , "+sub(), sub()+" ; 2 ,", "x = "+sub(), "x = "+sub()+" , "+sub()+" , y = "+sub(), "[ "+pick(r, "'k'", "1", "a")+" ] = "+sub()) + " }"
	case 13:
		if p.size > 0 && p.depth < 5 {
			return "function " + p.function(false)
		}
	}
	if p.IntN(3) == 0 {
		return sub()
	}
	return p.call(depth)
}
