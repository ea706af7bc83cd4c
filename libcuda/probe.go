//go:build linux && (amd64 || arm64)

package libcuda

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/driver"
)

// Probe looks for the NVIDIA driver as Open does, starts it, and tells what it is. Like Open it sets CUDA_DEVICE_MAX_CONNECTIONS,
// and its error is an [*OpenError]: then Found has the optional functions, none of which is present, and nothing else.
func Probe() (Found, error) {
	nv := &nvidia{}
	lib, path, err := findAt(places())
	if err == nil {
		err = nv.resolve(lib)
	}
	if err != nil {
		return Found{Optional: (&nvidia{}).optional()}, err
	}
	v, r := nv.DriverGetVersion()
	if r != driver.Success {
		return Found{Optional: (&nvidia{}).optional()}, openError(cuda.Code(r), nil, "", "%s does not tell its version", path)
	}
	return Found{Path: path, File: fileAt(lib.start), Version: cuda.Version(v), Optional: nv.optional()}, nil
}

// optional lists the functions that a driver may lack.
func (nv *nvidia) optional() (list []Function) {
	for f, s := range symbols {
		if s.since != 0 {
			list = append(list, Function{s.name, cuda.Version(s.since), nv.fns[f] != 0})
		}
	}
	return list
}

// fileAt is the file that is mapped at an address of this process, or "".
func fileAt(address uintptr) string {
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return ""
	}
	defer maps.Close()
	return mappedAt(maps, address)
}

// mappedAt looks an address up in a listing like that of /proc/self/maps.
func mappedAt(maps io.Reader, address uintptr) string {
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		var from, to uintptr
		if n, _ := fmt.Sscanf(lines.Text(), "%x-%x", &from, &to); n != 2 || address < from || address >= to {
			continue
		}
		if i := strings.IndexByte(lines.Text(), '/'); i >= 0 {
			return filepath.Clean(lines.Text()[i:])
		}
		return ""
	}
	return ""
}
