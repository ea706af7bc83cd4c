#!/usr/bin/env bash
# Builds everything that a GPU machine without Go needs, into a folder (out/gpu, unless told otherwise):
#
#   scripts/gpu-build.sh [folder]     on a machine with Go and a C compiler, of the GPU machine's architecture
#   <folder>/run.sh [results]         on the machine with the GPU, after copying the folder there
#
# The bundle holds the conformance suite, the benchmark, the command and the example in two builds, with cgo and without, and the sources
# of the C++ floor and of the probes, compiled there if nvcc is found, and of the kernels, for src/scripts/ptx.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-out/gpu}
rm -rf "$out"
mkdir -p "$out"
for build in cgo purego; do
  export CGO_ENABLED=$([ $build = cgo ] && echo 1 || echo 0)
  go test -c -ldflags='-s -w' -o "$out/conformance.$build" ./libcuda
  go build -ldflags='-s -w' -o "$out/bench.$build" ./internal/bench
  go build -ldflags='-s -w' -o "$out/hostlaunch.$build" ./cmd/hostlaunch
  go build -ldflags='-s -w' -o "$out/01-hostlaunch.$build" ./examples/01-hostlaunch
done
cp internal/bench/floor/floor.cpp internal/bench/probes/*.cpp internal/bench/peers/copies.py internal/testkernels/kernels.ptx "$out/"
cp scripts/gpu-run.sh "$out/run.sh"
mkdir -p "$out/src/scripts" "$out/src/internal/testkernels" "$out/src/examples/01-hostlaunch" "$out/src/examples/internal/kit"
cp scripts/ptx.sh "$out/src/scripts/" # which compiles what lies beside its own folder
cp internal/testkernels/*.cu "$out/src/internal/testkernels/"
cp examples/01-hostlaunch/kernels.cu "$out/src/examples/01-hostlaunch/"
cp examples/internal/kit/kernels.cu "$out/src/examples/internal/kit/"
du -sh "$out"
