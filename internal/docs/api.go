package docs

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/token"
	"io/fs"
	"strings"
)

// API is docs/api.md: every exported name of the public packages, with the first sentence of its documentation, and the fields of structs
// by their names.
func API(root fs.FS) (string, error) {
	var b strings.Builder
	b.WriteString("# Index of names\n\n" +
		"<!-- Generated from the code by: go test ./internal/docs -update -->\n\n" +
		"Every exported name, with the first sentence of its documentation, and the names of structs' fields; `go doc` has the rest, as in\n" +
		"`go doc cuda.HostLaunch`.\n" +
		"What each function of the driver is in Go stands in [driver-map.md](driver-map.md).\n")
	for _, dir := range Public {
		p, err := Package(root, dir)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "\n## Package %s\n\n%s\n", p.Name, p.Synopsis(p.Doc))
		writePackage(&b, p)
	}
	return b.String(), nil
}

func writePackage(b *strings.Builder, p *doc.Package) {
	if len(p.Funcs) > 0 {
		b.WriteString("\n### Functions\n\n")
		writeFuncs(b, p, p.Funcs)
	}
	values := append(p.Consts, p.Vars...)
	for _, t := range p.Types {
		values = append(values, append(t.Consts, t.Vars...)...)
	}
	for _, t := range p.Types {
		fmt.Fprintf(b, "\n### %s\n\n%s\n", t.Name, p.Synopsis(t.Doc))
		if len(t.Funcs)+len(t.Methods)+len(members(t)) > 0 {
			b.WriteString("\n")
		}
		writeFuncs(b, p, t.Funcs)
		writeFuncs(b, p, t.Methods)
		writeMembers(b, t)
	}
	if len(values) > 0 {
		b.WriteString("\n### Constants and variables\n\n")
		for _, v := range values {
			writeValues(b, p, v)
		}
	}
}

// writeFuncs lists functions or methods, with the receiver's type before their name.
func writeFuncs(b *strings.Builder, p *doc.Package, funcs []*doc.Func) {
	for _, f := range funcs {
		name := f.Name
		if f.Recv != "" {
			recv, _, _ := strings.Cut(strings.TrimPrefix(f.Recv, "*"), "[")
			name = recv + "." + name
		}
		fmt.Fprintf(b, "- `%s`: %s\n", name, p.Synopsis(f.Doc))
	}
}

// writeMembers lists the exported methods of an interface, or the exported fields of a struct.
func writeMembers(b *strings.Builder, t *doc.Type) {
	names := members(t)
	if len(names) == 0 {
		return
	}
	what := "methods"
	if isStruct(t) {
		what = "fields"
	}
	fmt.Fprintf(b, "- %s: %s\n", what, strings.Join(names, ", "))
}

// members are the names that writeMembers lists. An embedded field's is its type's.
func members(t *doc.Type) (names []string) {
	for _, f := range fieldsOf(t) {
		for _, n := range f.Names {
			if n.IsExported() {
				names = append(names, "`"+n.Name+"`")
			}
		}
		if name := embedded(f.Type); len(f.Names) == 0 && isStruct(t) && token.IsExported(name) {
			names = append(names, "`"+name+"` (embedded)")
		}
	}
	return names
}

// fieldsOf are the fields of a struct, or the methods of an interface.
func fieldsOf(t *doc.Type) []*ast.Field {
	switch t := typeOf(t).(type) {
	case *ast.StructType:
		return t.Fields.List
	case *ast.InterfaceType:
		return t.Methods.List
	}
	return nil
}

func typeOf(t *doc.Type) ast.Expr { return t.Decl.Specs[0].(*ast.TypeSpec).Type }

func isStruct(t *doc.Type) bool {
	_, ok := typeOf(t).(*ast.StructType)
	return ok
}

// embedded is the name of an embedded field of type e.
func embedded(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return embedded(e.X)
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// writeValues lists the names of one declaration, those with a comment of their own each on a line.
func writeValues(b *strings.Builder, p *doc.Package, v *doc.Value) {
	var plain []string
	for _, s := range v.Decl.Specs {
		s := s.(*ast.ValueSpec)
		comment := s.Doc.Text()
		if comment == "" {
			comment = s.Comment.Text()
		}
		for _, n := range s.Names {
			switch {
			case !token.IsExported(n.Name):
			case comment == "" || isCode(n.Name):
				plain = append(plain, "`"+n.Name+"`")
			default:
				fmt.Fprintf(b, "- `%s`: %s\n", n.Name, strings.TrimPrefix(p.Synopsis(comment), n.Name+": "))
			}
		}
	}
	switch whole := p.Synopsis(v.Doc); {
	case len(plain) == 1 && len(v.Names) == 1:
		fmt.Fprintf(b, "- %s: %s\n", plain[0], whole)
	case len(plain) > 0:
		fmt.Fprintf(b, "- %s: %s\n", strings.TrimSuffix(whole, "."), strings.Join(plain, ", "))
	}
}

// isCode reports whether a constant is one of the codes, of which there are too many for a line each.
func isCode(name string) bool { return strings.HasPrefix(name, "Err") }
