#!/usr/bin/env bash
# The plugin built for aarch64: its symbols, its memory orders (orders.sh), its unit tests and a scripted host
# under emulation. Ends with "N passed, N failed". BUILD names the folder (default build-aarch64).
#
# zlib and cmocka for arm64 come into BUILD/sysroot by scripts/sysroot.sh.
set -u
cd "$(dirname "$0")/../.." || exit 2
BUILD=build-aarch64
triple=aarch64-linux-gnu
passed=0 failed=0 skipped=0 again=''

end() {
  echo "$(wc -w <<<"$again") second tries:$again"
  echo "$passed passed, $failed failed, $skipped skipped"
  [ $failed = 0 ]
  exit
}
skip() {
  echo "skip  $*"
  skipped=$((skipped + 1))
}
check() { # name command...
  local name=$1 rc=0
  shift
  timeout 120 "$@" >"$BUILD/$name.log" 2>&1 || rc=$?
  # as test/runner.sh does: emulation on a machine that others use is slow
  if [ $rc != 0 ] && [ $rc != 77 ]; then
    again="$again $name" rc=0
    mv "$BUILD/$name.log" "$BUILD/$name.first.log"
    timeout 120 "$@" >"$BUILD/$name.log" 2>&1 || rc=$?
  fi
  case $rc in
    0) passed=$((passed + 1)); echo "ok    $name" ;;
    77) skip "$name: $(tail -n 1 "$BUILD/$name.log")" ;;
    *) failed=$((failed + 1)); echo "FAIL  $name (exit $rc)"; tail -n 30 "$BUILD/$name.log" ;;
  esac
}

command -v $triple-gcc >/dev/null ||
  { skip "$triple-gcc is missing (apt-get install gcc-aarch64-linux-gnu)"; end; }
mkdir -p "$BUILD"
check memory_orders test/aarch64/orders.sh

sysroot=$PWD/$BUILD/sysroot
if ! scripts/sysroot.sh "$sysroot" zlib1g-dev zlib1g libcmocka-dev libcmocka0 >"$BUILD/sysroot.log" 2>&1; then
  skip "zlib and cmocka for arm64 cannot be had: $(tail -n 1 "$BUILD/sysroot.log" 2>/dev/null || echo no apt-get)"
  end
fi
lib=$sysroot/usr/lib/$triple

# OPT: with the assertions of a test build, as the sanitizers have them.
make -s -j"$(nproc)" BUILD="$BUILD" CC=$triple-gcc AR=$triple-ar CPPFLAGS="-I$sysroot/usr/include" \
  LDFLAGS="-L$lib" \
  ZLIB_A="$lib/libz.a" plugin "$BUILD/libplugin_test.a" "$BUILD/libformat.a" "$BUILD/test/host/host" \
  >"$BUILD/make.log" 2>&1 ||
  { echo "FAIL  build"; tail -n 30 "$BUILD/make.log"; failed=$((failed + 1)); end; }
passed=$((passed + 1))
echo "ok    build"
plugin=$BUILD/libnccl-profiler-inspector.so
check symbols env READELF=$triple-readelf scripts/check_symbols.sh "$plugin"

qemu=$(command -v qemu-aarch64 || command -v qemu-aarch64-static) ||
  { skip "qemu-aarch64 is missing (apt-get install qemu-user)"; end; }
emulated="$qemu -L /usr/$triple -E LD_LIBRARY_PATH=$lib:$sysroot/lib/$triple"

# Unit tests that name nothing of the exporter (that needs a C++ compiler for aarch64). First all are built,
# as many at a time as there are cores.
units=()
rm -rf "$BUILD/test/unit" && mkdir -p "$BUILD/test/unit"
for src in test/unit/plugin/test_*.c; do
  grep '"exporter/\|nccl_sim' "$src" >/dev/null && continue
  name=$(basename "$src" .c)
  units+=("$name")
  while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n; done
  $triple-gcc -std=c11 -D_GNU_SOURCE -O2 -g -fno-strict-aliasing -I. -Iinclude -I"$sysroot/usr/include" \
    -DNI_VERSION='"test"' \
    -DNI_GIT_REV='"test"' "$src" "$BUILD/libplugin_test.a" "$BUILD/libformat.a" -L"$lib" -lcmocka \
    "$lib/libz.a" -ldl -lpthread -lm \
    -o "$BUILD/test/unit/$name" >"$BUILD/$name.log" 2>&1 &
done
wait
for name in "${units[@]}"; do
  if [ ! -x "$BUILD/test/unit/$name" ]; then
    echo "FAIL  $name does not build"
    tail -n 20 "$BUILD/$name.log"
    failed=$((failed + 1))
    continue
  fi
  # shellcheck disable=SC2086
  check "$name" $emulated "$BUILD/test/unit/$name"
done

# A host that drives the plugin by callbacks from several threads, compared record by record.
hosted() { # name verbs...
  local name=$1 dir=$BUILD/host-$1
  shift
  rm -rf "$dir" && mkdir -p "$dir"
  cat >"$dir/run" <<EOF
set -e
export NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_DUMP_DIR=$dir/logs HOST_LOG=$dir/nccl.log $vars
$emulated $BUILD/test/host/host $plugin $dir/truth $*
python3 test/host/verify.py $dir/logs $dir/truth --end destroy
EOF
  check "$name" bash "$dir/run"
}
US=NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS
for us in 500 0 1000000; do
  vars="$US=$us"
  hosted "two_threads_$us" base 100000 init 0 duet 0 3000 0 duetp 0 500 0 self 0 20 fin 0
done
vars="$US=500"
hosted many_threads base 100000 init 0 init 1 init 2 bg duet 0 1500 0 bg duet 1 1500 0 ops 2 500 join fin 0 \
  fin 1 fin 2
hosted v4 iface 4 base 100000 init 0 ops 0 500 fin 0
hosted v5 iface 5 base 100000 init 0 ops 0 500 p2p 0 100 fin 0
end
