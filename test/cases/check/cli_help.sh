#!/usr/bin/env bash
# The words of the command line: help, man pages, completion and versions, all from the tables.
. "$(dirname "$0")/../../lib/case.sh"
inspector=$BUILD/nccl-inspector sim=$BUILD/nccl-sim
code() { # wanted exit code, command...; its output into $TMP/out
  local want=$1 rc=0
  shift
  "$@" >"$TMP/out" 2>&1 </dev/null || rc=$?
  [ $rc = "$want" ] || { fail "exit $rc, wanted $want: $*"; head -n 5 "$TMP/out"; }
}

# Help: every command in the list, its own help, with an example, the same by `help`.
code 0 "$inspector" --help
cp "$TMP/out" "$TMP/list"
grep -q '^While it runs' "$TMP/list" || fail "the list is not grouped"
mapfile -t commands < <("$inspector" help --names)
[ ${#commands[@]} -ge 12 ] || fail "only ${#commands[@]} commands"
for c in "${commands[@]}"; do
  grep -q "^  $c " "$TMP/list" || fail "$c is not in the list"
  # shellcheck disable=SC2206
  words=($c) # a name may be two
  code 0 "$inspector" "${words[@]}" --help
  cp "$TMP/out" "$TMP/own"
  for what in "Usage: nccl-inspector $c " '^Options:' '^Exit status:' '^  64  wrong usage' \
    "^  nccl-inspector $c"; do
    grep -q -- "$what" "$TMP/own" || fail "$c --help lacks: $what"
  done
  awk 'length($0) > 80 {exit 1}' "$TMP/own" || fail "$c --help is wider than 80 columns"
  for other in "help $c" "$c -h" "$c -?" "$c --hel" "$c --usage"; do
    # shellcheck disable=SC2086
    code 0 "$inspector" $other
    cmp -s "$TMP/out" "$TMP/own" || fail "$other is not $c --help"
  done
  # What is said is taken, by both spellings; what is not is refused by name. A thousand programs that start
  # and refuse say no more under a sanitizer, which is most of what they cost there.
  [ -z "${NI_VARIANT:-}" ] || options=()
  [ -n "${NI_VARIANT:-}" ] || mapfile -t options < <(grep -oE '^ +(-., )?--[a-z-]+' "$TMP/own" | grep -oE -- '--.*')
  for o in "${options[@]}"; do
    case $o in --help | --version) continue ;; esac
    # Behind its options a command stands, and no word of ours.
    if [ "$c" = "counters run" ] || [ "$c" = run ]; then
      code 64 "$inspector" "${words[@]}" "$o=x"
      grep -qE "unrecognized|invalid" "$TMP/out" && fail "$c: help has $o, but: $(head -n 1 "$TMP/out")"
      continue
    fi
    for spelt in "$o" "--$(tr - _ <<<"${o#--}")"; do
      code 64 "$inspector" "${words[@]}" "$spelt" x --nonsense
      grep -qE "unrecognized option '--nonsense'|^nccl-inspector $c: ($o=x: want |x: $c takes no)" \
        "$TMP/out" || fail "$c: help has $o, but: $(head -n 1 "$TMP/out")"
    done
  done
  code 64 "$inspector" "${words[@]}" --nonsense
  grep -qF "nccl-inspector $c: unrecognized option '--nonsense'" "$TMP/out" ||
    fail "$c --nonsense is not named"
done
# One name for each thing; earlier spellings are taken, and no help, list or completion has them.
code 0 "$inspector" counters diff --help
cp "$TMP/out" "$TMP/own"
code 0 "$inspector" counters compare --help
cmp -s "$TMP/out" "$TMP/own" || fail "counters compare is not counters diff"
{ "$inspector" help --names && "$inspector" counters --help && "$inspector" completion zsh && "$inspector" help summary; } >"$TMP/all"
grep -q 'counters diff' "$TMP/all" && grep -q -- '--node=NAME' "$TMP/all" ||
  fail "the names of today are not told"
! grep 'counters compare\|compare:' "$TMP/all" || fail "counters compare is told"
for c in summary check show trace convert; do
  "$inspector" help $c >"$TMP/all"
  ! grep -- '--host=' "$TMP/all" || fail "$c: --host is told beside --node"
  ! grep -q -- '--node=' "$TMP/all" || code 64 "$inspector" $c --host=x --nonsense
  ! grep -q -- '--node=' "$TMP/all" || grep -q "option '--nonsense'" "$TMP/out" ||
    fail "$c: --host is not taken any more"
done
{ "$inspector" help summary && "$inspector" help merge; } >"$TMP/all"
! grep -E -- '--(dataset|no-plots|no-html|no-csv|no-parquet|keep-scripts|usage|partition)' "$TMP/all" ||
  fail "summary, merge: earlier options are told"
for shell in bash zsh fish; do
  "$inspector" completion $shell >"$TMP/all"
  ! grep -E -- '(--|-l )(no-plots|no-html|no-csv|no-parquet|keep-scripts|usage)' "$TMP/all" ||
    fail "completion for $shell: earlier options are told"
done
# They are taken, also cut short, but a name that help has goes before.
code 64 "$inspector" summary --no-pl --no-h --no-csv --keep --dataset --nonsense
grep -qF "option '--nonsense'" "$TMP/out" ||
  fail "earlier options of summary are not taken: $(head -n 1 "$TMP/out")"
code 64 "$inspector" summary --no-p x
grep -qF "'--no-plots' '--no-parquet'" "$TMP/out" ||
  fail "an ambiguous earlier option does not name what it could be"
code 64 "$inspector" help nonsense
code 64 "$inspector" summary --no x
grep -qF "'--node' '--no-index'" "$TMP/out" || fail "an ambiguous option does not name what it could be"
code 64 "$inspector" summary --jobs=0 x
grep -qF -- '--jobs=0: want a number from 1 to 1024' "$TMP/out" || fail "a bad value is not named"
code 64 "$inspector" check -qz x
grep -qF "invalid option -- 'z'" "$TMP/out" || fail "a bad letter is not named"
code 64 "$inspector" trace logs -o
code 1 "$inspector" check --inp "$TMP/nowhere" -q
code 1 "$inspector" trace -o"$TMP/x.json" -- --nowhere
code 64 "$sim" --nonsense
code 64 "$sim"
code 64 "$sim" --scenario nowhere

# One version in all programs, whatever is asked for beside it.
version=$("$inspector" --version)
[[ $version =~ ^nccl-inspector\ [0-9.]+\ \([0-9a-z]+\)$ ]] || fail "version: $version"
for p in "$inspector -V" "$inspector check --version" "$sim --version" "$sim -V"; do
  [ "$($p | cut -d' ' -f2-)" = "${version#* }" ] || fail "$p: $($p)"
done

# Completion, as bash asks for it.
complete_at() { # words...: what the last one could become
  local script=nccl-inspector
  [ "$1" = nccl-sim ] && script=nccl-sim
  bash -c 'source "$1"; shift; COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); "$FUNCTION"; echo "${COMPREPLY[*]}"' \
    _ "$TMP/$script" "$@"
}
"$inspector" completion >"$TMP/nccl-inspector"
"$sim" --completion=bash >"$TMP/nccl-sim"
export FUNCTION=_nccl_inspector
[ "$(complete_at nccl-inspector su)" = summary ] || fail "completion: su"
[ "$(complete_at nccl-inspector help che)" = check ] || fail "completion: help che"
[ "$(complete_at nccl-inspector cou)" = counters ] || fail "completion: cou"
[ "$(complete_at nccl-inspector counters li)" = list ] || fail "completion: counters li"
[ "$(complete_at nccl-inspector help counters li)" = list ] || fail "completion: help counters li"
[ "$(complete_at nccl-inspector counters list --js)" = --json ] || fail "completion: counters list --js"
[ "$(complete_at nccl-inspector check --ex)" = --expect ] || fail "completion: check --ex"
[ "$(complete_at nccl-inspector summary --compression z)" = zstd ] || fail "completion: --compression z"
[ "$(complete_at nccl-inspector summary --compression = z)" = zstd ] || fail "completion: --compression=z"
[ "$(complete_at nccl-inspector logs/ --output_)" = '' ] || fail "completion: no command"
mkdir "$TMP/some.logs"
[ "$(complete_at nccl-inspector "$TMP/some.logs" --compression z)" = zstd ] ||
  fail "completion: a folder of logs in place of a command"
[ "$(complete_at nccl-inspector check lo)" = '' ] || fail "completion: files are bash's own"
[ "$(FUNCTION=_nccl_sim complete_at nccl-sim --list)" = --list-scenarios ] || fail "completion: nccl-sim"

# Man pages, as `make install` puts them (test/cases/build/build_install.sh looks at the rest of that).
if [ -n "${NI_VARIANT:-}" ]; then # its flags are another make's
  finish "${#commands[@]} commands: help, completion and parser agree; no man page was made"
fi
make -s man BUILD="${BUILD#"$PWD"/}" >"$TMP/out" 2>&1 || { fail "make man"; tail -n 20 "$TMP/out"; }
mapfile -t groups < <(printf '%s\n' "${commands[@]}" | sed -n 's/ .*//p' | sort -u)
[ "${#groups[@]}" -ge 2 ] || fail "groups of commands: ${groups[*]}"
for c in "${commands[@]}" "${groups[@]}"; do
  [ -s "$BUILD/man/nccl-inspector-${c// /-}.1" ] || fail "no man page of $c"
done
for c in "${commands[@]}"; do
  case $c in *\ *) grep -qF "\\fB${c//-/\\-}\\fR" "$BUILD/man/nccl-inspector-${c%% *}.1" || fail "$c is not in the man page of its group" ;; esac
done
# What the demo and the help call the overview is in both sections: it is found by its name, and leads on.
for page in nccl-inspector.1 nccl-inspector-counters.1; do
  grep -qx '.BR nccl-inspector (7),' "$BUILD/man/$page" || fail "$page does not name nccl-inspector(7)"
done
mkdir -p "$TMP/alone/bin"
cp "$sim" "$TMP/alone/bin/"
(cd "$TMP" && code 1 "$TMP/alone/bin/nccl-sim" --list-scenarios)
grep -qF "no scenarios in $TMP/alone/bin/../share/nccl-inspector/scenarios" "$TMP/out" ||
  fail "no scenarios: the folders are not named"

if command -v groff >/dev/null; then
  # pages from docs/ have characters that ASCII has not
  for f in "$BUILD"/man/*.1 "$BUILD"/man/nccl-inspector-plugin.7; do
    groff -ww -man -Tascii -P-cbou "$f" >"$TMP/page" 2>"$TMP/warnings" || fail "$f: groff"
    [ ! -s "$TMP/warnings" ] || { fail "$f:"; cat "$TMP/warnings"; }
    grep -q '^SEE ALSO' "$TMP/page" || fail "$f: no end"
  done
else
  echo "note: groff is missing: the man pages were not rendered"
fi
finish "${#commands[@]} commands: help, man page, completion and parser agree"
