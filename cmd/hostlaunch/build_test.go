package main

import (
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/hostlaunch/cuda/libcuda"
)

// TestVersion: --version says in a line what was built, by what, and how the driver is called.
func TestVersion(t *testing.T) {
	var out, complaints strings.Builder
	if status := execute([]string{"--version"}, &out, &complaints); status != 0 || complaints.Len() > 0 {
		t.Fatalf("exit status %d, %q", status, complaints.String())
	}
	platform := runtime.GOOS + "/" + runtime.GOARCH
	for _, want := range []string{"hostlaunch ", runtime.Version(), platform, "driver called through " + libcuda.Build + "\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q lacks %q", out.String(), want)
		}
	}
}

// TestVersionOf: a release by its version, and a build in the repository by its commit.
func TestVersionOf(t *testing.T) {
	info := func(version string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Version: version}, Settings: settings}
	}
	commit, changed := debug.BuildSetting{Key: "vcs.revision", Value: "abc"}, debug.BuildSetting{Key: "vcs.modified", Value: "true"}
	for want, got := range map[string]string{
		"v1.2.3":                   versionOf(info("v1.2.3", commit, changed), true),
		"(devel)":                  versionOf(info("(devel)"), true),
		"(devel) abc":              versionOf(info("(devel)", commit), true),
		"(devel) abc with changes": versionOf(info("(devel)", commit, changed), true),
		"version unknown":          versionOf(nil, false),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
