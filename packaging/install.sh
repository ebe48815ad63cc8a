#!/usr/bin/env bash
# What `make install` puts where, and what `make uninstall` takes away again.
#   packaging/install.sh install|uninstall      in the root of the tree, with the variables below in the environment
#
# DESTDIR PREFIX BINDIR LIBDIR MANDIR UNITDIR   where; PREFIX and the others as they will be on the machine, DESTDIR before them
# BUILD    what was built        PROGRAMS  those that were        REPORT_DIR  the page, with the licences of what is in it
# MANIFEST=no   for packages, which have lists of their own. Else each file put and each folder made is noted in
#   PREFIX/share/nccl-inspector/installed, and uninstall goes by that list alone. A second install removes what the first one
#   brought and this one does not. Files are replaced by rename(2): a running job keeps the library that it has loaded.
set -euo pipefail
: "${DESTDIR=}" "${PREFIX:?}" "${BINDIR:?}" "${LIBDIR:?}" "${MANDIR:?}" "${UNITDIR:?}" "${BUILD:?}" "${REPORT_DIR:?}"
share=$PREFIX/share/nccl-inspector
doc=$PREFIX/share/doc/nccl-inspector
manifest=$share/installed
so=libnccl-profiler-inspector.so
put=() made=()

folder() { # PATH: made with its parents
  local p=$1 new=()
  while [ ! -d "$DESTDIR$p" ]; do
    new=("$p" "${new[@]}")
    p=$(dirname "$p")
  done
  for p in "${new[@]}"; do
    install -d -m 755 "$DESTDIR$p"
    made+=("$p")
  done
}
put() { # MODE FILE FOLDER [NAME]
  local to=$3/${4:-$(basename "$2")}
  folder "$3"
  install -m "$1" "$2" "$DESTDIR$to.new"
  mv -f "$DESTDIR$to.new" "$DESTDIR$to"
  put+=("$to")
}
second_name() { # NAME FILE: a link in LIBDIR to a file beside it
  ln -s "$2" "$DESTDIR$LIBDIR/$1.new"
  mv -fT "$DESTDIR$LIBDIR/$1.new" "$DESTDIR$LIBDIR/$1"
  put+=("$LIBDIR/$1")
}
tree() { # FOLDER TO: all in it; what runs stays so
  local f mode
  [ -d "$1" ] || return 0
  while IFS= read -r f; do
    mode=644
    [ ! -x "$1/$f" ] || mode=755
    put $mode "$1/$f" "$(realpath -ms "$2/$(dirname "$f")")"
  done < <(cd "$1" && find -L . -type f | LC_ALL=C sort)
}

everything() {
  local p f
  put 755 "$BUILD/$so" "$LIBDIR"
  second_name librccl-profiler-inspector.so $so # RCCL looks for `inspector` by this name
  for p in $PROGRAMS; do put 755 "$p" "$BINDIR"; done
  for f in ${PRIVATE_LIBS:-}; do put 644 "$f" "$PREFIX/lib/nccl-inspector"; done
  for f in "$BUILD"/man/*.[17]; do put 644 "$f" "$MANDIR/man${f##*.}"; done
  for p in nccl-inspector nccl-sim; do
    put 644 "$BUILD/completion/$p" "$PREFIX/share/bash-completion/completions"
    put 644 "$BUILD/completion/_$p" "$PREFIX/share/zsh/site-functions"
    put 644 "$BUILD/completion/$p.fish" "$PREFIX/share/fish/vendor_completions.d"
  done
  put 644 "$BUILD/nccl-inspector.pc" "$LIBDIR/pkgconfig"
  for f in README.md CHANGELOG.md LICENSE; do put 644 $f "$doc"; done
  tree docs "$doc/docs"
  tree "$REPORT_DIR/licences" "$doc/licences"
  for f in docs/*.sql docs/head.proto contrib/agent.conf; do put 644 "$f" "$share"; done
  put 755 scripts/demo.sh "$share"
  for f in schemas/*.schema.json; do put 644 "$f" "$share/schemas"; done
  for f in test/scenarios/*.scn; do put 644 "$f" "$share/scenarios"; done
  for p in contrib/grafana contrib/prometheus packaging/slurm packaging/helm; do tree $p "$share/$(basename $p)"; done
  put 644 "$BUILD/nccl-inspector-alerts.yml" "$share/prometheus" # with the addresses of this place
  case " $PROGRAMS " in *nccl-inspector-live*) put 644 "$BUILD/nccl-inspector-agent.service" "$UNITDIR" ;; esac
}

# Paths of the list, newest first. $1: d folders, f files.
noted() { [ ! -e "$DESTDIR$manifest" ] || sed -n "s/^$1 //p" "$DESTDIR$manifest" | tac; }
cache() { # the loader's, where a real installation changed what it holds
  [ -n "$DESTDIR" ] || [ "$(id -u)" != 0 ] || ! command -v ldconfig >/dev/null || ldconfig
}

case ${1:-} in
  install)
    mkdir -p "$DESTDIR/"
    mapfile -t before < <(noted f)
    mapfile -t made < <(noted d | tac)
    everything
    [ "${MANIFEST:-}" != no ] || exit 0
    folder "$share"
    put+=("$manifest")
    for p in "${before[@]}"; do
      [[ " ${put[*]} " == *" $p "* ]] || rm -f "$DESTDIR$p"
    done
    { printf 'd %s\n' "${made[@]}"; printf 'f %s\n' "${put[@]}"; } >"$DESTDIR$manifest.new"
    mv -f "$DESTDIR$manifest.new" "$DESTDIR$manifest"
    for p in $(noted d); do rmdir "$DESTDIR$p" 2>/dev/null || true; done # that only the former install needed
    cache
    if [ -n "$DESTDIR" ]; then exit 0; fi
    if [ "$(ldconfig -p 2>/dev/null | sed -n "s|^\s*$so .*=> ||p" | head -n 1)" = "$LIBDIR/$so" ]; then
      echo "installed; in a job's environment: NCCL_PROFILER_PLUGIN=inspector"
    else
      echo "installed; in a job's environment: NCCL_PROFILER_PLUGIN=$LIBDIR/$so"
    fi ;;
  uninstall)
    [ -e "$DESTDIR$manifest" ] || { echo "nothing of ours is installed here: there is no $DESTDIR$manifest"; exit 0; }
    mapfile -t folders < <(noted d)
    noted f | while IFS= read -r p; do rm -f "$DESTDIR$p"; done
    for p in "${folders[@]}"; do rmdir "$DESTDIR$p" 2>/dev/null || true; done # others may have put something there
    cache ;;
  *) echo "usage: $0 install|uninstall" >&2; exit 64 ;;
esac
