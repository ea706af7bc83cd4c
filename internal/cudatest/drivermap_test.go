package cudatest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	mapPage   = "../../docs/driver-map.md"
	mapTable  = "../gen/map.txt"
	callTable = "../gen/calls.txt"
)

// streamSection are the functions that the map must have: the driver's stream management section, and what else works on
// streams.
var streamSection = strings.Fields(`
cuStreamAddCallback cuStreamAttachMemAsync cuStreamBeginCapture cuStreamBeginCaptureToGraph cuStreamBeginRecaptureToGraph
cuStreamCopyAttributes cuStreamCreate cuStreamCreateWithPriority cuStreamDestroy cuStreamEndCapture cuStreamGetAttribute
cuStreamGetCaptureInfo cuStreamGetCtx cuStreamGetDevResource cuStreamGetDevice cuStreamGetFlags cuStreamGetGreenCtx cuStreamGetId
cuStreamGetPriority cuStreamIsCapturing cuStreamQuery cuStreamSetAttribute cuStreamSynchronize cuStreamUpdateCaptureDependencies
cuStreamWaitEvent cuThreadExchangeStreamCaptureMode cuCtxGetStreamPriorityRange cuGreenCtxStreamCreate cuStreamWaitValue32
cuStreamWaitValue64 cuStreamWriteValue32 cuStreamWriteValue64 cuStreamBatchMemOp cuLaunchHostFunc cuEventRecord cuEventRecordWithFlags
cuEventQuery cuEventSynchronize cuEventCreate cuEventDestroy cuEventElapsedTime cuMemAllocManaged`)

// mapRow is a row of map.txt, or a heading.
type mapRow struct {
	heading            string
	function           string // with its @version, if it has one
	goName, cases      string
	software, h200     string
	remarks            string
	version, since     string // from calls.txt, "" if it is not there
	missing, otherwise bool   // not there yet; another function does it
	results            []mapResult
}

// readMap reads both tables, and reports what does not fit.
func readMap() (rows []*mapRow, problems []string) {
	complain := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	calls := readCalls(complain)
	text, err := os.ReadFile(mapTable)
	if err != nil {
		complain("%v", err)
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			rows = append(rows, &mapRow{heading: heading})
			continue
		}
		if line == "" || line[0] == '#' {
			continue
		}
		if result, ok := strings.CutPrefix(line, "! "); ok {
			if len(rows) == 0 {
				rows = append(rows, &mapRow{function: everyFunction})
			}
			last := rows[len(rows)-1]
			last.results = append(last.results, readResult(result, complain))
			continue
		}
		f := strings.Split(line+strings.Repeat("|", max(0, 5-strings.Count(line, "|"))), "|")
		for i := range f {
			f[i] = strings.TrimSpace(f[i])
		}
		if len(f) != 6 || slices.Contains(f[:5], "") {
			complain("internal/gen/map.txt: %q: want function | Go name | cases | software device | H200, and remarks if there are any", line)
			continue
		}
		r := &mapRow{function: f[0], goName: f[1], cases: f[2], software: f[3], h200: f[4], remarks: f[5]}
		r.missing, r.otherwise = strings.HasPrefix(r.goName, "missing "), strings.HasPrefix(r.goName, "by ")
		rows = append(rows, r)
	}
	match(rows, calls, complain)
	return rows, problems
}

// readCalls gives the versions of calls.txt: asked for, and since, by function.
func readCalls(complain func(string, ...any)) map[string][][2]string {
	calls := map[string][][2]string{}
	text, err := os.ReadFile(callTable)
	if err != nil {
		complain("%v", err)
	}
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		if f := strings.Fields(line); len(f) >= 4 {
			calls[f[0]] = append(calls[f[0]], [2]string{f[1], f[2]})
		}
	}
	return calls
}

// match finds the row of calls.txt for each row of the map, and the other way round.
func match(rows []*mapRow, calls map[string][][2]string, complain func(string, ...any)) {
	byName := map[string]*mapRow{}
	for _, r := range rows {
		if r.heading == "" && r.function != everyFunction {
			if byName[r.function] != nil {
				complain("internal/gen/map.txt has %s twice", r.function)
			}
			byName[r.function] = r
		}
	}
	for function, versions := range calls {
		for _, v := range versions {
			r := byName[function+"@"+v[0]]
			if r == nil {
				r = byName[function]
			}
			switch {
			case r == nil:
				complain("calls.txt has %s, docs/driver-map.md has not: add to internal/gen/map.txt the line\n\t%s | its Go name | rules of its cases | yes | -", function, function)
			case r.missing || r.otherwise:
				complain("calls.txt has %s: give it its Go name in internal/gen/map.txt instead of %q", r.function, r.goName)
			default:
				r.version, r.since = v[0], v[1]
			}
		}
	}
	for _, r := range byName {
		switch {
		case r.version == "" && !r.missing && !r.otherwise:
			complain("internal/gen/map.txt has %s, which calls.txt has not: call it \"missing\", or remove it", r.function)
		case r.otherwise && calls[strings.TrimPrefix(r.goName, "by ")] == nil:
			complain("internal/gen/map.txt: %s is said to be done %s, which calls.txt has not", r.function, r.goName)
		}
	}
	for _, function := range streamSection {
		if byName[function] == nil {
			complain("internal/gen/map.txt has no %s: say at least that it is missing", function)
		}
	}
}

