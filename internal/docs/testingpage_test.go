package docs

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const testingPage = "docs/testing-without-a-gpu.md"

// TestTestingPage: the two files of the page about testing are a package, and its tests fail with what the page prints. -update writes that.
func TestTestingPage(t *testing.T) {
	file := filepath.Join(root, testingPage)
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(page), "\r\n", "\n")
	blocks := Blocks(testingPage, text)
	var want string
	for range 3 { // a program that is held up for 15 ms gets another schedule
		want = text
		for section, test := range map[string]string{"checked": "TestChecked", "explored": "TestExplored"} {
			want = withOutput(t, want, section, failed(t, blocks[0].Code, blocks[1].Code, test))
		}
		if want == text {
			return
		}
	}
	if !*update {
		t.Fatalf("%s does not print what its tests print; run: go test ./internal/docs -update; it should be\n%s", testingPage, want)
	}
	if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// failed is what a test of the two files prints, which fails.
func failed(t *testing.T, send, test, name string) string {
	t.Helper()
	dir := t.TempDir()
	files := []string{filepath.Join(dir, "send.go"), filepath.Join(dir, "send_test.go")}
	for i, code := range []string{send, test} {
		if err := os.WriteFile(files[i], []byte(code+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("go", "test", "-run", "^"+name+"$", files[0], files[1])
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	var status *exec.ExitError
	text := regexp.MustCompile(`\(\d+\.\d\ds\)`).ReplaceAllString(string(out), "(0.00s)")
	printed, _, found := strings.Cut(text, "FAIL\nFAIL")
	if !errors.As(err, &status) || !found {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
	return mayCome.ReplaceAllString(printed, "")
}

// mayCome is what testSend itself says in TestChecked, where that depends on which comes first.
var mayCome = regexp.MustCompile(`(?m)^    send_test.go:\d+: the first buffer .*\n`)

// withOutput is page with the output of a section.
func withOutput(t *testing.T, page, section, output string) string {
	t.Helper()
	before, behind, found := strings.Cut(page, "<!-- "+section+" -->\n")
	_, behind, ended := strings.Cut(behind, "<!-- end -->")
	if !found || !ended {
		t.Fatalf("%s has no section %s", testingPage, section)
	}
	return before + "<!-- " + section + " -->\n```\n" + output + "```\n<!-- end -->" + behind
}
