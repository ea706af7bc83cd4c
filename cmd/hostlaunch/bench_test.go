package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// runBench runs bench on the software device, quickly, and returns what it prints.
func runBench(t *testing.T, status int, args ...string) (out, complaints string) {
	t.Helper()
	t.Setenv(driverChoice, "software")
	var a, b strings.Builder
	if got := execute(append([]string{"bench", "--quick", "--rounds=1"}, args...), &a, &b); got != status {
		t.Fatalf("exit status %d, want %d: %s%s", got, status, a.String(), b.String())
	}
	return a.String(), b.String()
}

// TestBench: every measurement gives a figure, as JSON and as a table.
func TestBench(t *testing.T) {
	out, _ := runBench(t, 0, "--json")
	var f figures
	d := json.NewDecoder(strings.NewReader(out))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	if f.Driver != "software" || f.Device != "Software Device 0" || f.CUDA != "13.0" || f.Rounds != 1 {
		t.Errorf("%+v", f)
	}
	var names []string
	for _, x := range f.Figures {
		names = append(names, x.Name)
		if x.Title == "" || x.Floor != nil || x.Value <= 0 && x.Name != "wake" || x.Unit != "ns" && x.Unit != "GB/s" {
			t.Errorf("%+v", x)
		}
	}
	for _, want := range []string{"busy", "draining", "run", "roundtrip", "roundtrip-spin", "task", "task-spin", "wake", "nodes", "copy-pinned-64", "copy-staged-64", "copy-direct-256", "copy-up-staged-1024"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s was not measured: %v", want, names)
		}
	}
	out, _ = runBench(t, 0, "--only=^(nodes|copy-pinned-64)$")
	if lines := strings.Split(strings.TrimSpace(out), "\n"); len(lines) != 5 || !strings.Contains(out, "medians of 1 rounds") || !strings.Contains(lines[4], "GB/s") {
		t.Errorf("the table is\n%s", out)
	}
}

// TestBenchQuick: a quick look says what it leaves out, and copies more if it is told to.
func TestBenchQuick(t *testing.T) {
	const heading = "medians of 1 rounds; --quick: a twentieth of the repetitions, copies up to %d MiB\n"
	out, _ := runBench(t, 0, "--only=^copy-pinned")
	if !strings.Contains(out, fmt.Sprintf(heading, 1)) || strings.Contains(out, "4096") {
		t.Errorf("the table is\n%s", out)
	}
	out, _ = runBench(t, 0, "--only=^copy-pinned", "--largest=4")
	if !strings.Contains(out, fmt.Sprintf(heading, 4)) || !strings.Contains(out, "copy-pinned-4096 ") {
		t.Errorf("with --largest=4 the table is\n%s", out)
	}
	var complaints strings.Builder
	if execute([]string{"bench", "--only=zzz"}, new(strings.Builder), &complaints); !strings.HasSuffix(complaints.String(), ", 262144\n") {
		t.Errorf("without --quick: %q", complaints.String())
	}
	if strings.Contains(out, "C++") {
		t.Errorf("nothing stands beside it, and there is a column for that:\n%s", out)
	}
}

// TestBenchMedians: the first round warms up, and an error is told with its measurement.
func TestBenchMedians(t *testing.T) {
	calls := 0
	m := measurement{name: "x", unit: "ns", measure: func() (float64, error) { calls++; return float64(100 / calls), nil }}
	got, err := measureAll([]measurement{m}, 3, nil, new(strings.Builder))
	if err != nil || calls != 4 || len(got) != 1 || got[0].Value != 33 { // 50, 33 and 25: the first only warms up
		t.Errorf("%+v, %v after %d calls", got, err, calls)
	}
	fails := errors.New("fails")
	m.measure = func() (float64, error) { return 0, fails }
	if _, err := measureAll([]measurement{m}, 3, nil, new(strings.Builder)); !errors.Is(err, fails) || !strings.HasPrefix(err.Error(), "x: ") {
		t.Errorf("error %v", err)
	}
}

// TestBenchFloor: the C++ program is asked for what it has, by name, and gets the kernels; "auto" compiles it.
// TestBenchRounds: very large copies are repeated less often, but a few times in any case; nothing else is.
func TestBenchRounds(t *testing.T) {
	for _, c := range []struct{ bytes, asked, want int }{{0, 9, 9}, {0, 100, 100}, {1 << 30, 9, 9}, {4 << 30, 9, 4}, {64 << 30, 9, 3}, {64 << 30, 2, 2}} {
		m := measurement{copy: &copied{Bytes: c.bytes}}
		if c.bytes == 0 {
			m.copy = nil
		}
		if got := m.rounds(c.asked); got != c.want {
			t.Errorf("%+v: %d rounds", c, got)
		}
	}
}

