package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
)

// faults writes the software device's injector of the interfaces in dir: for each method that answers with a Result one that asks
// first whether it is to fail.
func faults(dir string) (map[string]string, error) {
	methods, err := seamMethods(dir)
	if err != nil {
		return nil, err
	}
	var b, names strings.Builder
	for _, m := range methods {
		if m.name == "DriverGetVersion" || m.name == "DeviceGetCount" { // asked once, before there is anything to fail
			continue
		}
		fmt.Fprintf(&names, "%q: true,\n", m.name)
		last := len(m.results) - 1
		fmt.Fprintf(&b, "\nfunc (i injecting) %s(%s) (%s) {\n", m.name, declare("a", m.params), declare("r", m.results))
		fmt.Fprintf(&b, "if r%d = i.faults.call(%q, %s); r%d != driver.Success {\nreturn %s\n}\n", last, m.name, m.context(), last, numbered("r", len(m.results)))
		fmt.Fprintf(&b, "return i.machine.%s(%s)\n}\n", m.name, numbered("a", len(m.params)))
	}
	return map[string]string{
		"softcuda/zfaults.go": "package softcuda\n\nimport (\n\"unsafe\"\n\n\"github.com/hostlaunch/cuda/internal/driver\"\n)\n\n" +
			"// injectable are the calls that can be made to fail.\nvar injectable = map[string]bool{\n" + names.String() + "}\n" + b.String(),
	}, nil
}

// seamMethod is a method of the seam that answers with a Result.
type seamMethod struct {
	name            string
	params, results []string // types
}

// context is the argument that says in which context m is called, or 0.
func (m seamMethod) context() string {
	if i := slices.Index(m.params, "driver.Context"); i >= 0 {
		return fmt.Sprintf("a%d", i)
	}
	return "0"
}

func declare(letter string, types []string) string {
	parts := make([]string, len(types))
	for i, t := range types {
		parts[i] = fmt.Sprintf("%s%d %s", letter, i, t)
	}
	return strings.Join(parts, ", ")
}

func numbered(letter string, n int) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = fmt.Sprintf("%s%d", letter, i)
	}
	return strings.Join(parts, ", ")
}

// seamMethods are those of all interfaces that Driver is composed of, by name.
func seamMethods(dir string) (list []seamMethod, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	interfaces := map[string]*ast.InterfaceType{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			return nil, err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				if i, ok := spec.Type.(*ast.InterfaceType); ok {
					interfaces[spec.Name.Name] = i
				}
			}
			return true
		})
	}
	if interfaces["Driver"] == nil {
		return nil, fmt.Errorf("%s has no interface Driver", dir)
	}
	list = methodsOf("Driver", interfaces)
	slices.SortFunc(list, func(a, b seamMethod) int { return strings.Compare(a.name, b.name) })
	return list, nil
}

func methodsOf(name string, interfaces map[string]*ast.InterfaceType) (list []seamMethod) {
	for _, f := range interfaces[name].Methods.List {
		fn, ok := f.Type.(*ast.FuncType)
		if !ok {
			list = append(list, methodsOf(f.Type.(*ast.Ident).Name, interfaces)...)
			continue
		}
		m := seamMethod{f.Names[0].Name, fieldTypes(fn.Params), fieldTypes(fn.Results)}
		if n := len(m.results); n > 0 && m.results[n-1] == "driver.Result" {
			list = append(list, m)
		}
	}
	return list
}

// fieldTypes are those of a list of parameters, one for each, as another package names them.
func fieldTypes(fields *ast.FieldList) (list []string) {
	if fields == nil {
		return nil
	}
	for _, f := range fields.List {
		t := typeText(f.Type)
		for range max(len(f.Names), 1) {
			list = append(list, t)
		}
	}
	return list
}

// typeText is t as another package names it.
func typeText(t ast.Expr) string {
	ast.Inspect(t, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr: // of another package
			return false
		case *ast.Ident:
			if n.IsExported() {
				n.Name = "driver." + n.Name
			}
		}
		return true
	})
	var b bytes.Buffer
	printer.Fprint(&b, token.NewFileSet(), t)
	return b.String()
}
