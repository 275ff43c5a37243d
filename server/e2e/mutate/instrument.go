package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"path"
	"slices"
	"strconv"
	"strings"
)

// place is a part of the source that can be faulty.
type place struct {
	File string // from the root of the module
	Line int
	Kind string // comparison, sign, constant, condition, call, return
	Text string // the source
}

func (p place) pkg() string { return path.Dir(p.File) }

func (p place) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", p.File, p.Line, p.Kind, p.Text)
}

// edit replaces source[from:to].
type edit struct {
	from, to int
	text     string
}

// instrumenter finds the places of a file, and inserts the calls of package mutant.
type instrumenter struct {
	file   *ast.File
	name   string // from the root of the module
	source []byte
	fset   *token.FileSet
	pkg    *types.Package
	info   *types.Info
	first  int // the number of the first place
	// rejected has the lines, as "file:line", whose places the compiler does not accept.
	rejected map[string]bool
	places   []place
	edits    []edit
}

// instrument returns the source with its places numbered from first on.
func (in *instrumenter) instrument(importPath string) []byte {
	for _, d := range in.file.Decls {
		in.decl(d)
	}
	if len(in.places) == 0 {
		return in.source
	}
	end := in.offset(in.file.Name.End())
	in.edits = append(in.edits, edit{end, end, "; import mutant " + strconv.Quote(importPath)})
	return splice(in.source, in.edits)
}

// splice applies edits. Those at one offset stand in their order: an outer part begins
// before an inner one, and ends after it.
func splice(source []byte, edits []edit) []byte {
	slices.SortStableFunc(edits, func(a, b edit) int { return cmp.Compare(a.from, b.from) })
	var out bytes.Buffer
	at := 0
	for _, e := range edits {
		out.Write(source[at:e.from])
		out.WriteString(e.text)
		at = e.to
	}
	out.Write(source[at:])
	return out.Bytes()
}

func (in *instrumenter) offset(p token.Pos) int { return in.fset.Position(p).Offset }

// plant makes a place of n and puts n between two texts; before has %d for the number of
// the place. What is inside n is visited between the two edits, so closing texts at one
// offset stand from the inside to the outside. The argument of inside is false for a place
// that the compiler does not accept, which stays as it is.
func (in *instrumenter) plant(kind string, n ast.Node, before, after string, inside func(planted bool)) {
	p := in.place(kind, n)
	if in.rejected[fmt.Sprintf("%s:%d", p.File, p.Line)] {
		inside(false)
		return
	}
	from, to := in.offset(n.Pos()), in.offset(n.End())
	in.edits = append(in.edits, edit{from, from, fmt.Sprintf(before, in.first+len(in.places))})
	in.places = append(in.places, p)
	inside(true)
	in.edits = append(in.edits, edit{to, to, after})
}

func (in *instrumenter) place(kind string, n ast.Node) place {
	text := strings.Join(strings.Fields(string(in.source[in.offset(n.Pos()):in.offset(n.End())])), " ")
	if len(text) > 100 {
		text = text[:100] + "..."
	}
	return place{in.name, in.fset.Position(n.Pos()).Line, kind, text}
}

func (in *instrumenter) replace(p token.Pos, length int, text string) {
	from := in.offset(p)
	in.edits = append(in.edits, edit{from, from + length, text})
}

func (in *instrumenter) decl(d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Body != nil {
			in.block(d.Body.List, false)
		}
	case *ast.GenDecl:
		in.values(d)
	}
}

func (in *instrumenter) values(d *ast.GenDecl) {
	if d.Tok != token.VAR {
		return
	}
	for _, s := range d.Specs {
		for _, v := range s.(*ast.ValueSpec).Values {
			in.expr(v)
		}
	}
}

// block visits statements. branch says whether they are those of an if.
func (in *instrumenter) block(list []ast.Stmt, branch bool) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt:
			if call, ok := s.X.(*ast.CallExpr); ok && !in.isBuiltin(call, "panic") {
				in.plant("call", s, "if !mutant.On(%d) { ", " }", func(bool) { in.expr(call) })
				continue
			}
		case *ast.ReturnStmt:
			if branch {
				in.plant("return", s, "if !mutant.On(%d) { ", " }", func(bool) { in.stmt(s) })
				continue
			}
		}
		in.stmt(s)
	}
}

func (in *instrumenter) isBuiltin(call *ast.CallExpr, name string) bool {
	id, ok := call.Fun.(*ast.Ident)
	if !ok || id.Name != name {
		return false
	}
	_, ok = in.info.Uses[id].(*types.Builtin)
	return ok
}

