package main

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/testkernels"
	"github.com/hostlaunch/cuda/softcuda"
)

// TestDemo: a small pipeline on the software device, and what it says at the end.
func TestDemo(t *testing.T) {
	t.Setenv(driverChoice, "software")
	var out, complaints strings.Builder
	args := []string{"demo", "--batches=23", "--count=10007", "--every=5", "--compute=1ms"}
	if status := execute(args, &out, &complaints); status != 0 || complaints.Len() > 0 {
		t.Fatalf("exit status %d, complaints %q\n%s", status, complaints.String(), out.String())
	}
	for _, want := range []string{
		`on Software Device 0 \(software driver, CUDA 13\.0\)`,
		`batches +23, each checked by a host function`,
		`numbers +230161, of which 0 were wrong`,
		`replays of the graph +23\n`,
		`tasks +4\n`,
		`copied to slices +920644 of 920644 bytes`,
		`kernels had to take 23ms`,
	} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("the output lacks %s:\n%s", want, out.String())
		}
	}
}

// TestFallBack: without a GPU, and without having asked for the software device, one is told in one line.
func TestFallBack(t *testing.T) {
	t.Setenv("HOSTLAUNCH_LIBCUDA", "/nowhere/libcuda.so.1")
	for choice, want := range map[string]string{
		"":         "no usable GPU, so this runs on the software device; hostlaunch doctor says why\n",
		"software": "",
	} {
		t.Setenv(driverChoice, choice)
		var stderr strings.Builder
		drv, dev, err := openDevice(&stderr)
		if err != nil || drv.Name() != "software" || dev.Ordinal() != 0 || stderr.String() != want {
			t.Errorf("%q: %v, stderr %q", choice, err, stderr.String())
		}
		drv.Close()
	}
	t.Setenv(driverChoice, "nvidia")
	if _, _, err := openDevice(new(strings.Builder)); !errors.Is(err, cuda.ErrNotFound) && !errors.Is(err, cuda.ErrNotSupported) {
		t.Errorf("nvidia: %v", err)
	}
}

// TestDemoFinds: a kernel that does not do its work is noticed.
func TestDemoFinds(t *testing.T) {
	kernels := testkernels.Twins()
	kernels["increment"] = func(*softcuda.Launch) {}
	drv := softcuda.New(softcuda.Options{Kernels: kernels})
	defer drv.Close()
	dev, err := drv.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	p, err := newPipeline(dev, demoOptions{batches: 3, count: 100, every: 2})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if err := p.queue(i); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	if err := p.watch(&out); err != nil {
		t.Fatal(err)
	}
	if p.wrong.Load() != 300 || p.verdict() == nil {
		t.Errorf("%d wrong numbers, verdict %v", p.wrong.Load(), p.verdict())
	}
}

// TestDemoTooMuch: what does not fit is told by the name of its flag, before memory is taken for it.
func TestDemoTooMuch(t *testing.T) {
	t.Setenv(driverChoice, "software")
	for arg, want := range map[string]string{
		"--count=100000000000": "--count at most 4294967295",
		"--count=4294967295":   "--count: that takes 16.0 GiB, and device 0 has 8.0 GiB",
		"--batches=1000001":    "--batches is at most 1000000",
	} {
		var out, complaints strings.Builder
		status := execute([]string{"demo", arg}, &out, &complaints)
		if status != 1 || !strings.Contains(complaints.String(), want) || strings.Count(complaints.String(), "\n") != 1 {
			t.Errorf("%s: exit status %d, %q", arg, status, complaints.String())
		}
	}
}

// TestDemoMisuse: flags that make no sense.
func TestDemoMisuse(t *testing.T) {
	for _, arg := range []string{"--batches=0", "--count=-1", "--every=0", "--compute=-1s", "--compute=soon"} {
		var out, complaints strings.Builder
		if status := execute([]string{"demo", arg}, &out, &complaints); status != 1 || complaints.Len() == 0 || out.Len() > 0 {
			t.Errorf("%s: exit status %d, %q, %q", arg, status, complaints.String(), out.String())
		}
	}
}
