#!/usr/bin/env bash
# make install and make uninstall: each file where it belongs, what is installed works from there by NCCL's
# short name, shells and man take what is theirs, and nothing is left behind, no folder either.
. "$(dirname "$0")/../../lib/case.sh"
BUILD=${BUILD#"$PWD"/}
mk() { env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS make -s BUILD="$BUILD" "$@"; }
all() { (cd "$1" && find . -mindepth 1 -printf '%y %m %P\n' | LC_ALL=C sort); }
same() { # WHAT EXPECTED FILE
  diff "$2" "$3" >"$TMP/diff" || { fail "$1"; cat "$TMP/diff"; }
}

# A prefix that others use, too.
root=$TMP/root
mkdir -p "$root/opt/ni/share/doc/other" "$root/opt/ni/lib"
echo text >"$root/opt/ni/lib/libother.so"
all "$root" >"$TMP/before"
mk install PREFIX=/opt/ni DESTDIR="$root" >"$TMP/out" 2>&1 || { fail "make install"; tail -n 20 "$TMP/out"; }
share=$root/opt/ni/share

# The list, from what the tree holds.
live=
[ ! -e "$BUILD/nccl-inspector-live" ] || live=1
{
  echo lib/libnccl-profiler-inspector.so
  printf 'bin/%s\n' nccl-inspector nccl-sim ${live:+nccl-inspector-live}
  "$BUILD/nccl-inspector" help --names | sed 's/\(.*\) .*/&\n\1/' | sort -u | tr ' ' - |
    sed 's|.*|share/man/man1/nccl-inspector-&.1|'
  printf 'share/man/%s\n' man1/nccl-inspector.1 man1/nccl-sim.1 man7/nccl-inspector.7 \
    man7/nccl-inspector-log-format.7 man7/nccl-inspector-plugin.7
  for p in nccl-inspector nccl-sim; do
    printf 'share/%s\n' bash-completion/completions/$p zsh/site-functions/_$p \
      fish/vendor_completions.d/$p.fish
  done
  echo lib/pkgconfig/nccl-inspector.pc
  [ -z "$live" ] || echo lib/systemd/system/nccl-inspector-agent.service
  printf 'share/doc/nccl-inspector/%s\n' README.md CHANGELOG.md LICENSE
  find docs -type f | sed 's|^|share/doc/nccl-inspector/|'
  [ ! -s "$BUILD/report/report_assets.tail" ] ||
    printf 'share/doc/nccl-inspector/licences/%s\n' echarts echarts-NOTICE echarts-d3 tslib zrender
  printf 'share/nccl-inspector/%s\n' installed agent.conf demo.sh head.proto queries.sql queries_counters.sql
  (cd test && ls scenarios/*.scn) | sed 's|^|share/nccl-inspector/|'
  (cd contrib && find grafana prometheus -type f) | sed 's|^|share/nccl-inspector/|'
  for kit in slurm helm; do
    [ ! -d packaging/$kit ] || (cd packaging && find -L $kit -type f) | sed 's|^|share/nccl-inspector/|'
  done
  (cd schemas && ls ./*.schema.json) | sed 's|^\./|share/nccl-inspector/schemas/|'
  echo lib/libother.so
} | LC_ALL=C sort >"$TMP/expected"
(cd "$root/opt/ni" && find . -type f | sed 's|^\./||' | LC_ALL=C sort) >"$TMP/there"
same "other files than expected" "$TMP/expected" "$TMP/there"
[ -z "$(find "$root" ! -type l -perm /022)" ] ||
  fail "others may write: $(find "$root" -perm /022 | head -n 3)"
pc=$root/opt/ni/lib/pkgconfig/nccl-inspector.pc
[ "$(sed -n 's/^Version: //p' "$pc")" = "$(sed -n 's/^NI_VERSION := //p' scripts/version.mk)" ] ||
  fail "the version in $(cat "$pc")"
grep -qx 'NCCL_PROFILER_PLUGIN=${libdir}/libnccl-profiler-inspector.so' "$pc" ||
  fail "what NCCL is to load is not in $(cat "$pc")"
[ -z "$live" ] ||
  grep -q '^ExecStart=/opt/ni/bin/nccl-inspector agent' \
  "$root/opt/ni/lib/systemd/system/nccl-inspector-agent.service" || fail "the agent's unit"

# RCCL looks for `inspector` under another name.
second=$root/opt/ni/lib/librccl-profiler-inspector.so
[ "$(readlink "$second")" = libnccl-profiler-inspector.so ] && [ -s "$second" ] ||
  fail "the second name is no link to the first"

# Used from there, from another folder, and by the short name of NCCL.
sim=$root/opt/ni/bin/nccl-sim
n=$(cd / && "$sim" --list-scenarios | wc -l)
[ "$n" = "$(ls test/scenarios/*.scn | wc -l)" ] || fail "the installed nccl-sim lists $n scenarios"
run=(env -u NCCL_PROFILER_PLUGIN LD_LIBRARY_PATH="$root/opt/ni/lib" NCCL_PROFILER_PLUGIN=inspector NCCL_INSPECTOR_ENABLE=1
  NCCL_INSPECTOR_DUMP_DIR="$TMP/logs")
(cd / && "${run[@]}" "$sim" --scenario p2p --quiet) >"$TMP/out" 2>&1 || { fail "nccl-sim"; tail -n 5 "$TMP/out"; }
"$root/opt/ni/bin/nccl-inspector" check "$TMP/logs" --quiet ||
  fail "no complete logs by NCCL_PROFILER_PLUGIN=inspector"
"${run[@]}" ASAN_OPTIONS=detect_leaks=0 "$root/opt/ni/bin/nccl-inspector" doctor --no-sim >"$TMP/out" 2>&1 || true
grep -q "^ok *plugin *$root/opt/ni/lib/libnccl-profiler-inspector.so loads" "$TMP/out" ||
  { fail "doctor"; cat "$TMP/out"; }

# Completion, as far as the shells are here.
shells=
bash -n "$share/bash-completion/completions/nccl-inspector" || fail "bash: syntax"
if command -v zsh >/dev/null; then
  shells+=" zsh"
  for f in "$share"/zsh/site-functions/_nccl-*; do zsh -n "$f" || fail "zsh: syntax of $f"; done
  complete_zsh() { # words...: what is said to zsh's own functions
    zsh -fc '_describe() { print -rl -- $list; }; _arguments() { print -rl -- "$@"; }; file=$1; shift; words=("$@") CURRENT=$#
      source $file' _ "$share/zsh/site-functions/_$1" "$@"
  }
  complete_zsh nccl-inspector che | grep -q '^check:are these logs' || fail "zsh: commands"
  complete_zsh nccl-inspector counters li | grep -q '^list:which NICs' || fail "zsh: counters"
  complete_zsh nccl-inspector counters list --js | grep -q '^--json\[JSON on' || fail "zsh: counters list"
  complete_zsh nccl-inspector summary --com | grep -q '^--compression=\[.*\]:.*:(.*zstd.*)$' ||
    fail "zsh: words of --compression"
  complete_zsh nccl-sim --li | grep -q '^--list-scenarios\[' || fail "zsh: nccl-sim"
fi
if command -v fish >/dev/null; then
  shells+=" fish"
  for f in "$share"/fish/vendor_completions.d/*.fish; do fish -n "$f" || fail "fish: syntax of $f"; done
  complete_fish() { HOME=$TMP XDG_CONFIG_HOME=$TMP XDG_DATA_HOME=$TMP fish -N -c "source $share/fish/vendor_completions.d/${1%% *}.fish; complete -C '$1'" 2>/dev/null | cut -f1 | tr '\n' ' '; }
  [ "$(complete_fish 'nccl-inspector che')" = 'check ' ] ||
    fail "fish: che: $(complete_fish 'nccl-inspector che')"
  [ "$(complete_fish 'nccl-inspector counters li')" = 'list ' ] || fail "fish: counters li"
  [ "$(complete_fish 'nccl-inspector check --ex')" = '--expect ' ] || fail "fish: check --ex"
  [ "$(complete_fish 'nccl-inspector summary --compression z')" = 'zstd ' ] || fail "fish: --compression z"
  [ "$(complete_fish 'nccl-sim --list-s')" = '--list-scenarios ' ] || fail "fish: nccl-sim"
fi

# Man pages, by whichever reader is here. None has a date.
readers=
if command -v mandoc >/dev/null; then
  readers+=" mandoc"
  mandoc -T lint -W warning "$share"/man/man[17]/* >"$TMP/out" 2>&1 || true
  ! grep -v 'missing date' "$TMP/out" | head -n 20 | grep . || fail "mandoc's warnings"
fi
if command -v man >/dev/null; then
  readers+=" man"
  for f in "$share"/man/man7/* "$share"/man/man1/nccl-inspector.1 "$share"/man/man1/nccl-sim.1; do
    LC_ALL=C.UTF-8 MANWIDTH=100 man --warnings -l "$f" >"$TMP/page" 2>"$TMP/out" || fail "man -l $f"
    [ ! -s "$TMP/out" ] || { fail "man: $f"; head -n 5 "$TMP/out"; }
    grep -q '^SEE ALSO' "$TMP/page" || fail "$f: no end"
  done
fi
# What the installed demo names at its end is a page that is there, and goes on with a real job; man finds the
# overview by its name.
sed -n '/^  # By its name where man/,/^  # Programs that/p' "$share/nccl-inspector/demo.sh" >"$TMP/ends.sh"
# shellcheck disable=SC2154 # last: of that part of the demo
ends=$(here=$share/nccl-inspector && . "$TMP/ends.sh" && echo "$last")
case $ends in
"man "*" goes on with a real job.")
  ends=${ends% goes on*}
  # shellcheck disable=SC2086
  if command -v man >/dev/null; then LC_ALL=C.UTF-8 $ends >"$TMP/page" 2>&1; else cp "${ends##* }" "$TMP/page"; fi || fail "the demo names '$ends', which is not there"
  grep -q 'NCCL_PROFILER_PLUGIN=' "$TMP/page" ||
    fail "the demo names '$ends', which does not go on with a real job" ;;
*) fail "the installed demo ends with: $ends" ;;
esac
if command -v man >/dev/null; then
  man -M "$share/man" nccl-inspector >"$TMP/page" 2>&1 || fail "man nccl-inspector"
  grep -q 'nccl-inspector(7)' "$TMP/page" || fail "man nccl-inspector does not lead to nccl-inspector(7)"
fi
grep -q 'NCCL_INSPECTOR_DUMP_DIR' "$share/man/man7/nccl-inspector-plugin.7" ||
  fail "a setting is not in nccl-inspector-plugin(7)"
grep -q 'coll_exec_time_us' "$share/man/man7/nccl-inspector-log-format.7" ||
  fail "a key is not in nccl-inspector-log-format(7)"

# Again, over an older one: what it had and this one has not goes; a running job keeps its library.
exec 8<"$root/opt/ni/lib/libnccl-profiler-inspector.so"
inode=$(stat -L -c %i /proc/$$/fd/8)
mkdir "$share/nccl-inspector/former"
echo old >"$share/nccl-inspector/former/file"
printf '%s\n' 'd /opt/ni/share/nccl-inspector/former' 'f /opt/ni/share/nccl-inspector/former/file' \
  >>"$share/nccl-inspector/installed"
mk install PREFIX=/opt/ni DESTDIR="$root" >"$TMP/out" 2>&1 || fail "a second make install"
(cd "$root/opt/ni" && find . -type f | sed 's|^\./||' | LC_ALL=C sort) >"$TMP/there"
same "other files after a second install" "$TMP/expected" "$TMP/there"
[ ! -e "$share/nccl-inspector/former" ] || fail "a folder of the older installation is left"
[ "$(stat -c %i "$root/opt/ni/lib/libnccl-profiler-inspector.so")" != "$inode" ] ||
  fail "the library was written over in place"
exec 8<&-

mk uninstall PREFIX=/opt/ni DESTDIR="$root" >/dev/null
all "$root" >"$TMP/after"
same "make uninstall leaves something, or took what is not ours" "$TMP/before" "$TMP/after"
grep -q 'nothing of ours is installed' < <(mk uninstall PREFIX=/opt/ni DESTDIR="$root") ||
  fail "a second make uninstall"
all "$root" >"$TMP/after"
same "a second make uninstall" "$TMP/before" "$TMP/after"

# For a package: no list, and a library folder of its own.
mk install PREFIX=/usr LIBDIR=/usr/lib/x MANIFEST=no DESTDIR="$TMP/package" >"$TMP/out" 2>&1 ||
  fail "make install MANIFEST=no"
[ -e "$TMP/package/usr/lib/x/librccl-profiler-inspector.so" ] || fail "MANIFEST=no: no second name"
[ ! -e "$TMP/package/usr/share/nccl-inspector/installed" ] &&
  [ -e "$TMP/package/usr/lib/x/libnccl-profiler-inspector.so" ] || fail "MANIFEST=no LIBDIR="
finish "$(wc -l <"$TMP/expected") files came and went; shells: bash$shells; readers of man pages:$readers"