func (in *instrumenter) stmt(s ast.Stmt) {
	switch s := s.(type) {
	case *ast.BlockStmt:
		in.block(s.List, false)
	case *ast.IfStmt:
		in.ifStmt(s)
	case *ast.ForStmt:
		if s.Init != nil {
			in.stmt(s.Init)
		}
		if s.Cond != nil {
			in.expr(s.Cond)
		}
		if s.Post != nil {
			in.stmt(s.Post)
		}
		in.stmt(s.Body)
	case *ast.RangeStmt:
		in.expr(s.X)
		in.stmt(s.Body)
	case *ast.SwitchStmt:
		if s.Init != nil {
			in.stmt(s.Init)
		}
		if s.Tag != nil {
			in.expr(s.Tag)
		}
		in.stmt(s.Body)
	case *ast.TypeSwitchStmt:
		in.stmt(s.Body)
	case *ast.SelectStmt:
		in.stmt(s.Body)
	case *ast.CaseClause:
		in.exprs(s.List)
		in.block(s.Body, false)
	case *ast.CommClause:
		in.block(s.Body, false)
	case *ast.LabeledStmt:
		in.stmt(s.Stmt)
	case *ast.ExprStmt:
		in.expr(s.X)
	case *ast.SendStmt:
		in.expr(s.Value)
	case *ast.GoStmt:
		in.expr(s.Call)
	case *ast.DeferStmt:
		in.expr(s.Call)
	case *ast.ReturnStmt:
		in.exprs(s.Results)
	case *ast.DeclStmt:
		in.decl(s.Decl)
	case *ast.IncDecStmt:
		in.incDec(s)
	case *ast.AssignStmt:
		in.assign(s)
	}
}

func (in *instrumenter) ifStmt(s *ast.IfStmt) {
	if s.Init != nil {
		in.stmt(s.Init)
	}
	if in.isBool(s.Cond) {
		in.plant("condition", s.Cond, "mutant.Not(%d, ", ")", func(bool) {
			if b, ok := s.Cond.(*ast.BinaryExpr); ok && (b.Op == token.EQL || b.Op == token.NEQ) {
				in.exprs([]ast.Expr{b.X, b.Y}) // the same fault as in the condition
				return
			}
			in.expr(s.Cond)
		})
	}
	// Without an else the if is no terminating statement, so its return can be left out.
	in.block(s.Body.List, s.Else == nil)
	if s.Else != nil {
		in.stmt(s.Else)
	}
}

// isBool reports whether e is a condition that is not constant.
func (in *instrumenter) isBool(e ast.Expr) bool {
	t := in.info.Types[e]
	if t.Type == nil || t.Value != nil {
		return false
	}
	b, ok := t.Type.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsBoolean != 0
}

func (in *instrumenter) incDec(s *ast.IncDecStmt) {
	t, ok := in.typeName(in.info.TypeOf(s.X))
	if !ok {
		return
	}
	op := map[token.Token]string{token.INC: " += ", token.DEC: " -= "}[s.Tok]
	p := in.place("sign", s)
	if in.rejected[fmt.Sprintf("%s:%d", p.File, p.Line)] {
		return
	}
	in.replace(s.TokPos, 2, fmt.Sprintf("%smutant.Signed[%s](%d, 1)", op, t, in.first+len(in.places)))
	in.places = append(in.places, p)
}

func (in *instrumenter) assign(s *ast.AssignStmt) {
	if s.Tok == token.ADD_ASSIGN || s.Tok == token.SUB_ASSIGN {
		if t, ok := in.typeName(in.info.TypeOf(s.Lhs[0])); ok {
			in.plant("sign", s.Rhs[0], "mutant.Signed["+t+"](%d, ", ")", func(bool) { in.expr(s.Rhs[0]) })
			return
		}
	}
	if s.Tok != token.DEFINE {
		in.exprs(s.Lhs)
	}
	in.exprs(s.Rhs)
}

func (in *instrumenter) exprs(list []ast.Expr) {
	for _, e := range list {
		in.expr(e)
	}
}

