package rig

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// script is a program for the test that is called like the floor.
func script(t *testing.T, text string) (path string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	path = filepath.Join(t.TempDir(), "floor")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestFloor: the program gets the kernels' file and names, and answers; what it does not know is an error, and no end.
func TestFloor(t *testing.T) {
	f, err := StartFloor(script(t, `while read name; do
	case $name in
	ptx) echo ${#1} ;;
	half) echo 0.5 ;;
	*) echo -1 ;;
	esac
done`), "12345", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Stop()
	for _, c := range []struct {
		name, err string
		want      float64
	}{{"ptx", "", 5}, {"other", "the C++ program has no measurement other", 0}, {"half", "", 0.5}} {
		got, err := f.Ask(c.name)
		if got != c.want || err == nil != (c.err == "") || err != nil && err.Error() != c.err {
			t.Errorf("%s: %v, %v", c.name, got, err)
		}
	}
}

// TestFloorDies: what the program complained of is in the error, whenever it ended, and where the caller wants it.
func TestFloorDies(t *testing.T) {
	for _, text := range []string{"read name; echo floor: cuInit: 100 >&2; exit 3", "echo floor: cuInit: 100 >&2; exit 3"} {
		var stderr strings.Builder
		f, err := StartFloor(script(t, text), "", &stderr)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.Ask("busy")
		f.Stop()
		if err == nil || !strings.Contains(err.Error(), "busy") || !strings.Contains(err.Error(), `exit status 3; it said "floor: cuInit: 100"`) {
			t.Errorf("%s: error %v", text, err)
		}
		if stderr.String() != "floor: cuInit: 100\n" {
			t.Errorf("%s: complaints %q", text, stderr.String())
		}
	}
	if _, err := StartFloor("/nowhere/floor", "", nil); err == nil {
		t.Error("started what is not there")
	}
}

// TestMedian: the middle one, of an even number the upper.
func TestMedian(t *testing.T) {
	if a, b := Median([]float64{3, 1, 2}), Median([]float64{4, 1, 3, 2}); a != 2 || b != 3 {
		t.Errorf("medians %v and %v", a, b)
	}
}
