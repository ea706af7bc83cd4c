package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/hostlaunch/cuda/libcuda"
)

// buildReport is how this program was built.
type buildReport struct {
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Calls    string `json:"calls"` // how the driver is called: cgo, purego or none
	Version  string `json:"version"`
}

func thisBuild() buildReport {
	return buildReport{
		Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Calls: libcuda.Build, Version: versionOf(debug.ReadBuildInfo()),
	}
}

func (b buildReport) String() string {
	return fmt.Sprintf("%s, %s, %s, driver called through %s", b.Version, b.Go, b.Platform, b.Calls)
}

// versionOf is the module's version, and the commit where the version does not tell: in a build within the repository.
func versionOf(info *debug.BuildInfo, known bool) string {
	if !known || info.Main.Version == "" {
		return "version unknown"
	}
	v := info.Main.Version
	if v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			v += " " + s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			v += " with changes"
		}
	}
	return v
}
