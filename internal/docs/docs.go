// Package docs reads the documentation and the code that it speaks of. Its tests keep the two together: every exported name has
// a doc comment, docs/api.md lists them all, the Go code in README.md, docs/guide and the page about testing compiles, and what
// pages print is what comes.
package docs

import (
	"go/ast"
	"go/build"
	"go/doc"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"path"
	"strings"
)

// Public are the packages that programs import, by their folders; "." is package cuda.
var Public = []string{".", "anycuda", "libcuda", "softcuda", "timeline", "picture"}

// Package reads the documentation of the package in a folder of root, as it is on Linux on amd64 with cgo.
func Package(root fs.FS, dir string) (*doc.Package, error) {
	linux := build.Context{GOOS: "linux", GOARCH: "amd64", Compiler: "gc", CgoEnabled: true, JoinPath: path.Join}
	linux.OpenFile = func(name string) (io.ReadCloser, error) { return root.Open(name) }
	names, err := fs.Glob(root, path.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		if match, err := linux.MatchFile(path.Split(name)); err != nil {
			return nil, err
		} else if !match {
			continue
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(set, name, text, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return doc.NewFromFiles(set, files, path.Join("github.com/hostlaunch/cuda", dir))
}
