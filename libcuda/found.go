package libcuda

import "github.com/hostlaunch/cuda"

// Found is what [Probe] found out about the NVIDIA driver of this machine.
type Found struct {
	Path     string       // the library as it was looked for
	File     string       // the library's file, symbolic links resolved; "" if the system does not tell
	Version  cuda.Version // the CUDA version that the driver implements
	Optional []Function   // what not every driver has
}

// Function is a function of the driver that older drivers lack. What needs it is cuda.ErrNotSupported there, or does without.
type Function struct {
	Name    string       // as NVIDIA's reference has it
	Since   cuda.Version // the CUDA version that brought it
	Present bool         // this driver has it
}
