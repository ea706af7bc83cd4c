package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hostlaunch/cuda"
)

// smallTrace is a trace of two streams, of which one waits for the other.
func smallTrace() *cuda.Trace {
	const ms = time.Millisecond
	return &cuda.Trace{
		Driver: "software", Version: "13.0", Duration: 10 * ms, Dropped: 3, Streams: []cuda.TraceStream{{Name: "stream 1"}, {Name: "stream 2"}},
		Spans: []cuda.TraceSpan{
			{ID: 1, Kind: cuda.TraceKernel, Name: "produce", Op: "Stream.Launch", Start: ms, End: 3 * ms},
			{ID: 2, Kind: cuda.TraceKernel, Name: "produce", Op: "Stream.Launch", Start: 3 * ms, End: 7 * ms},
			{ID: 3, Kind: cuda.TraceCopy, Op: "CopyToHost", Stream: 1, Bytes: 20e6, Start: 7 * ms, End: 9 * ms, After: []int{2}},
			{ID: 4, Kind: cuda.TraceHost, Name: "late", Stream: 1, Start: -1, End: -1},
		},
	}
}

func traceFile(t *testing.T) string {
	t.Helper()
	text, err := json.Marshal(smallTrace())
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "trace.json")
	if err := os.WriteFile(name, text, 0o666); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestTrace: the totals, and a file in each form.
func TestTrace(t *testing.T) {
	in, out := traceFile(t), t.TempDir()
	at := func(name string) string { return filepath.Join(out, name) }
	var stdout, complaints strings.Builder
	args := []string{"trace", in, "--html", at("a.html"), "--chrome", at("a.json"), "--dot", at("a.dot"), "--svg", at("a.svg")}
	if status := execute(args, &stdout, &complaints); status != 0 || complaints.Len() > 0 {
		t.Fatalf("exit status %d, %s", status, complaints.String())
	}
	for _, want := range []string{
		`4 operations in 10ms, on the software driver \(CUDA 13\.0\)\n3 more were left out`,
		`0 +stream 1 +2 +6ms +60\.0 %`,
		`0 +stream 2 +1 +2ms +20\.0 %`,
		`kernel +produce +2 +6ms +3ms +4ms\n`,
		`copy +CopyToHost +1 +2ms +2ms +2ms +10 GB/s`,
		`host function +late +1 +- +- +-\n`,
	} {
		if !regexp.MustCompile(want).MatchString(stdout.String()) {
			t.Errorf("the output lacks %s:\n%s", want, stdout.String())
		}
	}
	for name, want := range map[string]string{
		"a.html": "<!DOCTYPE html>", "a.json": `"traceEvents":[`, "a.dot": "digraph trace {", "a.svg": "kernel produce × 2</text>",
	} {
		if text, err := os.ReadFile(at(name)); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %v, %d bytes without %q", name, err, len(text), want)
		}
	}
}

// TestTraceMisuse: what is no trace, and what cannot be written, in a line each; nothing is left of a file that failed.
func TestTraceMisuse(t *testing.T) {
	in, dir := traceFile(t), t.TempDir()
	chrome := filepath.Join(dir, "chrome.json")
	if status := execute([]string{"trace", in, "--chrome", chrome}, new(strings.Builder), new(strings.Builder)); status != 0 {
		t.Fatal("no events written")
	}
	for want, args := range map[string][]string{
		"no such file": {filepath.Join(dir, "none")}, "trace needs the name of a file": {}, "trace reads one file, and not 2": {in, in},
		"for Chrome": {chrome},
		"directory":  {in, "--html", dir},
	} {
		var stdout, complaints strings.Builder
		status := execute(append([]string{"trace"}, args...), &stdout, &complaints)
		if status != 1 || !strings.Contains(complaints.String(), want) || strings.Count(complaints.String(), "\n") != 1 {
			t.Errorf("%v: exit status %d, %q", args, status, complaints.String())
		}
	}
	name := filepath.Join(dir, "half.html")
	half, err := traceOutputs{html: name}.open(new(strings.Builder), new(strings.Builder))
	if err != nil {
		t.Fatal(err)
	}
	err = half.write(nil)
	half.close()
	if err == nil || !strings.HasPrefix(err.Error(), name) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(name); !os.IsNotExist(err) {
		t.Errorf("half a file is left: %v", err)
	}
}

// TestDemoTraced: the demo's own trace, which says what it did, and can be read again.
func TestDemoTraced(t *testing.T) {
	t.Setenv(driverChoice, "software")
	dir := t.TempDir()
	page, trace := filepath.Join(dir, "demo.html"), filepath.Join(dir, "demo.json")
	var stdout, complaints strings.Builder
	args := []string{"demo", "--batches=6", "--count=1000", "--every=3", "--compute=1ms", "--timeline", page, "--trace", trace}
	if status := execute(args, &stdout, &complaints); status != 0 || complaints.Len() > 0 {
		t.Fatalf("exit status %d, %s", status, complaints.String())
	}
	if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), "rewrite") {
		t.Errorf("%v, a page of %d bytes", err, len(text))
	}
	stdout.Reset()
	if status := execute([]string{"trace", trace}, &stdout, &complaints); status != 0 {
		t.Fatal(complaints.String())
	}
	for _, want := range []string{`graph +\S+ +6 `, `host function +check +6 `, `node +replayed +6 `, `task +rewrite +2 `, `copy +CopyToHost +6 .* GB/s`, `copy +CopyToDevice +2 `} {
		if !regexp.MustCompile(want).MatchString(stdout.String()) {
			t.Errorf("the totals lack %s:\n%s", want, stdout.String())
		}
	}
	if status := execute([]string{"demo", "--batches=1", "--timeline", dir}, new(strings.Builder), &complaints); status != 1 {
		t.Errorf("a page that cannot be written: exit status %d", status)
	}
}
