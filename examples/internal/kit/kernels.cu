typedef unsigned int u32;
typedef unsigned long long u64;

__device__ static u64 now() {
  u64 t;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
  return t;
}

// spin keeps its stream busy for ns nanoseconds.
extern "C" __global__ void spin(u64 ns) {
  u64 start = now();
  while (now() - start < ns) {
  }
}

// increment adds 1 to each of n numbers.
extern "C" __global__ void increment(u32 *v, u32 n) {
  u32 i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) v[i] += 1;
}
