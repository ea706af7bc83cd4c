// Kernels that set the value of a conditional node of the graph that they run in. Compiled to conditional.ptx by
// scripts/ptx.sh; their Go twins are in twins.go.
#include <cuda_runtime.h>

// setcond sets the value to v.
extern "C" __global__ void setcond(cudaGraphConditionalHandle h, unsigned v) { cudaGraphSetConditional(h, v); }

// countdown takes 1 from *n, and sets the value to 1 as long as something is left, and then to 0.
extern "C" __global__ void countdown(cudaGraphConditionalHandle h, int* n) { cudaGraphSetConditional(h, --*n > 0); }
