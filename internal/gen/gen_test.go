package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestCurrent: the generated files in the tree are what the tables give.
func TestCurrent(t *testing.T) {
	root := filepath.Join("..", "..")
	files, err := generate(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Error(err)
			continue
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what its table gives; run: go run ./internal/gen", name)
		}
	}
}
