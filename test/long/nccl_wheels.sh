#!/usr/bin/env bash
# Real NCCL as NVIDIA ships it, without a GPU: fetches five releases (250 MB each, kept in NI_NCCL_WHEELS, default
# build/nccl-wheels) and runs gpu_nccl_wheels on them, some 5 minutes. 77 where there is no pip, no network or no x86-64.
. "$(dirname "$0")/../lib/case.sh"
dir=${NI_NCCL_WHEELS:-$PWD/build/nccl-wheels}
[ "$(uname -m)" = x86_64 ] || skip "no_device.so is for x86-64"
if ! command -v unzip >/dev/null || ! python3 -m pip --version >/dev/null 2>&1; then skip "pip or unzip is missing"; fi
mkdir -p "$dir"
for release in 2.27.7 2.28.9 2.29.7 2.30.7 2.32.3; do
  [ -e "$dir/$release/nvidia/nccl/lib/libnccl.so.2" ] && continue
  echo "fetching NCCL $release ..."
  rm -rf "$dir/fetch"
  python3 -m pip download -q --no-deps --only-binary=:all: --platform manylinux_2_18_x86_64 --platform manylinux2014_x86_64 -d "$dir/fetch" \
    "nvidia-nccl-cu12==$release" || skip "NCCL $release could not be fetched"
  unzip -q -d "$dir/$release" "$dir"/fetch/*.whl
  rm -rf "$dir/fetch"
done
NI_NCCL_WHEELS=$dir test/runner.sh gpu_nccl_wheels
