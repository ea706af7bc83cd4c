package cuda_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/hostlaunch/cuda"

// allowed says which packages of this module a package may import, tests aside. It is ARCHITECTURE.md's drawing, from the
// bottom up: nothing imports what stands below it.
var allowed = map[string][]string{
	"internal/driver": {},
	"internal/native": {},
	"internal/hostfn": {},
	"internal/ffi":    {"internal/native"},
	"":                {"internal/driver", "internal/hostfn", "internal/native"},
	"libcuda":         {"", "internal/driver", "internal/ffi"},
	"softcuda":        {"", "internal/driver", "internal/native"},
	"anycuda":         {"", "libcuda", "softcuda"},
	"timeline":        {""},
	"picture":         {"picture/internal/cache"},

	"picture/internal/cache": {},

	"internal/docs":        {},
	"internal/gen":         {},
	"internal/cudatest":    {""},
	"internal/seamtest":    {"internal/driver"},
	"internal/testkernels": {"softcuda"},
	"internal/nativetest":  {"internal/native"},
	"internal/model":       {},
	"internal/source":      {},
	"internal/modeltest":   {"", "internal/model", "internal/source"},
	"internal/graphtest":   {"", "internal/source"},
	"internal/bench/rig":   {"", "internal/testkernels"},
	"internal/bench":       {"", "libcuda", "internal/bench/rig"},
	"cmd/hostlaunch":       {"", "anycuda", "libcuda", "softcuda", "timeline", "picture", "internal/testkernels", "internal/bench/rig"},
	"examples/":            {"", "anycuda", "softcuda", "examples/internal/kit"},
}

func TestImportDirections(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}}:{{join .Imports " "}}`, "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		pkg, imports, _ := strings.Cut(strings.TrimSpace(line), ":")
		name, rules := rulesOf(pkg)
		if rules == nil {
			t.Errorf("%s is not in the list of packages: give it its place there and in ARCHITECTURE.md", pkg)
		}
		for _, imported := range strings.Fields(imports) {
			if to, ours := within(imported); ours && !slices.Contains(rules, to) {
				t.Errorf("%q must not import %q", name, to)
			}
		}
	}
}

func rulesOf(pkg string) (string, []string) {
	name, _ := within(pkg)
	if strings.HasPrefix(name, "examples/") {
		return name, allowed["examples/"]
	}
	return name, allowed[name]
}

// within is a package's path inside this module.
func within(pkg string) (string, bool) {
	if pkg == module {
		return "", true
	}
	return strings.CutPrefix(pkg, module+"/")
}
