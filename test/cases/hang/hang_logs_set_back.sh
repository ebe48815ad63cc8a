#!/usr/bin/env bash
# The clock of a host was set back by an hour before its ranks hung: a line's place in its file is its age.
# The stuck lines count, though all lines before them say a later time.
. "$(dirname "$0")/../../lib/hang.sh"
mkdir "$TMP/logs"
python3 test/lib/hang_logs.py "$TMP/logs" AllReduce AllReduce
python3 - "$TMP/logs" <<'PY'
import pathlib, re, sys
HOUR_US = 3600 * 10**6
for path in pathlib.Path(sys.argv[1]).iterdir():
    lines = path.read_text().splitlines()
    stuck = [x for x in lines if '"stuck"' in x]
    older = [x for x in lines if '"stuck"' not in x]
    for key, unit in (("dump_timestamp_us", 1), ("coll_enqueue_ns", 1000), ("start_ns", 1000),
                      ("init_ns", 1000)):
        older = [re.sub('("%s":)([0-9]+)' % key, lambda m: m.group(1) + str(int(m.group(2)) + HOUR_US * unit),
                        x) for x in older]
    path.write_text("\n".join(older + stuck) + "\n")
PY
look_at "$TMP/logs" --box-dir "$BOXES"
checked "set back before the hang" 3 expect world "AllReduce 20" inside=0,1
finish