// TestDriverMap compares docs/driver-map.md with the tables and the cases; -update writes it.
func TestDriverMap(t *testing.T) {
	rows, problems := readMap()
	names, ids := exported(t), caseNames()
	for _, r := range rows {
		if r.heading != "" || r.missing || r.function == everyFunction {
			continue
		}
		for name := range strings.SplitSeq(r.goName, ", ") {
			if name != "-" && !r.otherwise && !names[name] {
				problems = append(problems, fmt.Sprintf("internal/gen/map.txt: package cuda exports no %s (%s)", name, r.function))
			}
		}
		for c := range strings.SplitSeq(r.cases, ", ") {
			if c != "-" && ids[c] == 0 && Rules[c] == "" {
				problems = append(problems, fmt.Sprintf("internal/gen/map.txt: there is neither a rule nor a case %s (%s)", c, r.function))
			}
		}
	}
	slices.Sort(problems)
	for _, p := range problems {
		t.Error(p)
	}
	want := mapText(rows, ids)
	if *update {
		if err := os.WriteFile(mapPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(mapPage)
	if err != nil || strings.ReplaceAll(string(got), "\r\n", "\n") != want {
		t.Errorf("docs/driver-map.md is not current (%v); run: go test ./internal/cudatest -update", err)
	}
}

// caseNames counts the cases of each rule, and of each case, which is one.
func caseNames() map[string]int {
	n := map[string]int{}
	for _, c := range Cases() {
		n[c.ID]++
		n[c.ID+"/"+c.Name]++
	}
	return n
}

// exported are the exported functions and methods of package cuda, as in Stream.Sync. Those of the context are the device's
// too.
func exported(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("../../*.go")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Name.IsExported() {
				names[receiver(f)+f.Name.Name] = true
			}
		}
	}
	return names
}

func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	typ := f.Recv.List[0].Type
	if p, ok := typ.(*ast.StarExpr); ok {
		typ = p.X
	}
	if id, ok := typ.(*ast.Ident); ok {
		return id.Name + "."
	}
	return "?."
}

// mapText is the map as Markdown.
func mapText(rows []*mapRow, ids map[string]int) string {
	var b strings.Builder
	b.WriteString("# The driver's functions in Go\n\n" +
		"<!-- Generated from internal/gen/calls.txt, internal/gen/map.txt and the cases by: go test ./internal/cudatest -update -->\n\n" +
		"*CUDA* is the version whose ABI is called (it is asked for by that number); with \"since\", older drivers lack the function, and what needs it\n" +
		"answers ErrNotSupported or does without. *Cases* are rules of [the contract](contract.md) with the number of their cases; each case runs on both\n" +
		"drivers. *H200* is what runs on one have shown: see [results](results). A dash is what has not been shown.\n\n" +
		"cuStreamBeginCaptureToCig and cuStreamEndCaptureToCig (CUDA 13.2) are left out: they record into a command list of a graphics API.\n")
	missing := 0
	for _, r := range rows {
		if r.function == everyFunction {
			continue
		}
		if r.heading != "" {
			fmt.Fprintf(&b, "\n## %s\n\n| Driver | Go | CUDA | Cases | Software device | H200 | Remarks |\n|---|---|---|---|---|---|---|\n", r.heading)
			continue
		}
		if r.missing {
			missing++
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s |\n", strings.ReplaceAll(r.function, "@", ", version "), r.goText(), r.cuda(), r.caseText(ids), r.software, r.h200, r.remarks)
	}
	fmt.Fprintf(&b, "\n%d functions of the streams' sections are missing.\n", missing)
	resultText(&b, rows)
	return b.String()
}

func (r *mapRow) goText() string {
	switch {
	case r.missing:
		return "**missing**"
	case r.otherwise:
		return r.goName
	case r.goName == "-":
		return "(internal)"
	}
	return "`" + strings.ReplaceAll(r.goName, ", ", "`, `") + "`"
}

func (r *mapRow) cuda() string {
	switch {
	case r.goName == "missing -":
		return "every"
	case r.missing:
		return strings.TrimPrefix(r.goName, "missing ")
	case r.version == "":
		return "every"
	}
	n, _ := strconv.Atoi(r.version)
	text := fmt.Sprintf("%d.%d", n/1000, n%1000/10)
	if r.since != "-" {
		text += " (since)"
	}
	return text
}

func (r *mapRow) caseText(ids map[string]int) string {
	var list []string
	for c := range strings.SplitSeq(r.cases, ", ") {
		switch n := ids[c]; {
		case c == "-" || strings.Contains(c, "/"):
			list = append(list, c)
		case n == 0:
			list = append(list, fmt.Sprintf("%s (%d outside the suite)", c, len(otherTests[c])))
		default:
			list = append(list, fmt.Sprintf("%s (%d)", c, n))
		}
	}
	return strings.Join(list, ", ")
}
