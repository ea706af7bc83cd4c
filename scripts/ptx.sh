#!/usr/bin/env bash
# Compiles every kernels.cu of the repository to the kernels.ptx beside it, and conditional.cu to conditional.ptx. Needs nvcc
# (CUDA 12.3 or later).
#
# nvcc writes the newest PTX version, which older drivers refuse to read, for the oldest target that it knows. The kernels use
# nothing new, so the header is lowered to PTX 6.4 for sm_52; conditional nodes came with CUDA 12.3, so what sets their values
# says PTX 8.3 for sm_70. ptxas checks the result.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-.} # where to write: the repository, unless told otherwise
find . \( -name kernels.cu -o -name conditional.cu \) -not -path './out/*' | while read -r source; do
  case $source in
  */conditional.cu) version=8.3 target=sm_70 ;;
  *) version=6.4 target=sm_52 ;;
  esac
  ptx=$out/${source%.cu}.ptx
  mkdir -p "$(dirname "$ptx")"
  nvcc -ptx -arch=compute_75 -o "$ptx" "$source"
  sed -i -e "s/^\.version.*/.version $version/" -e "s/^\.target.*/.target $target/" "$ptx"
  ptxas -c -arch=sm_75 -o /dev/null "$ptx" # -c: the driver links what sets a conditional's value
  echo "$ptx"
done
