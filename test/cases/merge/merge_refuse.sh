#!/usr/bin/env bash
# What merge refuses, by name and with nothing written: missing shards (exit 2), doubles, overlaps, other plans, other options,
# logs that were changed, files that were cut or changed in any byte, other files. With --allow-missing the result says what lacks.
set -euo pipefail
cd "$(dirname "$0")/../../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. test/lib/merge.sh
"${BUILD:-build}/test/host/loggen" "$work/logs" --ranks 6 --node 3 --ops 20 --format ours --p2p 10
p=$work/a.parts
shards a 5 --no-parquet "$work/logs"

# refused CODE PATTERN ARGS...: exits so, says so in one line, and writes nothing.
refused() {
  local code=$1 pattern=$2 rc=0
  shift 2
  rm -rf "$work/out" "$work/again"
  (cd "$work" && "$inspector" merge -q "$@" >said 2>errors) || rc=$?
  [ "$rc" = "$code" ] || fail "merge $*: exits $rc instead of $code: $(cat "$work/errors")"
  grep -qE -- "$pattern" "$work/errors" || fail "merge $*: '$(cat "$work/errors")' instead of '$pattern'"
  [ "$(wc -l <"$work/errors")" = 1 ] || fail "merge $*: several lines: $(cat "$work/errors")"
  [ ! -e "$work/out" ] || fail "merge $*: writes something"
}
to="--no-plots --no-html --output-dir $work/out"

# shellcheck disable=SC2086
{
  refused 2 'shards 2, 4-5 of 5 are missing: merge them too, or say --allow-missing' "$p/3" "$p/1" $to
  refused 2 'shard 5 of 5 is missing: merge it too' "$p/3" "$p/1" "$p/2" "$p/4" $to
  refused 1 "shard 3 of 5 is in $p/3 and in $p/3" "$p/3" "$p/1" "$p/3" $to
  "$inspector" merge --partial "$work/two" "$p/4" "$p/5" >/dev/null
  refused 1 "shard 4 of 5 is in $work/two and in $p/4" "$work/two" "$p/1" "$p/4" $to
  shards b 3 --no-parquet "$work/logs"
  refused 1 "$work/b.parts/1 is of 3 shards, $p/1 of 5" "$p/1" "$work/b.parts/1" $to
  shards c 5 --no-parquet --rank 0-3 "$work/logs"
  refused 1 "$work/c.parts/2 was made with other options than $p/1: filters" "$p/1" "$work/c.parts/2" $to
  log=$(find "$work/logs" -type f | sort | tail -n 1)
  touch -d 2020-01-01 "$log"
  shards d 5 --no-parquet "$work/logs"
  refused 1 "$work/d.parts/2 is of other logs than $p/1: .*$log was changed between the two" "$p/1" "$work/d.parts/2" $to
  cp "$log" "$work/logs/another.jsonl"
  shards e 5 --no-parquet "$work/logs"
  refused 1 "$work/e.parts/2 is of other logs than $p/1: .* (differs|is not in it)" "$p/1" "$work/e.parts/2" $to
  refused 1 "$log: no partial result" "$p/1" "$log" $to
  refused 1 "$work: a folder; which partial results?" "$p/1" "$work" $to
  refused 1 "$work/none: No such file" "$work/none" $to
  shards f 2 "$work/logs"
  mv "$work/f.parts/2.parquet" "$work/away"
  refused 1 "$work/f.parts/2.parquet/parquet_files: No such file or directory; it has the Parquet files of" "$work/f.parts/1" "$work/f.parts/2" $to
}
for options in '--shard 1/3' '--shard 4/3 --partial x' '--shard 0/3 --partial x' '--shard 1/0 --partial x' '--shard 1 --partial x' \
  '--partial x --dataset' '--partial x --output-dir y'; do
  rc=0
  # shellcheck disable=SC2086
  (cd "$work" && "$inspector" summary logs $options >/dev/null 2>errors) || rc=$?
  [ "$rc" = 64 ] && [ -s "$work/errors" ] && [ ! -e "$work/x" ] || fail "summary $options: exits $rc"
done

# With one missing: the ranks of the others alone, marked.
# shellcheck disable=SC2086
"$inspector" merge --allow-missing --json "$p/3" "$p/1" "$p/2" "$p/4" $to >"$work/said" 2>&1 && fail "--allow-missing: exits 0" || [ $? = 2 ]
python3 - "$work/said" <<'P' || fail "--allow-missing: the result does not say it"
import json, sys
s = json.load(open(sys.argv[1]))
assert s["complete"] is False and s["records"] > 0, s["records"]
assert s["input"]["problems_by"]["shards"] == 1 and any("1 shard missing: 5 of 5" in t for t in s["input"]["trouble"]), s["input"]
P

# Any byte: the first partial is refused, wherever it was cut and whatever was changed in it; nothing crashes.
python3 - "$inspector" "$p/2" "$work" <<'P' || failures=$((failures + 1))
import os, random, subprocess, sys
inspector, path, work = sys.argv[1:]
whole, r, bad = open(path, "rb").read(), random.Random(7), 0
def attempt(what, data):
    global bad
    name = os.path.join(work, "forged")
    open(name, "wb").write(data)
    p = subprocess.run([inspector, "merge", "--partial", os.path.join(work, "x"), name], capture_output=True, text=True)
    if p.returncode != 1 or not p.stderr.startswith("nccl-inspector merge: " + name) or os.path.exists(os.path.join(work, "x")):
        print("FAIL", what, p.returncode, p.stderr[:500])
        bad += 1
for k in sorted({0, 1, 11, 12, 27, 28, len(whole) - 1, *(r.randrange(len(whole)) for _ in range(15))}):
    attempt(f"cut at {k}", whole[:k])
for k in sorted({0, 8, 12, 16, 24, len(whole) - 1, *(r.randrange(len(whole)) for _ in range(30))}):
    forged = bytearray(whole)
    forged[k] ^= 1 << r.randrange(8)
    attempt(f"byte {k} changed", bytes(forged))
attempt("more behind it", whole + b"x")
sys.exit(bad > 0)
P
finish
