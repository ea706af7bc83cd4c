package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestGPURunStops: the GPU bundle's script runs nothing where doctor finds no GPU, unless it is told to go on.
func TestGPURunStops(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil || runtime.GOOS == "windows" {
		t.Skip("needs bash")
	}
	script, err := os.ReadFile("../../scripts/gpu-run.sh")
	if err != nil {
		t.Fatal(err)
	}
	const tool = "#!/bin/sh\n[ \"$1\" = doctor ] && echo examined && exit $DOCTOR\necho ran $1\n"
	dir := t.TempDir()
	for name, text := range map[string]string{"run.sh": string(script), "hostlaunch.cgo": tool} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		doctor, require string
		status          int
		ran             bool
	}{{"0", "", 0, true}, {"2", "", 2, false}, {"2", "1", 2, false}, {"2", "0", 1, true}, {"3", "", 1, true}} {
		cmd := exec.Command(bash, filepath.Join(dir, "run.sh"), filepath.Join(dir, "results"), "tool")
		cmd.Env = append(os.Environ(), "BUILDS=cgo", "DOCTOR="+c.doctor, "HOSTLAUNCH_REQUIRE_GPU="+c.require)
		out, _ := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != c.status || strings.Contains(string(out), "ran demo") != c.ran || !strings.Contains(string(out), "examined") {
			t.Errorf("%+v: exit status %d\n%s", c, got, out)
		}
	}
}