func TestBenchFloor(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs a shell")
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "floor")
	script := "#!/bin/sh\ngrep -q 'entry spin' \"$1\" || exit 1\nwhile read name; do echo \"$name\" >>" + dir + "/asked; echo 1234; done\n"
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	if out, _ := runBench(t, 0, "--only=^(roundtrip|task)$", "--floor="+program); strings.Count(out, "1.23µs") != 1 || !strings.Contains(out, "C++ beside it") {
		t.Errorf("the table is\n%s", out)
	}
	asked, err := os.ReadFile(dir + "/asked")
	if err != nil || string(asked) != "roundtrip\nroundtrip\n" {
		t.Errorf("asked for %q, %v", asked, err)
	}

	const early = "hostlaunch: --floor: the program ended before it answered: "
	if _, complaints := runBench(t, 1, "--only=^roundtrip$", "--floor=/bin/true"); !strings.HasPrefix(complaints, early) {
		t.Errorf("a program that answers nothing: %q", complaints)
	}

	t.Chdir("../..") // where the source is
	t.Setenv("PATH", dir)
	if _, complaints := runBench(t, 1, "--only=^roundtrip$", "--floor=auto"); !strings.Contains(complaints, "nvcc") {
		t.Errorf("without nvcc: %q", complaints)
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	nvcc := "#!/bin/sh\n[ \"$4\" = " + floorSource + " ] && cp " + program + " \"$3\"\n"
	if err := os.WriteFile(dir+"/nvcc", []byte(nvcc), 0o755); err != nil {
		t.Fatal(err)
	}
	if out, _ := runBench(t, 0, "--only=^roundtrip$", "--floor=auto"); !strings.Contains(out, "1.23µs") {
		t.Errorf("compiled: the table is\n%s", out)
	}
}

// TestBenchMisuse: flags that make no sense, and a program that is not there. Each complaint is of what is wrong, and of no more.
func TestBenchMisuse(t *testing.T) {
	const counts = "hostlaunch: --rounds and --largest must be 1 or more\n"
	for flag, want := range map[string]string{
		"--rounds=0":             counts,
		"--largest=0":            counts,
		"--only=(":               "hostlaunch: --only: error parsing regexp: missing closing ): `(`\n",
		"--plots=x,pdf":          "hostlaunch: --plots: format \"pdf\" is unknown; take svg or png\n",
		"--plots=,png":           "hostlaunch: --plots names a format and no folder; say --plots=folder,png\n",
		"--floor=/nowhere/floor": "/nowhere/floor", // the rest is the system's
		"--floor=/nowhere/else":  "hostlaunch: --floor: ",
		"--largest=8589934592":   "hostlaunch: --largest is in MiB, and at most 1048576\n",
		"--largest=1048576":      "hostlaunch: --largest: that takes 1024.0 GiB, and device 0 has 8.0 GiB\n",
		"--plots=bench.go/x":     "hostlaunch: --plots: ",
		"--only=zzz": "hostlaunch: --only: no measurement has such a name; there are: busy, draining, run, roundtrip, roundtrip-spin, task, task-spin, wake, " +
			"nodes, copy-pinned-N, copy-staged-N, copy-direct-N, copy-up-pinned-N, copy-up-staged-N, copy-up-direct-N, " +
			"where N, the size in KiB, is 64, 256, 1024\n",
	} {
		out, complaints := runBench(t, 1, flag)
		if out != "" || !strings.Contains(complaints, want) {
			t.Errorf("%s: %q, %q; want %q", flag, out, complaints, want)
		}
	}
}

// TestBenchPlots: there is a plot of each direction's rates and one of the times, in the format that was asked for.
func TestBenchPlots(t *testing.T) {
	for format, begins := range map[string]string{"svg": "<?xml", "png": "\x89PNG"} {
		dir := filepath.Join(t.TempDir(), "plots")
		runBench(t, 0, "--only=^(roundtrip|copy-)", "--plots="+dir+","+format)
		for _, name := range []string{"copies-down", "copies-up", "times"} {
			if data, err := os.ReadFile(filepath.Join(dir, name+"."+format)); err != nil || !strings.HasPrefix(string(data), begins) {
				t.Errorf("%s.%s: %v, begins with %.10q", name, format, err, data)
			} else if text := string(data); format == "svg" && !strings.Contains(text, "Software Device 0") {
				t.Errorf("%s does not say of what it is", name)
			}
		}
	}
	dir := t.TempDir()
	runBench(t, 0, "--only=^roundtrip$", "--plots="+dir)
	if list, err := filepath.Glob(dir + "/*"); err != nil || len(list) != 1 || filepath.Base(list[0]) != "times.svg" {
		t.Errorf("without copies: %v, %v", list, err)
	}
}
