#!/usr/bin/env bash
# What merge refuses, by name and with nothing written: missing shards (exit 2), doubles, overlaps, other
# plans, other options, logs that were changed, files that were cut or changed in any byte, other files. With
# --allow-missing the result says what lacks.
. "$(dirname "$0")/../../lib/merge.sh"
"$BUILD/test/host/loggen" "$TMP/logs" --ranks 6 --node 3 --ops 20 --format ours --p2p 10
p=$TMP/a.parts
shards a 5 --no-parquet "$TMP/logs"

# refused CODE PATTERN ARGS...: exits so, says so in one line, and writes nothing.
refused() {
  local code=$1 pattern=$2 rc=0
  shift 2
  rm -rf "$TMP/out" "$TMP/again"
  (cd "$TMP" && "$INSPECTOR" merge -q "$@" >said 2>errors) || rc=$?
  [ "$rc" = "$code" ] || fail "merge $*: exits $rc instead of $code: $(cat "$TMP/errors")"
  grep -qE -- "$pattern" "$TMP/errors" || fail "merge $*: '$(cat "$TMP/errors")' instead of '$pattern'"
  [ "$(wc -l <"$TMP/errors")" = 1 ] || fail "merge $*: several lines: $(cat "$TMP/errors")"
  [ ! -e "$TMP/out" ] || fail "merge $*: writes something"
}
to="--no-plots --no-html --output-dir $TMP/out"

# shellcheck disable=SC2086
{
  refused 2 'shards 2, 4-5 of 5 are missing: merge them too, or say --allow-missing' "$p/3" "$p/1" $to
  refused 2 'shard 5 of 5 is missing: merge it too' "$p/3" "$p/1" "$p/2" "$p/4" $to
  refused 1 "shard 3 of 5 is in $p/3 and in $p/3" "$p/3" "$p/1" "$p/3" $to
  "$INSPECTOR" merge --partial "$TMP/two" "$p/4" "$p/5" >/dev/null
  refused 1 "shard 4 of 5 is in $TMP/two and in $p/4" "$TMP/two" "$p/1" "$p/4" $to
  shards b 3 --no-parquet "$TMP/logs"
  refused 1 "$TMP/b.parts/1 is of 3 shards, $p/1 of 5" "$p/1" "$TMP/b.parts/1" $to
  shards c 5 --no-parquet --rank 0-3 "$TMP/logs"
  refused 1 "$TMP/c.parts/2 was made with other options than $p/1: filters" "$p/1" "$TMP/c.parts/2" $to
  log=$(find "$TMP/logs" -type f | sort | tail -n 1)
  touch -d 2020-01-01 "$log"
  shards d 5 --no-parquet "$TMP/logs"
  refused 1 "$TMP/d.parts/2 is of other logs than $p/1: .*$log was changed between the two" "$p/1" \
    "$TMP/d.parts/2" $to
  cp "$log" "$TMP/logs/another.jsonl"
  shards e 5 --no-parquet "$TMP/logs"
  refused 1 "$TMP/e.parts/2 is of other logs than $p/1: .* (differs|is not in it)" "$p/1" "$TMP/e.parts/2" $to
  refused 1 "$log: no partial result" "$p/1" "$log" $to
  refused 1 "$TMP: a folder; which partial results?" "$p/1" "$TMP" $to
  refused 1 "$TMP/none: No such file" "$TMP/none" $to
  shards f 2 "$TMP/logs"
  mv "$TMP/f.parts/2.parquet" "$TMP/away"
  refused 1 "$TMP/f.parts/2.parquet/parquet_files: No such file or directory; it has the Parquet files of" \
    "$TMP/f.parts/1" "$TMP/f.parts/2" $to
}
for options in '--shard 1/3' '--shard 4/3 --partial x' '--shard 0/3 --partial x' '--shard 1/0 --partial x' \
  '--shard 1 --partial x' \
  '--partial x --dataset' '--partial x --output-dir y'; do
  rc=0
  # shellcheck disable=SC2086
  (cd "$TMP" && "$INSPECTOR" summary logs $options >/dev/null 2>errors) || rc=$?
  [ "$rc" = 64 ] && [ -s "$TMP/errors" ] && [ ! -e "$TMP/x" ] || fail "summary $options: exits $rc"
done

# With one missing: the ranks of the others alone, marked.
# shellcheck disable=SC2086
"$INSPECTOR" merge --allow-missing --json "$p/3" "$p/1" "$p/2" "$p/4" $to >"$TMP/said" 2>&1 &&
  fail "--allow-missing: exits 0" || [ $? = 2 ]
python3 - "$TMP/said" <<'P' || fail "--allow-missing: the result does not say it"
import json, sys
s = json.load(open(sys.argv[1]))
assert s["complete"] is False and s["records"] > 0, s["records"]
assert (s["input"]["problems_by"]["shards"] == 1 and
        any("1 shard missing: 5 of 5" in t for t in s["input"]["trouble"])), s["input"]
P

# Any byte: the first partial is refused, wherever it was cut and whatever was changed in it; nothing crashes.
python3 - "$INSPECTOR" "$p/2" "$TMP" <<'P' || failures=$((failures + 1))
import os, random, subprocess, sys
inspector, path, work = sys.argv[1:]
whole, r, bad = open(path, "rb").read(), random.Random(7), 0
def attempt(what, data):
    global bad
    name = os.path.join(work, "forged")
    open(name, "wb").write(data)
    p = subprocess.run([inspector, "merge", "--partial", os.path.join(work, "x"), name], capture_output=True,
                       text=True)
    if (p.returncode != 1 or not p.stderr.startswith("nccl-inspector merge: " + name) or
        os.path.exists(os.path.join(work, "x"))):
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
