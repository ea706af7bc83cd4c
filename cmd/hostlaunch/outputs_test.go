package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOutputsStdout: a form that goes to - is all that is on the standard output, and no file has that name.
func TestOutputsStdout(t *testing.T) {
	t.Setenv(driverChoice, "software")
	in := traceFile(t)
	t.Chdir(t.TempDir())
	demo := []string{"demo", "--batches=2", "--count=1000", "--compute=0s"}
	for _, c := range []struct {
		args                []string
		begins, ends, table string
	}{
		{[]string{"trace", in, "--dot", "-"}, "digraph", "}\n", "Operations"},
		{
			[]string{"trace", in, "--html", "-", "--chrome", "c.json"},
			"<!DOCTYPE html>", "</html>\n", "wrote c.json; open it with ui.perfetto.dev\n",
		},
		{append(demo, "--trace", "-"), `{"driver":"software"`, "}\n", "replays of the graph"},
	} {
		var stdout, stderr strings.Builder
		status := execute(c.args, &stdout, &stderr)
		if out := stdout.String(); status != 0 || !strings.HasPrefix(out, c.begins) || !strings.HasSuffix(out, c.ends) {
			t.Errorf("%v: exit status %d, stdout %.40q", c.args, status, out)
		}
		if !strings.Contains(stderr.String(), c.table) || strings.Contains(stdout.String(), c.table) {
			t.Errorf("%v: stderr %q", c.args, stderr.String())
		}
	}
	if _, err := os.Lstat("-"); !os.IsNotExist(err) {
		t.Errorf("there is a file - (%v)", err)
	}
	var stdout, stderr strings.Builder
	status := execute(append(demo, "--trace=-", "--timeline=-"), &stdout, &stderr)
	if status != 1 || !strings.Contains(stderr.String(), "only one form") {
		t.Errorf("two forms: exit status %d, %q", status, stderr.String())
	}
}

// TestOutputsFirst: what cannot be written is told before anything runs, and says at the end what was written.
func TestOutputsFirst(t *testing.T) {
	t.Setenv(driverChoice, "software")
	t.Chdir(t.TempDir())
	var stdout, stderr strings.Builder
	status := execute([]string{"demo", "--timeline=page.html", "--trace=none/x.json"}, &stdout, &stderr)
	if status != 1 || stdout.Len() > 0 || !strings.Contains(stderr.String(), filepath.Join("none", "x.json")) {
		t.Errorf("exit status %d, %q, %q", status, stdout.String(), stderr.String())
	}
	if _, err := os.Stat("page.html"); !os.IsNotExist(err) {
		t.Errorf("an empty page is left: %v", err)
	}
	stderr.Reset()
	args := []string{"demo", "--batches=1", "--compute=0s", "--timeline=page.html", "--trace=x.json"}
	if status := execute(args, &stdout, &stderr); status != 0 {
		t.Fatal(stderr.String())
	}
	const want = "wrote page.html; open it in a browser\nwrote x.json; hostlaunch trace reads it\n"
	if !strings.HasSuffix(stdout.String(), want) {
		t.Errorf("it says %q", stdout.String())
	}
}

// TestOutputsKeep: what was in a file stays until there is a trace to put in its place, and nothing of it after.
func TestOutputsKeep(t *testing.T) {
	in := traceFile(t)
	t.Chdir(t.TempDir())
	old := strings.Repeat("old ", 10000)
	if err := os.WriteFile("a.dot", []byte(old), 0o666); err != nil {
		t.Fatal(err)
	}
	for name, status := range map[string]int{"none.json": 1, in: 0} {
		var stdout, stderr strings.Builder
		if got := execute([]string{"trace", name, "--dot", "a.dot", "--svg", "b.svg"}, &stdout, &stderr); got != status {
			t.Errorf("%s: exit status %d, %s", name, got, stderr.String())
		}
		text, err := os.ReadFile("a.dot")
		if kept := string(text) == old; err != nil || kept != (status == 1) || !kept && strings.Contains(string(text), "old ") {
			t.Errorf("%s: %v, %.20q...", name, err, text)
		}
		if _, err := os.Stat("b.svg"); os.IsNotExist(err) != (status == 1) {
			t.Errorf("%s: b.svg: %v", name, err)
		}
		os.Remove("b.svg")
		os.WriteFile("a.dot", []byte(old), 0o666)
	}
}
