#!/usr/bin/env bash
# Late ranks are told by what symmetric kernels wait for their peers, with clocks of hosts 10 ms apart;
# healthy jobs accuse nobody (docs/verdicts.md). Only barrier kernels say that: not LL ones, not RailA2A,
# nothing that is not symmetric.
. "$(dirname "$0")/../../lib/case.sh"
inspector=$BUILD/nccl-inspector jobs=test/verdicts/symmetric.py
"$jobs" --exporter "$inspector" --seeds 36 --least 100 --verbose

# All ranks of a host come late to a tenth of them, one finding, of the host: slow, or slow in bursts, as they
# are late to one in ten each.
"$jobs" --exporter "$inspector" --host --seeds 32 --least 100 --verbose

# Of this job nothing but the waits tells: rank 0 comes 164 us late to one of five kernels.
"$jobs" --make "$TMP/job" --seeds 38
named() { # PATTERN WITH: the ranks that are named by the waits of such logs
  rm -rf "$TMP/other" "$TMP/out"
  cp -r "$TMP/job" "$TMP/other"
  sed -i "s/$1/$2/g" "$TMP/other"/*.jsonl
  "$inspector" summary "$TMP/other" --output-dir "$TMP/out" --no-plots --no-html --no-parquet --no-csv \
    --no-index -q >/dev/null 2>&1 || [ $? = 2 ]
  python3 -c 'import json, sys; print([f["rank"] for f in json.load(open(sys.argv[1]))["findings"]
    if f.get("told_by") == "initial_sync"])' "$TMP/out/summary/summary.json"
}
check() {
  got=$(named "$2" "$3")
  [ "$got" = "$4" ] || fail "$1: $got, not $4"
}
check "as it is" nothing nothing "[0]"
check "LL kernels" '"coll_algo": "[A-Za-z_]*"' '"coll_algo": "AGxLL_R"' "[]"
check "the barrier of one host" '"coll_algo": "[A-Za-z_]*"' '"coll_algo": "RailA2A_LsaLD"' "[]"
check "no symmetric kernels" '"symmetric": true, ' '' "[]"
finish