func (in *instrumenter) expr(e ast.Expr) {
	if t := in.info.Types[e]; t.Value != nil {
		in.constant(e, t)
		return
	}
	switch e := e.(type) {
	case *ast.BinaryExpr:
		in.binary(e)
	case *ast.ParenExpr:
		in.expr(e.X)
	case *ast.UnaryExpr:
		in.expr(e.X)
	case *ast.StarExpr:
		in.expr(e.X)
	case *ast.SelectorExpr:
		in.expr(e.X)
	case *ast.IndexExpr:
		in.expr(e.X)
		if _, ok := in.info.TypeOf(e.X).Underlying().(*types.Signature); !ok && !in.info.Types[e.Index].IsType() {
			in.expr(e.Index)
		}
	case *ast.SliceExpr:
		in.expr(e.X)
		for _, x := range []ast.Expr{e.Low, e.High, e.Max} {
			if x != nil {
				in.expr(x)
			}
		}
	case *ast.TypeAssertExpr:
		in.expr(e.X)
	case *ast.CallExpr:
		in.expr(e.Fun)
		for _, a := range e.Args {
			if !in.info.Types[a].IsType() {
				in.expr(a)
			}
		}
	case *ast.FuncLit:
		in.block(e.Body.List, false)
	case *ast.CompositeLit:
		for _, x := range e.Elts {
			if kv, ok := x.(*ast.KeyValueExpr); ok {
				x = kv.Value // keys of arrays are constants
			}
			in.expr(x)
		}
	}
}

// constant makes a place of a number that the source spells out.
func (in *instrumenter) constant(e ast.Expr, t types.TypeAndValue) {
	spelled := false
	ast.Inspect(e, func(n ast.Node) bool {
		_, ok := n.(*ast.BasicLit)
		spelled = spelled || ok
		return true
	})
	name, ok := in.typeName(t.Type)
	if !spelled || !ok || t.Value.Kind() != constant.Int && t.Value.Kind() != constant.Float {
		return
	}
	larger := "Larger"
	if name == "time.Duration" {
		larger = "Twice" // a nanosecond more is no fault
	}
	in.plant("constant", e, "mutant."+larger+"["+name+"](%d, ", ")", func(bool) {})
}

func (in *instrumenter) binary(e *ast.BinaryExpr) {
	compare := map[token.Token]string{token.LSS: "Less", token.LEQ: "LessEqual", token.GTR: "Greater", token.GEQ: "GreaterEqual"}
	sign := map[token.Token]string{token.ADD: "Add", token.SUB: "Subtract"}
	function := func(planted bool) {
		in.expr(e.X)
		if planted {
			in.replace(e.OpPos, len(e.Op.String()), ",")
		}
		in.expr(e.Y)
	}
	t, isNumber := in.typeName(in.info.TypeOf(e))
	switch {
	case compare[e.Op] != "" && in.isOrdered(e):
		in.plant("comparison", e, "mutant."+compare[e.Op]+"(%d, ", ")", function)
	case sign[e.Op] != "" && isNumber:
		in.plant("sign", e, "mutant."+sign[e.Op]+"["+t+"](%d, ", ")", function)
	case (e.Op == token.EQL || e.Op == token.NEQ) && in.isBool(e):
		in.plant("comparison", e, "mutant.Not(%d, ", ")", func(bool) { in.exprs([]ast.Expr{e.X, e.Y}) })
	default:
		in.exprs([]ast.Expr{e.X, e.Y})
	}
}

// isOrdered reports whether the operands have a type that package cmp orders.
func (in *instrumenter) isOrdered(e *ast.BinaryExpr) bool {
	for _, x := range []ast.Expr{e.X, e.Y} {
		b, ok := in.info.TypeOf(x).Underlying().(*types.Basic)
		if !ok || b.Info()&types.IsOrdered == 0 {
			return false
		}
	}
	return in.isBool(e)
}

// typeName returns how the file spells a type of numbers.
func (in *instrumenter) typeName(t types.Type) (string, bool) {
	if t == nil {
		return "", false
	}
	b, ok := t.Underlying().(*types.Basic)
	if !ok || b.Info()&(types.IsInteger|types.IsFloat) == 0 || b.Info()&types.IsUntyped != 0 {
		return "", false
	}
	if _, ok := t.(*types.TypeParam); ok {
		return "", false
	}
	switch t := types.Unalias(t).(type) {
	case *types.Basic:
		return t.Name(), in.pkg.Scope().Lookup(t.Name()) == nil
	case *types.Named:
		if t.TypeArgs().Len() > 0 || t.Obj().Parent() != t.Obj().Pkg().Scope() {
			return "", false
		}
		if t.Obj().Pkg() == in.pkg {
			return t.Obj().Name(), true
		}
		for _, i := range in.file.Imports {
			if p, _ := strconv.Unquote(i.Path.Value); p == t.Obj().Pkg().Path() && i.Name == nil && t.Obj().Exported() {
				return t.Obj().Pkg().Name() + "." + t.Obj().Name(), true
			}
		}
	}
	return "", false
}
