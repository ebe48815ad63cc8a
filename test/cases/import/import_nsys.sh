#!/usr/bin/env bash
# import nsys: every NCCL kernel of the exports is in the logs, to the ns, by SQL of its own; sizes and
# communicators are those of the calls that launched them, in exports of all years; ranks by environment,
# name, MPI and communicator; SQLite files of strangers cost what they say, and nothing in them is run.
. "$(dirname "$0")/../../lib/case.sh"
grep -q '^HAVE_SQLITE.* := 1' "$BUILD/config.mk" || skip "built without SQLite"
python3 -c 'import sqlite3' 2>/dev/null || skip "python3 without sqlite3"
import() { # rc name options...: exports $TMP/NAME, logs $TMP/NAME.logs
  local want=$1 name=$2 rc=0
  "$INSPECTOR" import nsys "$TMP/$name" --out "$TMP/$name.logs" "${@:3}" >"$TMP/$name.txt" 2>&1 || rc=$?
  [ $rc = "$want" ] || { fail "$name: exit $rc, want $want"; cat "$TMP/$name.txt"; }
}
said() { grep -qE -- "$2" "$TMP/$1.txt" || { fail "$1 does not say: $2"; cat "$TMP/$1.txt"; }; }
sound() { # name [rc]
  local rc=0
  "$INSPECTOR" check "$TMP/$1.logs" >"$TMP/check" 2>&1 || rc=$?
  case $rc in 0 | "${2:-0}") true ;; *) false ;; esac || { fail "$1: check returns $rc"; cat "$TMP/check"; }
  grep -qE '^lines .* 0 bad' "$TMP/check" || { fail "$1: bad lines"; cat "$TMP/check"; }
}
same() {
  python3 test/lib/nsys_reader.py "$TMP/$1.logs" "$TMP/$1"/*.sqlite >"$TMP/read" ||
    { fail "$1: $(cat "$TMP/read")"; }
}

# One rule each.
python3 test/lib/nsys_cases.py make "$TMP"
for c in words json plain old middle made ends mpi gpus split hosts; do
  import 0 $c
  python3 test/lib/nsys_cases.py check $c "$TMP/$c.logs" || { fail "$c"; cat "$TMP/$c.txt"; }
  same $c
  sound $c
done
said words 'rank 1 \(by the communicator of all\) on node-x, 12 operations'
said words '2 processes are those of communicator 0xfedcba9876543210'
said words '2 operations have no launch'
said plain 'rank 3 \(by the file.s name\)'
said plain '24 operations have no communicator'
said plain 'sizes are in what nsys export --include-blobs=true makes'
said old '1 rank has no date'
said middle 'told by steps of 1'
said hosts 'nobody says ranks: a rank in them is a number of ours'
said middle '1 communicator was made before the recording began'
said ends 'by when operations ended of 1'
"$INSPECTOR" summary "$TMP/made.logs" --no-index --no-parquet --no-html --no-plots --output-dir "$TMP/out" \
  >"$TMP/summary" || true
grep -q 'written by nccl-inspector import, from Nsight Systems reports' "$TMP/summary" ||
  fail "summary does not say where the logs come from"

# Of payloads some descriptions say that the head ends in the payload's place, others in its end.
cp -r "$TMP/words" "$TMP/ending"
python3 - "$TMP"/ending/*.sqlite <<'P'
import sqlite3, sys
for f in sys.argv[1:]:
    db = sqlite3.connect(f)
    db.create_function("ending", 1, lambda b: b[:24] + len(b).to_bytes(8, "little") + b[32:])
    n = db.execute("UPDATE NVTX_EVENTS SET binaryData = ending(binaryData) WHERE length(binaryData) > 32").rowcount
    assert n > 0
    db.commit()
P
import 0 ending
python3 test/lib/nsys_cases.py check words "$TMP/ending.logs" || { fail "ending"; cat "$TMP/ending.txt"; }

# A planted late rank, from what Nsight Systems would have recorded of the job alone: a file a rank that
# begins in the middle; one a host.
"$BUILD/test/ni-jobs" --layout D --kind late --size 30 --seed 3 --steps 12 --stored --out "$TMP/job" \
  >/dev/null
for how in "ranks --middle --cut 0.04 --steps 12" "hosts --hosts"; do
  name=job-${how%% *}
  # shellcheck disable=SC2086
  python3 test/lib/nsys_job.py "$TMP/job" "$TMP/$name" ${how#* }
  import 0 "$name"
  same "$name"
  "$INSPECTOR" summary "$TMP/$name.logs" --no-index --no-parquet --no-html --no-plots --output-dir \
    "$TMP/out-$name" >"$TMP/summary" || true
  python3 - "$TMP/job/truth.json" "$TMP/out-$name/summary/summary.json" <<'P' || { fail "$name: the late rank is not first"; cat "$TMP/summary"; }
import json, sys
truth, found = json.load(open(sys.argv[1])), json.load(open(sys.argv[2]))["findings"]
want = [s["ranks"] for s in truth["culprits"][0]["accept"] if s.get("level") == "rank"]
sys.exit(not found or found[0]["ranks"] not in want)
P
done

# The same input gives the same bytes; a file that cannot be read, and a second one of a rank, are named and
# left out.
cp -r "$TMP/made" "$TMP/again"
(cd "$TMP" && "$INSPECTOR" import nsys made -o one -q && "$INSPECTOR" import nsys made -o two -q && diff -r one two) || fail "not the same bytes"
head -c 50000 "$TMP/made/report_0.sqlite" >"$TMP/again/cut.sqlite"
cp "$TMP/made/report_1.sqlite" "$TMP/again/zz_1.sqlite"
import 2 again
said again 'cut.sqlite: left out: no whole SQLite file'
said again 'zz_1.sqlite: left out: it is of rank 1, as .*report_1'
sound again
cp -r "$TMP/split" "$TMP/twice"
cp "$TMP/split/host0.sqlite" "$TMP/twice/zz.sqlite"
import 2 twice
said twice 'zz.sqlite: left out: it is of process 100 on n0, as .*host0.sqlite is'
python3 test/lib/nsys_cases.py check split "$TMP/twice.logs" || fail "twice"
cp -r "$TMP/again" "$TMP/odd #1?immutable=0"
import 2 "odd #1?immutable=0"

# Strangers' files. Each one is read or refused in seconds; what is read makes sound logs.
mkdir "$TMP/hostile"
python3 test/lib/nsys_hostile.py "$TMP/words/report1.sqlite" "$TMP/hostile"
for f in "$TMP"/hostile/*.sqlite; do
  rc=0 name=hostile-$(basename "$f" .sqlite)
  ([ -n "$VARIANT" ] || ulimit -v 800000; timeout 60 "$INSPECTOR" import nsys "$f" --out "$TMP/$name.logs") \
    >"$TMP/$name.txt" 2>&1 || rc=$?
  case $rc in 0 | 2) sound "$name" 2 ;; 1) [ ! -e "$TMP/$name.logs" ] ||
    fail "$name: exit 1, and a folder" ;; *) fail "$name: exit $rc"; cat "$TMP/$name.txt" ;; esac
done
said hostile-walbeside_0 'it is being written'
said hostile-view_0 'no NCCL kernel in it'
grep -q $'\x1b' "$TMP/hostile-texts_0.txt" && fail "an escape of a host's name came through"
finish
