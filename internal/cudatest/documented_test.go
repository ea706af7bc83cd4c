package cudatest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	documentedTable = "../gen/documented.txt"
	resultTable     = "../gen/results.txt"
)

// everyFunction is the function of the row for results that stand for all.
const everyFunction = "*"

// mapResult is a line of map.txt below a function: a result of it, and what provokes that.
type mapResult struct {
	name, cases, remarks string // cases is "-" if nothing does
}

func readResult(line string, complain func(string, ...any)) mapResult {
	f := strings.Split(line+"|", "|")
	for i := range f {
		f[i] = strings.TrimSpace(f[i])
	}
	if len(f) < 3 || len(f) > 4 || f[0] == "" || f[1] == "" || f[1] == "-" && f[2] == "" {
		complain("internal/gen/map.txt: %q: want ! RESULT | cases | remarks, and remarks that say why if there is no case", line)
	}
	return mapResult{f[0], f[min(1, len(f)-1)], f[min(2, len(f)-1)]}
}

// readDocumented reads the results that the reference lists for each function.
func readDocumented(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(documentedTable)
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		if f := strings.Fields(line); len(f) > 1 {
			documented[f[0]] = f[1:]
		}
	}
	return documented
}

// TestDocumentedResults: each result that the reference lists for a function of the stream management section is provoked by a
// case that exists, or map.txt says why it cannot be.
func TestDocumentedResults(t *testing.T) {
	rows, _ := readMap()
	documented, known := readDocumented(t), resultNames(t)
	byName, shared := map[string]*mapRow{}, &mapRow{}
	for _, r := range rows {
		if r.function == everyFunction {
			shared = r
		}
		byName[r.function] = r
	}
	if len(documented) < 20 || len(shared.results) == 0 {
		t.Fatalf("%d functions, %d results for every one", len(documented), len(shared.results))
	}
	for function, results := range documented {
		r := byName[function]
		if r == nil {
			t.Errorf("internal/gen/map.txt has no %s", function)
			continue
		}
		for _, name := range results {
			if !r.tells(name) && !shared.tells(name) {
				t.Errorf("%s may answer %s: say below it in internal/gen/map.txt which case provokes that, or why none can", function, name)
			}
		}
	}
	exist := provokers(t)
	for _, r := range rows {
		for i, res := range r.results {
			if !known[res.name] || slices.ContainsFunc(r.results[:i], func(other mapResult) bool { return other.name == res.name }) {
				t.Errorf("internal/gen/map.txt: %s: %s is no result, or stands there twice", r.function, res.name)
			}
			for c := range strings.SplitSeq(res.cases, ", ") {
				if c != "-" && !exist[c] {
					t.Errorf("internal/gen/map.txt: %s: %s: there is no case %q", r.function, res.name, c)
				}
			}
		}
	}
}

// tells reports whether r has a line for a result.
func (r *mapRow) tells(name string) bool {
	return slices.ContainsFunc(r.results, func(res mapResult) bool { return res.name == name })
}

// resultNames are the driver's results.
func resultNames(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(resultTable)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if name, _, ok := strings.Cut(line, " "); ok && name != "#" {
			names[name] = true
		}
	}
	return names
}

// provokers are the cases, and the checks of package seamtest, as map.txt names them.
func provokers(t *testing.T) map[string]bool {
	t.Helper()
	exist := map[string]bool{}
	for _, c := range Cases() {
		exist[c.ID+"/"+c.Name] = true
	}
	files, err := filepath.Glob("../seamtest/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("package seamtest: %d files, %v", len(files), err)
	}
	check := regexp.MustCompile(`t\.Run\("([^"]+)"`)
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range check.FindAllStringSubmatch(string(text), -1) {
			exist["seam "+m[1]] = true
		}
	}
	return exist
}

// resultText writes the results into the map.
func resultText(b *strings.Builder, rows []*mapRow) {
	b.WriteString("\n## Documented errors\n\n" +
		"What provokes each error that the reference lists for a function of the stream management section, and some that it does not list. *seam* is a check below\n" +
		"package cuda, on both drivers, of what the package does not let a program do. A dash: nothing can provoke it. These stand for every function:\n\n")
	for _, r := range rows {
		if r.function == everyFunction {
			for _, res := range r.results {
				fmt.Fprintf(b, "- %s: %s.\n", res.name, res.remarks)
			}
		}
	}
	b.WriteString("\n| Driver | Error | Provoked by | Remarks |\n|---|---|---|---|\n")
	for _, r := range rows {
		for _, res := range r.results {
			if r.function != everyFunction {
				fmt.Fprintf(b, "| %s | %s | %s | %s |\n", r.function, res.name, res.cases, res.remarks)
			}
		}
	}
}
