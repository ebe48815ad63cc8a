#!/usr/bin/env bash
# Where something may not be read or written, the message says what to do: whom to run as, or which option
# names another place.
. "$(dirname "$0")/../../lib/case.sh"
loggen=$BUILD/test/host/loggen
need "$loggen" "$INSPECTOR" setpriv
[ "$(id -u)" = 0 ] || skip "only root can become another user"
cd "$TMP"
"$loggen" logs --ranks 2 --node 2 --ops 20 --format ours >/dev/null
mkdir shut
chmod 755 . logs
chmod 700 shut
cp "$INSPECTOR" nccl-inspector
cp "$PLUGIN" . 2>/dev/null || true
export HOME=/root
says() { # CODE TEXT COMMAND...
  local want=$1 text=$2 rc=0
  shift 2
  setpriv --reuid=65534 --regid=65534 --clear-groups "$TMP/nccl-inspector" "$@" >said 2>&1 || rc=$?
  [ $rc = "$want" ] || fail "$*: exit code $rc: $(cat said)"
  grep -qE "$text" said || fail "$*: $(cat said)"
}
touch said && chmod 666 said
place='Permission denied. Give a place where you may write'
says 1 "summary: logs-analysis: $place, by --output-dir DIR\$" summary logs
says 1 "summary: shut/x: $place, by --output-dir DIR\$" summary logs --output-dir shut/x
says 1 "trace: logs-trace.json.gz: $place, by -o FILE\$" trace logs
says 1 "convert: shut/x: $place\$" convert --bulk shut/x logs
says 125 "run: [^:]*: $place, by --out DIR\$" run -- true
says 125 "run: shut/o: $place, by --out DIR\$" run --out shut/o -- true
chmod 700 logs/"$(ls logs | head -n 1)"
chmod 711 logs
for command in summary trace check show\ --pattern; do
  # shellcheck disable=SC2086
  says 1 ': logs: Permission denied. Run as the user of the job, or as root$' $command logs
done
# A cache in somebody else's home is none, which is nothing to tell.
chmod -R a+rX logs
says 0 '^COMPLETE' check --quiet logs
grep -q 'index' said && fail "an index that nobody has: $(cat said)"
finish
