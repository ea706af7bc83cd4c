package docs

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// TestComments: every exported name has a doc comment, in every package of the module.
func TestComments(t *testing.T) {
	read := 0
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "out"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, root+"/"+name, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		read++
		for _, n := range Uncommented(file) {
			t.Errorf("%s: %s has no doc comment", name, n)
		}
		return nil
	})
	if err != nil || read < 100 {
		t.Errorf("%d files read: %v", read, err)
	}
}

// TestUncommented: what counts as a comment.
func TestUncommented(t *testing.T) {
	const text = `package p
// A is commented.
func A() {}
func B() {}
func c() {}
type D struct{}
// E is commented.
type E struct{}
func (e *E) F() {}
func (e E) G() {}
type h struct{}
func (h) I() {}
// These are a group.
const (
	J = 1
	K = 2
)
const (
	L = 1 // L is commented.
	M = 2
)
var N, o int
type (
	// P is commented.
	P int
	Q int
)
type E2[T any] int
func (e E2[T]) R() {}
`
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"B", "D", "E.F", "E.G", "M", "N", "Q", "E2", "E2.R"}
	if got := Uncommented(file); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
