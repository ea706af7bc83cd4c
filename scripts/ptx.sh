#!/usr/bin/env bash
# Compiles every kernels.cu of the repository to the kernels.ptx beside it. Needs nvcc (CUDA 12 or 13).
#
# nvcc writes the newest PTX version, which older drivers refuse to read, for the oldest target that it knows. The kernels use
# nothing new, so the header is lowered to PTX 6.4 for sm_52; ptxas checks the result.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-.} # where to write: the repository, unless told otherwise
find . -name kernels.cu -not -path './out/*' | while read -r source; do
  ptx=$out/${source%.cu}.ptx
  mkdir -p "$(dirname "$ptx")"
  nvcc -ptx -arch=compute_75 -o "$ptx" "$source"
  sed -i -e 's/^\.version.*/.version 6.4/' -e 's/^\.target.*/.target sm_52/' "$ptx"
  ptxas -arch=sm_75 -o /dev/null "$ptx"
  echo "$ptx"
done
