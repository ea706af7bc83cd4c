package cudatest

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite docs/contract.md")

const contractPage = "../../docs/contract.md"

// TestCases: a case that cites no rule, or that has another one's name, would be lost to whoever looks for it.
func TestCases(t *testing.T) {
	names := map[string]bool{}
	for _, c := range Cases() {
		name := c.ID + "/" + c.Name
		switch {
		case Rules[c.ID] == "":
			t.Errorf("%s: there is no such rule", name)
		case names[name]:
			t.Errorf("%s: there are two", name)
		case c.Run == nil || c.Name == "" || strings.Contains(c.Name, "/"):
			t.Errorf("%s: no function, or a name that go test -run cannot find", name)
		case c.Exit != "" && !c.Child:
			t.Errorf("%s: only a Child's exit is looked at", name)
		}
		names[name] = true
	}
}

// TestContract: each rule once, by the id of its family.
func TestContract(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range Contract {
		for _, r := range f.Rules {
			if !strings.HasPrefix(r.ID, f.ID+"-") || r.Text == "" || seen[r.ID] {
				t.Errorf("rule %q of family %s: a wrong id, no text, or there twice", r.ID, f.ID)
			}
			seen[r.ID] = true
		}
	}
}

// outside is a test that is no case of the suite.
type outside struct{ file, test string }

// otherTests are tests outside the suite that check a rule, or a part of it that no driver can be made to show.
var otherTests = map[string][]outside{
	"HL-06": {{"internal/ffi/inside_test.go", "TestInside"}, {"internal/ffi/onstack_test.go", "TestOnStackUnderC"}},
	"HL-09": {{"softcuda/device_test.go", "TestGoexitContained"}},
	"HL-16": {{"refused_test.go", "TestRefusedByDriver"}, {"refused_test.go", "TestRefusedWhileSwept"}},
	"HL-17": {{"libcuda/service_test.go", "TestFailureWatch"}, {"libcuda/public_test.go", "TestBorrowThenOpen"}},
	"ST-04": {{"libcuda/public_test.go", "TestCancelledWaits"}, {"softcuda/pool_test.go", "TestPoolEvents"}},
	"CB-05": {{"callback_test.go", "TestCallbacksLeft"}},
	"EV-03": {{"libcuda/service_test.go", "TestNotifyEvent"}},
	"GR-07": {{"softcuda/graphowner_test.go", "TestOwnerRefused"}},
	"CY-07": {{"held_test.go", "TestLaunchHoldsBuffers"}},
	"TK-03": {{"softcuda/model_test.go", "TestTaskModel"}},
	"TK-07": {{"softcuda/model_test.go", "TestTaskModel"}},
	"HL-21": {{"libcuda/hold_test.go", "TestEmulateSpin"}, {"softcuda/spin_test.go", "TestSpinBeside"}, {"softcuda/spin_test.go", "TestSpinManaged"}},
	"LI-03": {{"libcuda/open_test.go", "TestOpenClose"}, {"softcuda/device_test.go", "TestNothingRunsIdle"}},
	"LI-04": {{"libcuda/find_test.go", "TestOpenErrors"}, {"libcuda/find_test.go", "TestSearch"}, {"libcuda/find_test.go", "TestNothingFound"},
		{"libcuda/find_test.go", "TestLoadFailure"}, {"badinput_test.go", "TestNoDevices"}},
}

// TestElsewhere: the tests that the contract points to exist.
func TestElsewhere(t *testing.T) {
	for id, tests := range otherTests {
		if Rules[id] == "" {
			t.Errorf("there is no rule %s", id)
		}
		for _, e := range tests {
			text, err := os.ReadFile("../../" + e.file)
			if err != nil || !strings.Contains(string(text), "\nfunc "+e.test+"(t *testing.T)") {
				t.Errorf("%s: there is no test %s in %s (%v)", id, e.test, e.file, err)
			}
		}
	}
}

// TestEveryRule: each rule has a case, or a test outside the suite that checks it.
func TestEveryRule(t *testing.T) {
	checked := map[string]bool{}
	for _, c := range Cases() {
		checked[c.ID] = true
	}
	for id := range otherTests {
		checked[id] = true
	}
	for id := range Rules {
		if !checked[id] {
			t.Errorf("no case and no test checks %s: %s", id, Rules[id])
		}
	}
}

// TestContractPage compares docs/contract.md with the contract; -update writes it.
func TestContractPage(t *testing.T) {
	want := page()
	if *update {
		if err := os.MkdirAll("../../docs", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(contractPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(contractPage)
	if err != nil || strings.ReplaceAll(string(got), "\r\n", "\n") != want {
		t.Errorf("docs/contract.md is not current (%v); run: go test ./internal/cudatest -update", err)
	}
}

// quoted is code in a rule, which stands between ' there, since the texts stand between `.
var quoted = regexp.MustCompile(`'([A-Za-z_][\w.]*)'`)

// page is the contract as Markdown.
func page() string {
	cases := map[string][]Case{}
	for _, c := range Cases() {
		cases[c.ID] = append(cases[c.ID], c)
	}
	var b strings.Builder
	b.WriteString("# Contract\n\n" +
		"<!-- Generated from internal/cudatest by: go test ./internal/cudatest -update -->\n\n" +
		"What this library promises, rule by rule. Under each rule stand the cases of the conformance suite that check it on every driver,\n" +
		"and tests outside the suite that check what no case can; no rule is without either.\n" +
		"A case is run by its name, as in: `go test ./softcuda -run 'TestConformance/HL-01/between_kernels'`.\n" +
		"[sw] marks what only the software device can be made to show, [hw] what only hardware can.\n")
	for _, f := range Contract {
		fmt.Fprintf(&b, "\n## %s: %s\n\n", f.ID, f.Title)
		for _, r := range f.Rules {
			fmt.Fprintf(&b, "- **%s** %s\n", r.ID, quoted.ReplaceAllString(r.Text, "`$1`"))
			for _, c := range cases[r.ID] {
				fmt.Fprintf(&b, "  - %s%s\n", c.Name, remarks(c))
			}
			for _, e := range otherTests[r.ID] {
				fmt.Fprintf(&b, "  - outside the suite: %s in %s\n", e.test, e.file)
			}
		}
	}
	return b.String()
}

// remarks are what a reader must know to run a case.
func remarks(c Case) string {
	var list []string
	if c.Devices > 1 {
		list = append(list, fmt.Sprintf("%d devices", c.Devices))
	}
	if c.Child {
		list = append(list, "in a process of its own")
	}
	if list == nil {
		return ""
	}
	return " (" + strings.Join(list, ", ") + ")"
}
