#!/usr/bin/env bash
# Spin models of the plugin's lock-free parts. Each must hold, and each of its broken variants must be
# refuted: a model that cannot fail says nothing. The variants are listed in the head of each model
# ("-DNAME").
#   test/model/run.sh [model...]
set -u
cd "$(dirname "$0")" || exit 2
command -v spin >/dev/null && command -v "${CC:=gcc}" >/dev/null || {
  echo "spin or a C compiler is missing (apt-get install spin gcc)"
  echo "0 passed, 0 failed, 1 skipped"
  exit 0
}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
passed=0 failed=0

# Searches the whole state space. 0: holds; 1: refuted; 2: neither, with its output.
search() { # model define
  local dir=$tmp/$1$2
  mkdir -p "$dir"
  cp "$1.pml" "$dir/"
  (cd "$dir" && spin ${2:+"$2"} -a "$1.pml" >spin.log 2>&1 && "$CC" -O1 -w -DSAFETY -DVECTORSZ=2048 -o pan pan.c >cc.log 2>&1 &&
    timeout 60 ./pan -m1000000 >pan.log 2>&1)
  if [ ! -s "$dir/pan.log" ]; then cat "$dir"/*.log; return 2; fi
  if grep -q 'errors: 0' "$dir/pan.log" &&
    ! grep -q 'max search depth too small\|out of memory' "$dir/pan.log"; then
    return 0
  fi
  if grep -q 'assertion violated' "$dir/pan.log"; then return 1; fi
  cat "$dir/pan.log"
  return 2
}

say() { # outcome what
  if [ "$1" = ok ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
  printf '%-5s %s\n' "$1" "$2"
}

for model in ${*:-$(ls ./*.pml | sed 's,^./,,; s,\.pml$,,')}; do
  search "$model" ''
  rc=$?
  states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' "$tmp/$model/pan.log" 2>/dev/null)
  if [ $rc = 0 ]; then say ok "$model holds ($states states)"
  else
    say FAIL "$model: the rule itself does not hold"
    grep -h 'assertion\|invalid' "$tmp/$model/pan.log"
    (cd "$tmp/$model" && spin -t -p "$model.pml" | tail -n 60)
  fi
  variants=$(sed -n '/\*\//q; s/.*\(-D[A-Z_]*\).*/\1/p' "$model.pml")
  [ -n "$variants" ] || say FAIL "$model names no broken variant"
  for v in $variants; do
    search "$model" "$v"
    case $? in
      1) say ok "$model $v is refuted" ;;
      0) say FAIL "$model $v holds: the model does not see this fault" ;;
      *) say FAIL "$model $v could not be searched" ;;
    esac
  done
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
