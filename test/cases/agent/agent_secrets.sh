#!/usr/bin/env bash
# A header for OTLP comes from a file; no secret of the agent is in the memory of a reader; a folder that
# everybody may write is refused.
. "$(dirname "$0")/../../lib/agent.sh"
export no_proxy='*' NO_PROXY='*'

# ---- the state's folder, and what is no settings file ----
mkdir -m 0777 "$TMP/open" "$TMP/sticky"
chmod 1777 "$TMP/sticky"
for folder in open sticky; do
  refused "$folder" "$folder: everybody may write into it \(mode [01]777\).*chmod o-w" --state-dir \
    "$TMP/$folder"
  [ -z "$(ls "$TMP/$folder")" ] || fail "$folder: something was written"
done
mkfifo -m 600 "$TMP/fifo"
refused "a pipe as settings" 'fifo: no regular file' --config "$TMP/fifo"
refused "a pipe as token" 'token-file=.*it is empty' --token-file "$TMP/fifo"

# ---- secrets ----
printf 'X-Secret: %s\nthe next line is none\n' "$(head -c 18 /dev/urandom | base64)" >"$TMP/header"
head -c 18 /dev/urandom | base64 >"$TMP/token"
head -c 18 /dev/urandom | base64 >"$TMP/head-token"
refused "both headers" 'one of the two' --otlp http://127.0.0.1:1 --otlp-header 'A: b' --otlp-header-file \
  "$TMP/header"
chmod 644 "$TMP/header"
python3 -u test/lib/agent_secrets.py serve >"$TMP/port" 2>"$TMP/heard" &
wait_for 20 test -s "$TMP/port" || fatal "no server"
begin shown --otlp "http://127.0.0.1:$(cat "$TMP/port")" --otlp-header-file "$TMP/header"
grep -q 'nothing is sent by OTLP: --otlp-header-file=.*others can read it' "$TMP/shown.err" ||
  fail "a header that others can read is taken"
ends 0
chmod 600 "$TMP/header" "$TMP/token" "$TMP/head-token"
begin secrets --otlp "http://127.0.0.1:$(cat "$TMP/port")" --otlp-every 1s --otlp-header-file "$TMP/header" \
  --token-file "$TMP/token" \
  --head "127.0.0.1:$(cat "$TMP/port")" --head-token-file "$TMP/head-token"
sent() { [ "$(grep -c "^$(head -n 1 "$TMP/header")\$" "$TMP/heard")" -ge "$1" ]; }
wait_for 60 sent 1 || { fail "the header never came:"; cat "$TMP/heard" "$TMP/secrets.err"; }
! tr '\0' '\n' <"/proc/$PID/cmdline" | grep -F "$(cut -d' ' -f2- <"$TMP/header" | head -n 1)" ||
  fail "the header is in the command line"
if [ "$(id -u)" = 0 ] && [ -z "$VARIANT" ]; then
  # A reader that is begun now, when all have been used, and not as the agent begins.
  read -r before < <(ps -o pid= --ppid "$PID")
  kill -9 "$before"
  anew() { read -r READER < <(ps -o pid= --ppid "$PID") && [ "$READER" != "$before" ]; }
  wait_for 60 anew || fail "no reader begun anew"
  for file in header token head-token; do
    secret=$(head -n 1 "$TMP/$file")
    secret=${secret#X-Secret: }
    python3 test/lib/agent_secrets.py find "$PID" "$secret" ||
      fail "the agent itself does not have what is in $file: this test looks wrong"
    ! python3 test/lib/agent_secrets.py find "$READER" "$secret" || fail "a reader has what is in $file"
  done
fi
ends 0
finish
