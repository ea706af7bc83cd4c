package docs

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestBlocksCompile: the Go code in README.md, docs/guide and the page about testing compiles, each piece as a package of its own, with
// what testdata/prelude.txt declares. The files of the latter's package are TestTestingPage's.
func TestBlocksCompile(t *testing.T) {
	blocks := pageBlocks(t)
	if len(blocks) < 20 {
		t.Fatalf("%d pieces of code found", len(blocks))
	}
	if out, err := compile(t, blocks); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestBlocksFail: code that does not compile is told with its page and line.
func TestBlocksFail(t *testing.T) {
	page := "# Page\n\n```go\ns.Sync()\ns.Snyc()\n```\n"
	out, err := compile(t, Blocks("page.md", page))
	if err == nil || !strings.Contains(out, "page.md:5") || !strings.Contains(out, "Snyc") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestBlockForms: whole files, declarations, expressions and statements, each with its imports.
func TestBlockForms(t *testing.T) {
	const page = "```go\npackage main\n```\ntext\n```sh\nls\n```\n```go\nfunc f() { fmt.Println() }\n```\n  ```go\n  cuda.Rows{}\n  ```\n```go\nx := 1\nfmt.Println(x)\n```\n```go\ns.Sync()\n```\n"
	want := []string{
		"//line p:2\npackage main\n",
		"package block\n\nimport \"fmt\"\n\n//line p:9\nfunc f() { fmt.Println() }\n",
		"package block\n\nimport \"github.com/hostlaunch/cuda\"\n\nvar _ =\n//line p:12\n  cuda.Rows{}\n",
		"package block\n\nimport \"fmt\"\n\nfunc _() {\n//line p:15\nx := 1\nfmt.Println(x)\n}\n",
		"package block\n\n\nfunc _() {\n//line p:19\ns.Sync()\n}\n",
	}
	var got []string
	for _, b := range Blocks("p", page) {
		got = append(got, b.File())
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// TestLinks: what README.md and the pages in docs and examples link to within the repository is there.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#\s]+)\)`)
	pages := 0
	for _, pattern := range []string{"/*.md", "/docs/*.md", "/docs/guide/*.md", "/examples/*.md"} {
		list, err := filepath.Glob(root + pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range list {
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			pages++
			for _, m := range link.FindAllStringSubmatch(withoutCode(string(text)), -1) {
				if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil && !strings.Contains(m[1], "://") {
					t.Errorf("%s: %v", page, err)
				}
			}
		}
	}
	if pages < 10 {
		t.Errorf("%d pages read", pages)
	}
}

// withoutCode leaves out what stands between lines of three backquotes.
func withoutCode(text string) string {
	parts := strings.Split(text, "```")
	var prose strings.Builder
	for i := 0; i < len(parts); i += 2 {
		prose.WriteString(parts[i])
	}
	return prose.String()
}

// TestWholeProgram: the guide's first program prints what the page says, on the software device.
func TestWholeProgram(t *testing.T) {
	const name = "docs/guide/concepts.md"
	page, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(page), "\r\n", "\n")
	program := Blocks(name, text)[0].Code
	_, behind, _ := strings.Cut(text, program)
	_, behind, _ = strings.Cut(behind, "\n```\n\n```\n")
	want, _, _ := strings.Cut(behind, "```\n")
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, []byte(program), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "run", file)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "HOSTLAUNCH_DRIVER=software")
	if got, err := cmd.Output(); err != nil || string(got) != want || want == "" {
		t.Errorf("printed %q, %v; the page says %q", got, err, want)
	}
}

// TestExamplesListed: examples/README.md has a line for each example.
func TestExamplesListed(t *testing.T) {
	page, err := os.ReadFile(root + "/examples/README.md")
	if err != nil {
		t.Fatal(err)
	}
	list, err := filepath.Glob(root + "/examples/[0-9]*")
	if err != nil || len(list) < 11 {
		t.Fatalf("%d examples found: %v", len(list), err)
	}
	for _, dir := range list {
		if name := filepath.Base(dir); !strings.Contains(string(page), "\n| ["+name+"]("+name+"/main.go) | ") {
			t.Errorf("examples/README.md has no line for %s", name)
		}
	}
}

func pageBlocks(t *testing.T) (blocks []Block) {
	t.Helper()
	pages, err := filepath.Glob(root + "/docs/guide/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, root+"/README.md", root+"/"+testingPage) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		name, err := filepath.Rel(root, page)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range Blocks(filepath.ToSlash(name), string(text)) {
			if !strings.HasPrefix(b.Code, "package pipeline") {
				blocks = append(blocks, b)
			}
		}
	}
	return blocks
}

// compile builds blocks as packages that lie in this module only for the go command (-overlay).
func compile(t *testing.T, blocks []Block) (out string, err error) {
	t.Helper()
	prelude, err := filepath.Abs("testdata/prelude.txt")
	if err != nil {
		t.Fatal(err)
	}
	top, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	dir, overlay, args := t.TempDir(), map[string]string{}, []string{"build", "-overlay", ""}
	for i, b := range blocks {
		name := fmt.Sprintf("block%02d", i)
		file, place := filepath.Join(dir, name+".go"), filepath.Join(top, "internal", "docs", "blocks", name)
		if err := os.WriteFile(file, []byte(b.File()), 0o644); err != nil {
			t.Fatal(err)
		}
		overlay[filepath.Join(place, "block.go")] = file
		if !strings.HasPrefix(b.Code, "package ") {
			overlay[filepath.Join(place, "prelude.go")] = prelude
		}
		args = append(args, "./internal/docs/blocks/"+name)
	}
	text, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		t.Fatal(err)
	}
	args[2] = filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(args[2], text, 0o644); err != nil {
		t.Fatal(err)
	}
	args = slices.Insert(args, 1, "-o", os.DevNull)
	cmd := exec.Command("go", args...)
	cmd.Dir = top
	combined, err := cmd.CombinedOutput()
	return string(combined), err
}
