#!/usr/bin/env bash
# The plugin on real NCCL: builds what is missing, runs real collectives, checks the logs, prints one table
# with a verdict.
# What each row means: docs/validation.md. Runs unattended; every stage has its own time limit, and what is
# there when the whole time is up is kept.
#
#   scripts/gpu_validate.sh [--out DIR] [--part 1|2|3 | --stages a,b,...] [--seconds N] [--build DIR]
#                           [--nccl SO] [--cuda SO] [--layout L] [--no-mps] [--keep] [--fake]
#
#   --out DIR       table.txt, table.tsv, machine.txt, validation.md, recordings.tar.gz, details.tar.gz
#                   (default out/gpu)
#   --part N        a third of the stages, for a machine that runs a command for ten minutes at most: 1 what a
#                   log must be, 2 PyTorch and times, 3 the rest
#   --stages LIST   of: probe shapes record symmetric ends versions torch sweep many cost algos nccltests
#                   (default all, in this order)
#   --seconds N     no stage begins that could not end by then; default 540, so that the whole ends within ten
#                   minutes
#   --build DIR     built before (default: build, build-gpu of `make gpu-portable`, else make); the table
#                   names its commit
#   --nccl SO       default: the first of 2.27 or later that `nccl-inspector doctor --find-nccl` finds
#                   (NCCL_HOME, PyTorch's wheel, CUDA, system)
#   --cuda SO       instead of the CUDA driver of this machine: a stand-in, for tests
#   --layout L      hostid, multirank or gpus (2 ranks) instead of what is found to work (docs/validation.md)
#   --no-mps        do not try NVIDIA's MPS, which lets ranks on one GPU run at the same time
#   --keep          keep the logs of all stages in details.tar.gz, not only those of failed ones
#   --fake          on the fake NCCL of test/gpu/fake: tests the script, not the plugin
# Exit codes: 0 no row failed, 1 a row failed, 2 the tools could not be built, 64 wrong usage, 77 no GPU or no
# NCCL here.
set -u
cd "$(dirname "$0")/.." || exit 2
# the most telling first: time may be up
all=probe,shapes,record,symmetric,ends,versions,torch,sweep,many,cost,algos,nccltests
out=out/gpu stages=$all
seconds=540 build='' nccl='' standin='' forced='' mps=1 keep=0 fake=0
usage() { sed -n '2,/^set -u/p' "$0" | sed '$d;s/^# \{0,1\}//'; }
while [ $# -gt 0 ]; do
  case $1 in
    --out) out=${2:?--out DIR}; shift ;;
    --part)
      case ${2:?--part N} in
        1) stages=probe,shapes,record,symmetric,ends,versions ;;
        2) stages=probe,torch,sweep,many ;;
        3) stages=probe,cost,algos,nccltests ;;
        *) echo "gpu_validate: --part $2: accepted is 1, 2 or 3" >&2; exit 64 ;;
      esac
      shift ;;
    --stages) stages=${2:?--stages LIST}; shift ;;
    --seconds) seconds=${2:?--seconds N}; shift ;;
    --build) build=${2:?--build DIR}; shift ;;
    --nccl) nccl=${2:?--nccl SO}; shift ;;
    --cuda) standin=${2:?--cuda SO}; shift ;;
    --layout) forced=${2:?--layout L}; shift ;;
    --no-mps) mps=0 ;;
    --keep) keep=1 ;;
    --fake) fake=1 ;;
    --help | -h) usage; exit 0 ;;
    *) echo "gpu_validate: $1: not an option" >&2; usage >&2; exit 64 ;;
  esac
  shift
done
[[ $seconds =~ ^[0-9]+$ ]] || { echo "gpu_validate: --seconds $seconds: a number is expected" >&2; exit 64; }
for s in ${stages//,/ }; do
  case ,$all, in
    *,$s,*) ;;
    *) echo "gpu_validate: --stages: there is no stage '$s'" >&2; exit 64 ;;
  esac
done

# What an earlier run left must not be taken for this one's.
(cd "$out" 2>/dev/null && rm -f table.txt table.tsv machine.txt validation.md recordings.tar.gz details.tar.gz)

