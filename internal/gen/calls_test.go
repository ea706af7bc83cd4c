package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestBadRows: a slip in the table is refused, not generated.
func TestBadRows(t *testing.T) {
	for _, c := range []struct{ rows, want string }{
		{"cuInit", "want FUNCTION VERSION SINCE METHOD"},
		{"init 2000 - Init", "no function of the driver"},
		{"cuInit 2k - Init", "invalid syntax"},
		{"cuInit 2000 12 Init", "want MAJOR.MINOR"},
		{"cuInit 2000 - Init flags", "want name:type"},
		{"cuInit 2000 - Init flags:u32", "no such type"},
		{"cuInit 2000 - Init >name:string", "no such type"},
		{"cuInit 2000 - Init flags:float32", "no such type"},
		{"cuInit 2000 - Init x:pointer y:string z:pointer w:pointer", "more than an ffi.Call holds"},
		{"cuInit 2000 - Init c:int", "is taken"},
		{"cuInit 2000 - A\ncuInit 2000 - B", "named twice"},
		{"cuInit 2000 - A\ncuExit 2000 - A", "named twice"},
	} {
		var rows [][]string
		for row := range strings.SplitSeq(c.rows, "\n") {
			rows = append(rows, strings.Fields(row))
		}
		if _, err := calls(rows); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %s", c.rows, err, c.want)
		}
	}
}

// TestAgainstHeader checks every row against cudaTypedefs.h: that the version is one of the function's, that the version
// brought the arguments that stand in the table, and that an optional function is no older than it says. The header is
// NVIDIA's and not part of this repository: the test needs HOSTLAUNCH_CUDA_INCLUDE, the directory that holds it.
func TestAgainstHeader(t *testing.T) {
	dir := os.Getenv("HOSTLAUNCH_CUDA_INCLUDE")
	if dir == "" {
		t.Skip("set HOSTLAUNCH_CUDA_INCLUDE to the directory of cudaTypedefs.h (CUDA 13.0 or newer)")
	}
	header, err := os.ReadFile(filepath.Join(dir, "cudaTypedefs.h"))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := read("calls.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		c, err := parseCall(row)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.checkAgainst(header); err != nil {
			t.Error(err)
		}
	}
}

func (c *call) checkAgainst(header []byte) error {
	declared := map[int]string{}
	for _, m := range regexp.MustCompile(`\*PFN_`+c.symbol()+`_v(\d+)\)\(([^)]*)\)`).FindAllSubmatch(header, -1) {
		version, _ := strconv.Atoi(string(m[1]))
		declared[version] = string(m[2])
	}
	if c.version > newest(header) {
		return nil // newer than the header: nothing to check against
	}
	params, ok := declared[c.version]
	if len(declared) == 0 && c.version > newest(header) {
		return nil // this header is too old to tell
	}
	if !ok {
		return fmt.Errorf("%s has no version %d, but %v", c.function, c.version, declared)
	}
	list := strings.Split(params, ",")
	if params == "void" {
		list = nil
	}
	if len(list) != len(c.args) {
		return fmt.Errorf("%s takes (%s)", c.function, params)
	}
	for i, a := range c.args {
		if !a.matches(list[i]) {
			return fmt.Errorf("%s: %s is no %s", c.function, a.typ, list[i])
		}
	}
	if required := c.since == 0; required && c.version > 12000 || !required && c.since < c.version {
		return fmt.Errorf("%s came with %d: a driver of CUDA 12.0 lacks it", c.function, c.version)
	}
	return nil
}

// newest is the newest version that the header declares any function of.
func newest(header []byte) int {
	latest := 0
	for _, m := range regexp.MustCompile(`\*PFN_\w+_v(\d+)\)`).FindAllSubmatch(header, -1) {
		version, _ := strconv.Atoi(string(m[1]))
		latest = max(latest, version)
	}
	return latest
}

// cTypes are the C types that a type of the table stands for, without const.
var cTypes = map[string][]string{
	"int": {"int", "size_t"}, "int32": {"int", "CUdevice_attribute", "CUstreamAttrID"}, "uint8": {"unsigned char"}, "uint16": {"unsigned short"},
	"uint32": {"unsigned int", "cuuint32_t", "CUdevResourceType"}, "uint64": {"unsigned long long", "size_t", "cuuint64_t"}, "uintptr": {"size_t", "CUhostFn", "void *", "CUstreamCallback"},
	"float32": {"float"}, "Device": {"CUdevice_v1", "CUdevice"}, "Context": {"CUcontext"}, "Stream": {"CUstream"}, "Event": {"CUevent"},
	"Module": {"CUmodule"}, "Function": {"CUfunction"}, "DevicePtr": {"CUdeviceptr_v2"}, "string": {"char *"},
	"pointer": {"void *", "char *", "CUstreamCaptureMode *", "CUgraphNodeParams *", "CUDA_HOST_NODE_PARAMS_v1 *", "CUDA_KERNEL_NODE_PARAMS_v2 *",
		"CUDA_GRAPH_INSTANTIATE_PARAMS *", "CUgraphExecUpdateResultInfo *", "CUjit_option *", "void **", "CUstreamCaptureStatus *", "cuuint64_t *",
		"CUstreamAttrValue_v1 *", "CUstreamBatchMemOpParams *", "CUgraph *", "CUgraphNode *", "CUgraphNode **", "CUgraphEdgeData *", "CUgraphEdgeData **", "size_t *", "CUdevResource*", "unsigned int*"},
	"Graph": {"CUgraph"}, "GraphNode": {"CUgraphNode"}, "GraphExec": {"CUgraphExec"}, "UserObject": {"CUuserObject"}, "Conditional": {"CUgraphConditionalHandle"},
	"CaptureMode": {"CUstreamCaptureMode"}, "CaptureStatus": {"CUstreamCaptureStatus"}, "NodeType": {"CUgraphNodeType"},
	"GreenContext": {"CUgreenCtx"}, "ResourceDesc": {"CUdevResourceDesc"},
}

// matches reports whether a declared parameter, as in "const void *srcHost", is what a says.
func (a argument) matches(param string) bool {
	typ := regexp.MustCompile(`\w+$`).ReplaceAllString(strings.TrimSpace(param), "")
	typ = strings.TrimSpace(strings.TrimPrefix(typ, "const "))
	if !a.out {
		return slices.Contains(cTypes[a.typ], typ)
	}
	pointee, ok := strings.CutSuffix(typ, "*")
	return ok && slices.Contains(cTypes[a.typ], strings.TrimSpace(pointee))
}
