package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

// Block is a piece of Go code of a page.
type Block struct {
	Page string
	Line int // of its first line
	Code string
}

// Blocks are the pieces of Go code of a page of Markdown, between ```go and ```.
func Blocks(page, text string) (list []Block) {
	var code []string
	inside, from := false, 0
	for i, line := range strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n") {
		switch fence := strings.TrimSpace(line); {
		case !inside && fence == "```go":
			inside, from, code = true, i+2, nil
		case inside && fence == "```":
			inside = false
			list = append(list, Block{page, from, strings.Join(code, "\n")})
		case inside:
			code = append(code, line)
		}
	}
	return list
}

// imports are the packages that blocks use without importing them, by their names.
var imports = map[string]string{
	"cuda":     "github.com/hostlaunch/cuda",
	"anycuda":  "github.com/hostlaunch/cuda/anycuda",
	"libcuda":  "github.com/hostlaunch/cuda/libcuda",
	"softcuda": "github.com/hostlaunch/cuda/softcuda",
	"context":  "context",
	"errors":   "errors",
	"fmt":      "fmt",
	"log":      "log",
	"os":       "os",
	"picture":  "github.com/hostlaunch/cuda/picture",
	"strings":  "strings",
	"timeline": "github.com/hostlaunch/cuda/timeline",
	"sync":     "sync",
	"synctest": "testing/synctest",
	"testing":  "testing",
	"time":     "time",
}

// File is b as a file of Go: as it stands if it is a whole file, and otherwise with its imports, and in a function or a
// variable if it is statements or a value. Line numbers are those of the page.
func (b Block) File() string {
	if strings.HasPrefix(b.Code, "package ") {
		return b.at() + b.Code + "\n"
	}
	head := "package block\n\n" + b.imported()
	if _, err := parser.ParseFile(token.NewFileSet(), "", "package block\n"+b.Code, 0); err == nil {
		return head + b.at() + b.Code + "\n"
	}
	if e, err := parser.ParseExpr(b.Code); err == nil && !isCall(e) {
		return head + "var _ =\n" + b.at() + b.Code + "\n"
	}
	return head + "func _() {\n" + b.at() + b.Code + "\n}\n"
}

func isCall(e ast.Expr) bool {
	_, ok := e.(*ast.CallExpr)
	return ok
}

func (b Block) at() string { return fmt.Sprintf("//line %s:%d\n", b.Page, b.Line) }

func (b Block) imported() string {
	var names []string
	for name := range imports {
		if regexp.MustCompile(`\b` + name + `\.[A-Z]`).MatchString(b.Code) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var s strings.Builder
	for _, name := range names {
		fmt.Fprintf(&s, "import %q\n", imports[name])
	}
	return s.String() + "\n"
}
