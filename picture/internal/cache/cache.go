// Package cache has Graphviz keep its compiled form in a folder of the user's own.
//
// go-graphviz compiles itself when the program starts, and keeps the result, which is machine code, in os.TempDir, where anybody could
// have put something else before. It looks for it while it is initialised; so TMPDIR leads elsewhere until then. That this package
// comes first is promised by the language: of packages that can be initialised, the one whose path sorts first is, this one needs
// only standard packages, and go-graphviz needs github.com/tetratelabs, which sorts behind this module.
package cache

import (
	"os"
	"path/filepath"
	"runtime"
)

const variable = "TMPDIR"

var former, was = os.LookupEnv(variable)

func init() {
	if runtime.GOOS != "windows" && runtime.GOOS != "js" { // on Windows it is the user's own; on js there is none
		os.Setenv(variable, folder())
	}
}

// folder is where the compiled form is kept; if the user has no such place, nowhere.
func folder() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return os.DevNull
	}
	dir = filepath.Join(dir, "hostlaunch")
	if os.MkdirAll(dir, 0o700) != nil {
		return os.DevNull
	}
	return dir
}

// Restore has TMPDIR as it was.
func Restore() {
	if was {
		os.Setenv(variable, former)
	} else {
		os.Unsetenv(variable)
	}
}
