#!/usr/bin/env bash
# The first commands of docs/cluster.md, as they stand there, but for ports and the head's name.
. "$(dirname "$0")/../../lib/top.sh"
need openssl
need python3
need gnuplot
pause=2
[ -z "${NI_VARIANT:-}" ] || pause=10
run() { # NUMBER: the commands of that block, one shell for each
  mkdir "$TMP/$1" "$TMP/bin$1"
  read -r rpc http < <(python3 -c 'import socket
s = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
print(*[x.getsockname()[1] for x in s])')
  awk -v n="$1" '/^```/ { if (!inside) block++; inside = !inside; next } inside && block == n' \
    docs/cluster.md |
    sed -e "s/n0/localhost/g; s/8090/$rpc/g; s/8091/$http/g; s/ head --background/& --port $rpc --http-port $http/" \
      -e "s/session \(start\|stop\) warm-up$/& --head localhost:$http/; s/session \(start\|stop\) warm-up  /session \1 warm-up --head localhost:$http /" \
      -e "s#inspector agent#& --listen 127.0.0.1:0 --state-dir $TMP/state$1 --box-dir $TMP#" \
      >"$TMP/commands$1"
  ln -s "$INSPECTOR" "$TMP/bin$1/nccl-inspector"
  [ -s "$TMP/commands$1" ] || fail "no block $1"
  # After a session's start the agent has time to send something.
  (cd "$TMP/$1" && PATH=$TMP/bin$1:$PATH bash -euxc "$(sed "/session start/a sleep $pause" "$TMP/commands$1")") >"$TMP/said$1" 2>&1 ||
    fail "block $1: $(cat "$TMP/said$1")"
  for pid in $(sed -n 's/.*(pid \([0-9]*\)).*/\1/p; s/.*pid \([0-9]*\)$/\1/p' "$TMP/said$1" | sort -u); do
    kill "$pid" 2>/dev/null || true
  done
}
run 1
[ "$(head -c 5 "$TMP/1/warm-up.pdf")" = "%PDF-" ] || fail "no picture: $(cat "$TMP/said1")"
grep -q '"client_state":\["ok"\]' "$TMP/1/warm-up.json" ||
  fail "the agent is not in the session: $(cat "$TMP/said1")"
run 2
grep -q '"client_state":\["ok"\]' "$TMP/2/warm-up.json" ||
  fail "the agent is not in the session of the cluster: $(cat "$TMP/said2")"
grep -Eq '^[^ ]+ +ok ' "$TMP/said2" || fail "status has no agent: $(cat "$TMP/said2")"
finish
