package main

import (
	"slices"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/libcuda"
)

// feature is something that not every driver has.
type feature struct {
	Name      string   `json:"name"`
	Since     string   `json:"since"`     // the CUDA version that brought it
	Available bool     `json:"available"` // from the NVIDIA driver
	Without   string   `json:"without"`   // what happens on a driver without it
	Functions []string `json:"functions"`
	Software  bool     `json:"software"` // the software device has it
}

const refused = "refused with ErrNotSupported"

// optionalFeatures are the features by the functions of the driver that they need. Since comes from libcuda's own table.
var optionalFeatures = []feature{
	{Name: "SetParams on nodes and executables", Without: refused,
		Functions: []string{"cuGraphNodeSetParams", "cuGraphExecNodeSetParams"}},
	{Name: "graphs by hand: AddNode, edges", Without: refused,
		Functions: []string{"cuGraphAddNode", "cuGraphGetEdges", "cuGraphAddDependencies", "cuGraphRemoveDependencies"}},
	{Name: "conditional nodes", Without: refused, Functions: []string{"cuGraphConditionalHandleCreate"}},
	{Name: "capture into a graph: BeginToGraph", Without: refused, Functions: []string{"cuStreamBeginCaptureToGraph"}},
	{Name: "CaptureInfo and capture dependencies", Without: refused,
		Functions: []string{"cuStreamGetCaptureInfo", "cuStreamUpdateCaptureDependencies"}},
	{Name: "kernels' names in pictures of graphs", Without: "pictures leave the names out",
		Functions: []string{"cuFuncGetName"}},
	{Name: "checked kernel arguments", Without: "Launch passes arguments unchecked", Functions: []string{"cuFuncGetParamInfo"}},
	{Name: "SM resources and green contexts", Without: refused, Functions: []string{
		"cuDeviceGetDevResource", "cuDevSmResourceSplitByCount", "cuDevResourceGenerateDesc", "cuGreenCtxCreate", "cuGreenCtxDestroy",
		"cuGreenCtxGetDevResource", "cuCtxFromGreenCtx", "cuStreamGetGreenCtx"}},
	{Name: "streams of green contexts", Without: refused, Functions: []string{"cuGreenCtxStreamCreate"}},
	{Name: "Stream.Contexts", Without: refused, Functions: []string{"cuStreamGetCtx"}},
	{Name: "Stream.DeviceOrdinal from the driver", Without: "the library asks by the stream's context", Functions: []string{"cuStreamGetDevice"}},
	{Name: "Stream.SMResource", Without: refused, Functions: []string{"cuStreamGetDevResource"}},
	{Name: "SyncMode(Spin) by the driver", Without: "the library spins in its place", Functions: []string{"cuLaunchHostFunc"},
		Software: true}, // which waits no differently, and takes the mode
	{Name: "BeginRecapture", Without: refused, Functions: []string{"cuStreamBeginRecaptureToGraph"}},
}

// features are the optional features, as a driver with these functions has them, and a software device of this version. Where no driver
// can be, there are none to tell of.
func features(functions []libcuda.Function, software cuda.Version) []feature {
	list := make([]feature, 0, len(optionalFeatures))
	for _, f := range optionalFeatures {
		var since cuda.Version
		f.Available = true
		for _, fn := range functions {
			if slices.Contains(f.Functions, fn.Name) {
				since = max(since, fn.Since)
				f.Available = f.Available && fn.Present
			}
		}
		if since != 0 {
			f.Since, f.Software = since.String(), f.Software || since <= software
			list = append(list, f)
		}
	}
	return list
}
