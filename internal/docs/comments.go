package docs

import (
	"go/ast"
	"strings"
)

// Uncommented lists the exported names of a file that have no doc comment: functions, methods of exported types, types,
// constants and variables. A group's comment is for all in it, and a comment at a line's end does for constants and variables.
func Uncommented(file *ast.File) (names []string) {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if name := exportedFunc(d); name != "" && empty(d.Doc) {
				names = append(names, name)
			}
		case *ast.GenDecl:
			names = append(names, uncommentedSpecs(d)...)
		}
	}
	return names
}

// exportedFunc is the name of a function or method that users of the package can see, or "".
func exportedFunc(f *ast.FuncDecl) string {
	if !f.Name.IsExported() {
		return ""
	}
	if f.Recv == nil {
		return f.Name.Name
	}
	t := f.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if index, ok := t.(*ast.IndexExpr); ok { // of a generic type
		t = index.X
	}
	if id, ok := t.(*ast.Ident); ok && id.IsExported() {
		return id.Name + "." + f.Name.Name
	}
	return ""
}

func uncommentedSpecs(d *ast.GenDecl) (names []string) {
	for _, s := range d.Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() && empty(s.Doc) && empty(d.Doc) {
				names = append(names, s.Name.Name)
			}
		case *ast.ValueSpec:
			for _, n := range s.Names {
				if n.IsExported() && empty(s.Doc) && empty(s.Comment) && empty(d.Doc) {
					names = append(names, n.Name)
				}
			}
		}
	}
	return names
}

func empty(c *ast.CommentGroup) bool { return c == nil || strings.TrimSpace(c.Text()) == "" }
