package cuda

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestLeave: what Context.enter lets in is ended by Context.leave, which Close of a context relies on, and not by Driver.leave.
func TestLeave(t *testing.T) {
	files, _ := filepath.Glob("*.go")
	wrong := regexp.MustCompile(`\b(c|ctx)\.drv\.leave\(\)`)
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(wrong.FindAll(text, -1)); n > 0 && name != "context.go" && name != "owncontext.go" {
			t.Errorf("%s: %d times .drv.leave(); want Context.leave", name, n)
		}
	}
}
