#!/usr/bin/env bash
# Installs what is missing of the Debian/Ubuntu packages that a purpose needs.
#   scripts/install-deps.sh build|test|long
# Does nothing when all are there. Needs root or sudo only when something is missing. A package that the
# distribution does not have is passed over with one line, and the feature that wants it switches itself off
# in the build.
set -eu
need_build="gcc g++ make git ca-certificates zlib1g-dev libisal-dev libsimdjson-dev libzstd-dev libsnappy-dev libsqlite3-dev libdeflate-dev gnuplot-nox npm
  libmicrohttpd-dev libcurl4-gnutls-dev libncurses-dev libnghttp2-dev libgnutls28-dev"
need_test="$need_build libcmocka-dev clang libclang-rt-dev python3 python3-venv jq file binutils spin shellcheck
  openmpi-bin libopenmpi-dev mpich libmpich-dev iputils-ping chromium prometheus prometheus-node-exporter strace valgrind tmux qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross
  zsh fish mandoc man-db lintian rpm systemd
  slurmctld slurmd slurm-client"
need_long="$need_test mmdebstrap g++-aarch64-linux-gnu clang-tidy universal-ctags pmccabe"
case ${1:-build} in
  build) packages=$need_build ;;
  test) packages=$need_test ;;
  long) packages=$need_long ;;
  *) echo "usage: $0 build|test|long" >&2; exit 64 ;;
esac

present() {
  case $1 in
    # npm may come with Node.js from elsewhere; the compiler's runtime is versioned.
    npm) command -v npm >/dev/null ;;
    libclang-rt-dev) ls /usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer-*.a >/dev/null 2>&1 ;;
    chromium) command -v chromium >/dev/null || command -v chromium-browser >/dev/null ;;
    *) dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q 'install ok installed' ;;
  esac
}

missing=
for p in $packages; do present "$p" || missing="$missing $p"; done
[ -n "$missing" ] || exit 0
if ! command -v apt-get >/dev/null; then
  echo "install-deps: this is no Debian or Ubuntu; please install what corresponds to:$missing" >&2
  exit 0
fi
sudo=
if [ "$(id -u)" != 0 ]; then
  if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then sudo="sudo -n"; else
    echo "install-deps: missing:$missing" >&2
    echo "install-deps: run as root: apt-get install$missing" >&2
    exit 0
  fi
fi
echo "install-deps: installing$missing"
export DEBIAN_FRONTEND=noninteractive
$sudo apt-get update -qq
for p in $missing; do
  # Debian names the sanitizer and fuzzer runtime after the compiler's version.
  if [ "$p" = libclang-rt-dev ]; then
    v=$(apt-cache depends clang 2>/dev/null | sed -n 's/.*Depends: clang-\([0-9]*\).*/\1/p' | head -n 1)
    p=libclang-rt-$v-dev
  fi
  $sudo apt-get install -y -qq --no-install-recommends "$p" >/tmp/install-deps.$$ 2>&1 ||
    { echo "install-deps: $p cannot be installed here: $(grep -m1 '^E:' /tmp/install-deps.$$)" >&2; }
done
rm -f /tmp/install-deps.$$
