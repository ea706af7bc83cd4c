//go:build linux && (amd64 || arm64)

package main

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/libcuda"
	"github.com/hostlaunch/cuda/softcuda"
)

// doctor runs the command and returns its report, read back from JSON, and what it prints for people.
func doctor(t *testing.T, status int) (*report, string) {
	t.Helper()
	for _, name := range []string{"CUDA_VISIBLE_DEVICES", "CUDA_LAUNCH_BLOCKING"} {
		t.Setenv(name, "") // has the test restore it
		os.Unsetenv(name)
	}
	t.Setenv(connections, "32")
	var text, machine, complaints strings.Builder
	if got := execute([]string{"doctor"}, &text, &complaints); got != status || complaints.Len() > 0 {
		t.Errorf("exit status %d, want %d; complaints %q\n%s", got, status, complaints.String(), text.String())
	}
	if got := execute([]string{"doctor", "--json"}, &machine, &complaints); got != status || complaints.Len() > 0 {
		t.Errorf("--json: exit status %d, want %d; complaints %q", got, status, complaints.String())
	}
	d := json.NewDecoder(strings.NewReader(machine.String()))
	d.DisallowUnknownFields()
	r := new(report)
	if err := d.Decode(r); err != nil {
		t.Fatalf("%v in %s", err, machine.String())
	}
	if r.Status != status || r.Build.Calls != libcuda.Build {
		t.Errorf("the report has status %d and build %q", r.Status, r.Build.Calls)
	}
	softwareWorks(t, r)
	for _, a := range r.Advice {
		if !strings.Contains(text.String(), a) {
			t.Errorf("the text lacks the advice %q", a)
		}
	}
	return r, text.String()
}

func softwareWorks(t *testing.T, r *report) {
	t.Helper()
	s := r.Software
	if s.Error != "" || s.Functions != trials || s.Latency == nil || s.Latency.Median <= 0 || s.Latency.P99 < s.Latency.Median {
		t.Errorf("software device: %+v", s)
	}
}

func (r *report) advises(t *testing.T, part string) {
	t.Helper()
	if !strings.Contains(strings.Join(r.Advice, "\n"), part) {
		t.Errorf("no advice with %q: %q", part, r.Advice)
	}
}