# ---- is there a GPU? ---------------------------------------------------------------------------------------
if [ $fake = 0 ] && [ -z "$standin" ] && ! ls /dev/nvidia[0-9]* /dev/dxg >/dev/null 2>&1 &&
  ! nvidia-smi -L >/dev/null 2>&1; then
  echo "gpu_validate: no NVIDIA GPU found: there is no /dev/nvidia* here and nvidia-smi lists none. Nothing was run."
  echo "gpu_validate: on a machine with one GPU, a compiler and NCCL 2.27 or later this script needs no other preparation."
  exit 77
fi

# ---- tools -------------------------------------------------------------------------------------------------
usable() { # build folder: everything there, and made for this system
  [ -e "$1/libnccl-profiler-inspector.so" ] && [ -e "$1/test/recorder.so" ] &&
    [ -e "$1/test/noop.so" ] || return 1
  "$1/test/gpu/gpu_drive" --help >/dev/null 2>&1 && "$1/nccl-inspector" --version >/dev/null 2>&1 || return 1
  "$1/nccl-sim" --help >/dev/null 2>&1 && { "$1/test/gpu/gpu_check" >/dev/null 2>&1; [ $? = 64 ]; }
}
if [ -z "$build" ]; then
  for b in build build-gpu; do usable $b && build=$b && break; done
  if [ -z "$build" ]; then
    echo "gpu_validate: building"
    make -s -j"$(nproc)" all tools || {
      echo "gpu_validate: the build failed. Where libraries are missing (zlib, libsimdjson), run 'make gpu-portable' on another" >&2
      echo "gpu_validate: machine and copy build-gpu/ here; it needs nothing but glibc 2.36 or later." >&2
      exit 2
    }
    build=build
  fi
fi
usable "$build" || { echo "gpu_validate: --build $build: not a whole build for this system (make all tools, or make gpu-portable)" >&2; exit 2; }
build=$(realpath "$build")
plugin=$build/libnccl-profiler-inspector.so
GPU=$build/test/gpu

cuda=(${standin:+--cuda "$standin"}) # else found by gpu_drive
if [ $fake = 1 ]; then
  nccl=$GPU/fake/libnccl.so.2 cuda=(--cuda "$GPU/fake/libcuda.so.1") mps=0
elif [ -z "$nccl" ]; then # an old one of the system must not hide that of PyTorch
  while read -r so; do
    nccl=${nccl:-$so}
    [ "$(timeout 60 "$GPU/gpu_drive" --version-of "$so" 2>/dev/null || echo 0)" -ge 22700 ] &&
      nccl=$so && break
  done < <("$build/nccl-inspector" doctor --find-nccl 2>/dev/null)
fi
[ -n "$nccl" ] ||
  { echo "gpu_validate: no libnccl.so.2 found; name one with --nccl, or set NCCL_HOME"; exit 77; }
release=$("$GPU/gpu_drive" --version-of "$nccl") || { echo "gpu_validate: $nccl cannot be loaded"; exit 77; }
[ "$release" -ge 22700 ] ||
  { echo "gpu_validate: $nccl is release $release; 2.27 or later is needed"; exit 77; }
version=$((release / 10000)).$((release / 100 % 100)).$((release % 100))

mkdir -p "$out" || exit 2
out=$(realpath "$out")
WORK=$(mktemp -d)
PYTHON=${PYTHON:-$(command -v python3 || command -v python)}
: >"$out/table.tsv"
t0=$SECONDS
. test/gpu/runs.sh
. test/gpu/stages.sh
trap finish EXIT
trap 'exit 1' INT TERM

machine >"$out/machine.txt"
cat "$out/machine.txt"
stage_probe
save
for s in ${stages//,/ }; do
  [ $s = probe ] && continue
  stage=$s
  if [ "$(rest)" -lt "$(needs "$s")" ]; then
    row info "$s" "not run" "$(rest) s were left of --seconds $seconds, it may need $(needs "$s"); --stages $s makes up for it"
    continue
  fi
  echo "== $s ($((SECONDS - t0)) s)"
  "stage_$s"
  save
done
exit 0
