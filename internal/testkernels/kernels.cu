// Kernels of the conformance suite. Compiled to kernels.ptx by scripts/ptx.sh; their Go twins are in twins.go.
typedef unsigned char u8;
typedef unsigned short u16;
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

// stamp writes the device's nanosecond clock to *at.
extern "C" __global__ void stamp(u64 *at) { *at = now(); }

// append writes value behind the values already in log: log[0] counts them.
extern "C" __global__ void append(u64 *log, u64 value) {
  u64 i = atomicAdd(log, 1ull);
  log[1 + i] = value;
}

// store writes value to *at, which may be an illegal address.
extern "C" __global__ void store(u32 *at, u32 value) { *at = value; }

// increment adds 1 to each of n numbers.
extern "C" __global__ void increment(u32 *v, u32 n) {
  u32 i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) v[i] += 1;
}

struct pair {
  u32 a;
  u64 b;
};

// arguments writes what it received, each widened to 8 bytes, to out[0..8).
extern "C" __global__ void arguments(u8 a, u16 b, u32 c, u64 d, float e, double f, pair p, u64 *out) {
  out[0] = a;
  out[1] = b;
  out[2] = c;
  out[3] = d;
  out[4] = (u64)e;
  out[5] = (u64)f;
  out[6] = p.a;
  out[7] = p.b;
}

// nothing does nothing.
extern "C" __global__ void nothing() {}