// TestDoctorWithoutDriver: no libcuda is there; the software device is.
func TestDoctorWithoutDriver(t *testing.T) {
	t.Setenv(driverChoice, "")
	t.Setenv("HOSTLAUNCH_LIBCUDA", "/nowhere/libcuda.so.1")
	r, text := doctor(t, statusNoGPU)
	if r.Driver.Usable || r.Driver.Code != "CUDA_ERROR_NOT_FOUND (500)" || len(r.Devices) != 0 {
		t.Errorf("driver %+v, devices %+v", r.Driver, r.Devices)
	}
	if want := []attempt{{"/nowhere/libcuda.so.1", "no such file"}}; !slices.Equal(r.Driver.Tried, want) {
		t.Errorf("tried %v, want %v", r.Driver.Tried, want)
	}
	r.advises(t, "HOSTLAUNCH_LIBCUDA names the only library that is tried; unset it to have the usual places searched.")
	r.advises(t, "use the software device")
	for _, want := range []string{"/nowhere/libcuda.so.1: no such file", "No usable GPU here (exit status 2)", "conditional nodes", "CUDA 12.3"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
}

// TestDoctorStub: the toolkit's stub answers that it is one.
func TestDoctorStub(t *testing.T) {
	path := fakeDriver{version: 13000, versionResult: 34, init: 34}.install(t)
	r, _ := doctor(t, statusNoGPU)
	if r.Driver.Usable || r.Driver.Code != "CUDA_ERROR_STUB_LIBRARY (34)" || !slices.Equal(r.Driver.Tried, []attempt{{path, "a stub"}}) {
		t.Errorf("driver %+v", r.Driver)
	}
	r.advises(t, "HOSTLAUNCH_LIBCUDA names the only library that is tried; unset it to have the usual places searched.")
}

// TestDoctorOldDriver: a driver of before CUDA 12.0 is told as such.
func TestDoctorOldDriver(t *testing.T) {
	fakeDriver{version: 11080}.install(t)
	r, _ := doctor(t, statusNoGPU)
	r.advises(t, "Install an NVIDIA driver for CUDA 12.0 or newer: 525.60.13 or later. HOSTLAUNCH_LIBCUDA names the only library that is tried")
}

// TestDoctorNoDevice: the driver is there and finds no GPU.
func TestDoctorNoDevice(t *testing.T) {
	fakeDriver{version: 13000, init: 100}.install(t)
	r, _ := doctor(t, statusNoGPU)
	if r.Driver.Usable || r.Driver.Code != "CUDA_ERROR_NO_DEVICE (100)" {
		t.Errorf("driver %+v", r.Driver)
	}
	r.advises(t, "Check that nvidia-smi lists a GPU, and that a container was started with it (--gpus all).")
}

// TestDoctorNotStarting: what the library knows of a refusal is told, and else where to look.
func TestDoctorNotStarting(t *testing.T) {
	for init, want := range map[int]string{
		803: "The library and the kernel module are of different drivers: restart the machine after an update, or update the container's.",
		304: "The driver is there and does not start. The system's log (dmesg) and nvidia-smi may say why.",
	} {
		fakeDriver{version: 13000, init: init}.install(t)
		r, _ := doctor(t, statusNoGPU)
		r.advises(t, want)
	}
}

// TestDoctorWell: two devices that run host functions, and what their driver has.
func TestDoctorWell(t *testing.T) {
	path := fakeDriver{version: 13000}.install(t)
	r, text := doctor(t, statusWell)
	if !r.Driver.Usable || r.Driver.Path != path || r.Driver.File != path || r.Driver.CUDA != "13.0" {
		t.Errorf("driver %+v", r.Driver)
	}
	if len(r.Devices) != 2 {
		t.Fatalf("%d devices", len(r.Devices))
	}
	for i, d := range r.Devices {
		if d.Ordinal != i || !strings.HasPrefix(d.Name, "Fake ") || d.Functions != trials || d.Latency == nil || d.MemoryBytes != 0x2345678901 {
			t.Errorf("device %+v", d)
		}
	}
	has := map[string]bool{}
	for _, f := range r.Features {
		has[f.Name] = f.Available
	}
	if !has["conditional nodes"] || has["SyncMode(Spin) by the driver"] {
		t.Errorf("features %v", has)
	}
	for _, want := range []string{"Fake 1", "141.1 GiB", "no: the library spins in its place", "All well"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
}

// TestDoctorOldFeatures: a driver of CUDA 12.0 is usable, and lacks every optional feature.
func TestDoctorOldFeatures(t *testing.T) {
	fakeDriver{version: 12000}.install(t)
	r, _ := doctor(t, statusWell)
	for _, f := range r.Features {
		if f.Available {
			t.Errorf("%s (CUDA %s) on CUDA 12.0", f.Name, f.Since)
		}
	}
	r.advises(t, "most of it came with CUDA 12.3")
}

// TestDoctorBroken: a device that fails is told, with a status of its own.
func TestDoctorBroken(t *testing.T) {
	fakeDriver{version: 13000, lost: 700}.install(t)
	r, text := doctor(t, statusBroken)
	for _, d := range r.Devices {
		if !strings.Contains(d.Error, "CUDA_ERROR_ILLEGAL_ADDRESS") {
			t.Errorf("device %+v", d)
		}
	}
	r.advises(t, "Device 1 does not run host functions")
	if !strings.Contains(text, "FAILED") {
		t.Errorf("the text does not say so:\n%s", text)
	}
}

// TestDoctorIdle: a driver that says all is done, and has run nothing.
func TestDoctorIdle(t *testing.T) {
	fakeDriver{version: 13000, idle: 1}.install(t)
	r, _ := doctor(t, statusBroken)
	for _, d := range r.Devices {
		if !strings.Contains(d.Error, "0 of 1 host functions have run") {
			t.Errorf("device %+v", d)
		}
	}
}

// TestDoctorWrongChoice: a HOSTLAUNCH_DRIVER that anycuda refuses is a fault, whatever else works.
func TestDoctorWrongChoice(t *testing.T) {
	t.Setenv("HOSTLAUNCH_LIBCUDA", "/nowhere/libcuda.so.1")
	t.Setenv(driverChoice, "gpu")
	r, _ := doctor(t, statusBroken)
	r.advises(t, `HOSTLAUNCH_DRIVER is "gpu"`)
}

// TestDoctorByChoice: without a GPU, what is advised goes by HOSTLAUNCH_DRIVER.
func TestDoctorByChoice(t *testing.T) {
	t.Setenv("HOSTLAUNCH_LIBCUDA", "/nowhere/libcuda.so.1")
	const unset, byThemselves = "Until then unset HOSTLAUNCH_DRIVER", "get it by themselves"
	for choice, want := range map[string]struct{ first, has, lacks string }{
		"":         {"HOSTLAUNCH_LIBCUDA names", byThemselves, unset},
		"nvidia":   {"HOSTLAUNCH_LIBCUDA names", unset, byThemselves},
		"software": {"Programs that open package anycuda run on the software device", "For a GPU: ", byThemselves},
	} {
		t.Setenv(driverChoice, choice)
		r, _ := doctor(t, statusNoGPU)
		r.advises(t, want.has)
		if all := strings.Join(r.Advice, "\n"); !strings.HasPrefix(all, want.first) || strings.Contains(all, want.lacks) {
			t.Errorf("HOSTLAUNCH_DRIVER=%s: %q", choice, r.Advice)
		}
	}
}

// TestFeaturesOfSoftware: the software device has what doctor says, whether or not there is a driver beside it.
func TestFeaturesOfSoftware(t *testing.T) {
	t.Setenv("HOSTLAUNCH_LIBCUDA", "/nowhere/libcuda.so.1")
	without, text := doctor(t, statusNoGPU)
	if strings.Contains(text, "NVIDIA driver  ") || !strings.Contains(text, "software device\n") {
		t.Errorf("the columns are wrong:\n%s", text)
	}
	drv := softcuda.New(softcuda.Options{})
	defer drv.Close()
	dev, err := drv.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	s, err := dev.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	g, err := dev.NewGraph()
	if err != nil {
		t.Fatal(err)
	}
	b, err := dev.NewGraphBuilder()
	if err != nil {
		t.Fatal(err)
	}
	try := map[string]func() error{
		"graphs by hand: AddNode, edges":  func() error { _, err := g.AddNode(cuda.EmptyParams()); return err },
		"conditional nodes":               func() error { _, err := g.NewCondition(); return err },
		"SM resources and green contexts": func() error { _, err := dev.SMResource(); return err },
		"Stream.Contexts":                 func() error { _, _, err := s.Contexts(); return err },
		"Stream.SMResource":               func() error { _, err := s.SMResource(); return err },
		"BeginRecapture":                  func() error { return b.BeginRecapture(g, cuda.CaptureGlobal) },
		"SyncMode(Spin) by the driver":    func() error { return cuda.HostLaunch(s, func() {}, cuda.SyncMode(cuda.Spin)) },
	}
	for _, f := range without.Features {
		if f.Available {
			t.Errorf("%s from a driver that is not there", f.Name)
		}
		if try[f.Name] != nil {
			if err := try[f.Name](); errors.Is(err, cuda.ErrNotSupported) == f.Software {
				t.Errorf("%s: doctor says %t, and the software device answers %v", f.Name, f.Software, err)
			}
			delete(try, f.Name)
		}
	}
	if len(try) > 0 {
		t.Errorf("no such features: %v", slices.Sorted(maps.Keys(try)))
	}
}

// TestFeaturesCoverTheOptional: each function that libcuda takes as optional belongs to exactly one feature, and no other does.
func TestFeaturesCoverTheOptional(t *testing.T) {
	t.Setenv("HOSTLAUNCH_LIBCUDA", "/nowhere/libcuda.so.1")
	found, _ := libcuda.Probe()
	optional := map[string]int{}
	for _, f := range found.Optional {
		optional[f.Name] = 0
	}
	for _, f := range optionalFeatures {
		for _, name := range f.Functions {
			if _, known := optional[name]; !known {
				t.Errorf("%s needs %s, which is not optional", f.Name, name)
			}
			optional[name]++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(optional)) {
		if optional[name] != 1 {
			t.Errorf("%s belongs to %d features", name, optional[name])
		}
	}
}

// TestSettings: what is said of each setting, and what counts as a problem.
func TestSettings(t *testing.T) {
	thp := func(text string) setting {
		path := filepath.Join(t.TempDir(), "enabled")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return transparentHugePages(path)
	}
	for i, c := range []struct {
		s       setting
		value   string
		note    string
		problem bool
	}{
		{gomaxprocs(1, 8), "1", "one processor", true},
		{gomaxprocs(4, 8), "4", "of 8 processors", false},
		{maxConnections(""), "", "sets it to 32", false},
		{maxConnections("32"), "32", "eight at most", false},
		{maxConnections("8"), "8", "tasks hold 7 streams", true},
		{maxConnections("2"), "2", "tasks hold one stream", true},
		{maxConnections("many"), "many", "from 1 to 32", true},
		{moduleLoading(""), "", "launch a kernel once", false},
		{moduleLoading("eager"), "eager", "with their module", false},
		{visibleDevices("", false), "", "all devices", false},
		{visibleDevices("", true), "", "hides every GPU", true},
		{visibleDevices("1", true), "1", "other devices are hidden", false},
		{launchBlocking("1"), "1", "waits for its kernel", true},
		{launchBlocking("0"), "0", "without waiting", false},
		{driverChosen("nvidia"), "nvidia", "never falls back", false},
		{driverChosen("software"), "software", "never looks", false},
		{driverChosen("x"), "x", "refuses", true},
		{thp("always [madvise] never\n"), "madvise", "asks for them", false},
		{thp("always madvise [never]\n"), "never", "page fault for every 4 KiB", true},
		{transparentHugePages("/nowhere"), "", "does not tell", false},
	} {
		if c.s.Value != c.value || c.s.Problem != c.problem || !strings.Contains(c.s.Note, c.note) {
			t.Errorf("%d: %+v, want %q, %t and a note with %q", i, c.s, c.value, c.problem, c.note)
		}
	}
}

// TestKernelModule: both forms of the file's first line that drivers write.
func TestKernelModule(t *testing.T) {
	for text, want := range map[string]string{
		"NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\n":              "550.54.15",
		"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (dvs-builder@U22)\n": "580.65.06",
		"something else\n": "",
	} {
		if got := moduleIn(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestMisuse: an unknown command and flag are told on stderr, with exit status 1.
func TestMisuse(t *testing.T) {
	for _, args := range [][]string{{"doktor"}, {"doctor", "--xml"}, {"doctor", "me"}} {
		var out, complaints strings.Builder
		if got := execute(args, &out, &complaints); got != 1 || !strings.HasPrefix(complaints.String(), "hostlaunch: ") {
			t.Errorf("%v: exit status %d, complaints %q", args, got, complaints.String())
		}
	}
}
