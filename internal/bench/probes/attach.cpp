// How many host functions a driver runs a second, before and after the first cuStreamAttachMemAsync of the process.
//
//   nvcc -O2 -o attach attach.cpp -lcuda && ./attach
#include <cuda.h>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <time.h>

static void check(CUresult r, const char *what) {
  if (r != CUDA_SUCCESS) {
    fprintf(stderr, "attach: %s: %d\n", what, (int)r);
    exit(1);
  }
}
#define CHECK(call) check(call, #call)

static double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}

static std::atomic<long> count;
static void CUDA_CB count_one(void *) { count++; }

static void rate(const char *when, CUstream stream) {
  const int n = 3000;
  double start = now();
  for (int i = 0; i < n; i++) CHECK(cuLaunchHostFunc(stream, count_one, nullptr));
  CHECK(cuStreamSynchronize(stream));
  printf("| %s | %.0f |\n", when, n / (now() - start) * 1e9);
}

int main() {
  CUdevice device;
  CUcontext context;
  CUstream stream, other, later;
  CUdeviceptr memory;
  const size_t size = 1 << 20;
  CHECK(cuInit(0));
  CHECK(cuDeviceGet(&device, 0));
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  printf("| | host functions a second |\n|---|---|\n");
  rate("at first", stream);
  rate("again", stream);
  CHECK(cuMemAllocManaged(&memory, size, CU_MEM_ATTACH_GLOBAL));
  ((volatile char *)memory)[0] = 1;
  CHECK(cuMemsetD8Async(memory, 1, size, stream));
  rate("managed memory used by host and device", stream);
  CHECK(cuStreamCreate(&other, CU_STREAM_DEFAULT));
  CHECK(cuStreamAttachMemAsync(other, memory, 0, CU_MEM_ATTACH_HOST));
  CHECK(cuStreamSynchronize(other));
  rate("attached to the host, on another stream", stream);
  CHECK(cuStreamAttachMemAsync(other, memory, 0, CU_MEM_ATTACH_GLOBAL));
  CHECK(cuStreamSynchronize(other));
  rate("attached globally", stream);
  CHECK(cuMemFree(memory));
  CHECK(cuStreamDestroy(other));
  rate("memory and stream gone", stream);
  CHECK(cuStreamCreate(&later, CU_STREAM_NON_BLOCKING));
  rate("a new stream", later);
}
