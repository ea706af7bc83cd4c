package docs

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

var update = flag.Bool("update", false, "rewrite docs/api.md, and what "+testingPage+" prints")

const apiPage = root + "/docs/api.md"

// TestAPIPage compares docs/api.md with the code; -update writes it.
func TestAPIPage(t *testing.T) {
	want, err := API(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(apiPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(apiPage)
	if err != nil || strings.ReplaceAll(string(got), "\r\n", "\n") != want {
		t.Errorf("docs/api.md is not current (%v); run: go test ./internal/docs -update", err)
	}
	if regexp.MustCompile("(?m)^- `[^`]+`: $").MatchString(want) {
		t.Error("a name in docs/api.md has no sentence")
	}
}

// TestAPI: what is listed, in which form.
func TestAPI(t *testing.T) {
	files := fstest.MapFS{}
	for _, dir := range Public {
		files[strings.TrimPrefix(dir+"/p.go", "./")] = &fstest.MapFile{Data: []byte("// Package p is a package.\npackage p\n")}
	}
	files["p.go"].Data = []byte(`// Package cuda is a package. It has more.
package cuda

// A does a. And more.
func A() {}

// T is a type.
type T struct{}

// NewT makes one.
func NewT() *T { return nil }

// Do does it.
func (t *T) Do() {}

// I is an interface.
type I interface {
	Do()
	hidden()
}

// S is a struct.
type S struct {
	*T
	U, V int // what they are
	hidden int
}

// Kinds of things.
const (
	// B is b.
	B = 1
	C = 2
)

func hidden() {}
`)
	got, err := API(files)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\n## Package cuda\n\nPackage cuda is a package.\n\n### Functions\n\n- `A`: A does a.\n",
		"\n### T\n\nT is a type.\n\n- `NewT`: NewT makes one.\n- `T.Do`: Do does it.\n",
		"\n### I\n\nI is an interface.\n\n- methods: `Do`\n",
		"\n### S\n\nS is a struct.\n\n- fields: `T` (embedded), `U`, `V`\n",
		"\n### Constants and variables\n\n- `B`: B is b.\n- Kinds of things: `C`\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	if strings.Contains(got, "hidden") {
		t.Errorf("what is not exported is listed:\n%s", got)
	}
}
