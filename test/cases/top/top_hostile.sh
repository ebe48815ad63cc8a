#!/usr/bin/env bash
# `top` and documents that want to hurt it: any bytes, cut ones, deep nesting, numbers without measure, names
# that steer a terminal, far too many rows. It ends in time, in little memory, and prints nothing that is not
# text.
. "$(dirname "$0")/../../lib/top.sh"
mkdir "$TMP/web"
python3 test/lib/top_nodes.py "$TMP/web" 1 4 stuck
python3 - "$TMP/web" <<'END'
import json, random, sys
web = sys.argv[1]
good = open(web + "/n0").read()
doc = json.loads(good)

def put(name, text):
    with open(f"{web}/{name}", "wb") as f:
        f.write(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))

for i, n in enumerate((0, 1, 37, len(good) // 2, len(good) - 1)):
    put(f"cut{i}", good[:n])
put("deep0", "[" * 100000)
put("deep1", '{"schema":"nccl-inspector-now-1","ranks":' + '{"ranks":[' * 600 + "]}" * 600 + "}")
put("zeros", bytes(70000))
put("large", b'{"schema":"nccl-inspector-now-1","x":"' + b"x" * (17 << 20) + b'"}')
rng = random.Random(7)
for i in range(4):
    b = bytearray(good.encode())
    for _ in range(30):
        b[rng.randrange(len(b))] = rng.randrange(256)
    put(f"bits{i}", bytes(b))
# Sound JSON, foul values.
foul = ["\x1b[2J\x1b]0;owned\x07", "a\nb\rc\td", "\u202eevil\u200b", "\u65e5\u672c\u8a9e" * 30,
        "\x7f\u009b31m", "x" * 100000, "", "%s%n%999999d", "\ud800"]
numbers = [1e308, -1e308, 2**64 - 1, -2**63, 0, 1e-320, "NaN", "1e999", "x", True, None, [], {}, [[1]]]
rows = []
for i in range(300):
    row = dict(doc["ranks"][i % 4])
    for key in list(row):
        if rng.random() < 0.4:
            row[key] = rng.choice(foul + numbers)
    rows.append(row)
text = json.dumps(dict(doc, node=foul[0], ranks=rows,
                       jobs=[dict(doc["jobs"][0], job_id=f, hang=f) for f in foul], gpus=[
    dict(doc["gpus"][0], gpu=rng.choice(numbers), throttled=rng.choice([foul, "x", 5, [foul, 1]]),
         power_w=rng.choice(numbers)) for _ in range(50)],
    nics=[dict(doc["nics"][0], nic=f, link_bytes_s=rng.choice(numbers)) for f in foul]))
put("foul", text.replace("\\ud800", "x"))
put("foul_half", text)
put("kinds", json.dumps({"schema": "nccl-inspector-now-1", "node": 5, "jobs": {},
                         "ranks": [1, "x", None, [], {}], "gpus": "x",
                         "nics": 1e400}).replace("Infinity", "1e400"))
put("kinds2", '{"schema":"nccl-inspector-now-1","node":[],"jobs":[[]],"ranks":[1,"x",null,[],{},{"rank":{}}],"gpus":[{}],"nics":[{"nic":{}}]}')
put("rows", '{"schema":"nccl-inspector-now-1","node":"n5","ranks":[' +
    ",".join(['{"rank":1,"comm_id":"0x1","collectives":5,"call":4,"age_s":9}'] * 100000) +
    '],"gpus":[' + ",".join(["{}"] * 100000) + "]}")
# What a Prometheus might not say.
put("prom", json.dumps({"status": "success", "data": {"resultType": "vector", "result": [
    {"metric": {"top": t, "node": f, "job_id": f, "rank": f, "gpu": f, "comm": f, "nic": f, "verdict": f,
                "hang": f}, "value": [1, v]}
    for foul in [[f[:2000] for f in foul]]
    for t in ("in_flight", "age_s", "hangs", "utilization", "rx_bytes_s", "node", "", "call", 5)
    for f in foul[:8] for v in ("1", "NaN", "+Inf", 5, None, "1e300")]
    + [1, {}, {"metric": 1, "value": 2}, {"metric": {"top": "age_s"}, "value": []},
       {"metric": {"top": "age_s"}}]}}))
END
cp "$TMP/web/prom" "$TMP/web/api"
serve "$TMP/web"

# No control characters, no marks of direction, and sound UTF-8.
clean() { python3 - "$TMP/out" "$TMP/err" <<'END' || fail "$1: what comes out is no plain text"
import re, sys
for f in sys.argv[1:]:
    text = open(f, encoding="utf-8").read()
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e]", text), f
END
}
for name in cut0 cut1 cut2 cut3 cut4 deep0 zeros large foul_half; do
  top 1 $name --once
  clean $name
done
says_not err 'no memory'
top 1 large --once
says err 'its answer is larger than 16 MiB'
top 1 kinds --once
for name in bits0 bits1 bits2 bits3 deep1; do
  rc=0
  timeout 20 "$INSPECTOR" top -a "http://127.0.0.1:$PORT/$name" --once >"$TMP/out" 2>"$TMP/err" \
    </dev/null || rc=$?
  [ $rc -le 2 ] || fail "$name: exit $rc"
  clean $name
done
top 0 "foul n0" --once
clean foul
says out '^77 +3 n0 '
top 0 foul --json
clean foul
diff <(python3 -c 'import json,sys; print(json.load(open(sys.argv[1])))' "$TMP/web/foul") \
  <(python3 -c 'import json,sys; print(json.load(open(sys.argv[1])))' "$TMP/out") >/dev/null ||
  fail "JSON is not what was received"
top 0 kinds2 --once
# Two agents with 100,000 rows each: 65,536 of them are taken, and n0 still has its own.
top 0 "n0 rows rows" --once --filter n0
says out '^77 +3 n0 ' '; 4 of 65,536 with "n0"$'
top 1 "" --once --prometheus "http://127.0.0.1:$PORT/n0x"
rc=0
timeout 20 "$INSPECTOR" top --prometheus "http://127.0.0.1:$PORT" --once >"$TMP/out" 2>"$TMP/err" \
  </dev/null || rc=$?
[ $rc = 0 ] || fail "Prometheus: exit $rc: $(cat "$TMP/err")"
clean prom

# On a screen: a name that wants to clear it, and wide characters, which are cut at the edge.
if command -v tmux >/dev/null; then
  tmux -S "$TMUX_SOCKET" -f /dev/null -u new-session -d -x 80 -y 24 \
    "'$INSPECTOR' top -a http://127.0.0.1:$PORT/foul; echo ended; sleep 60"
  drawn() {
    tmux -S "$TMUX_SOCKET" capture-pane -p | grep "^JOB" && tmux -S "$TMUX_SOCKET" capture-pane -p |
      grep '^F1 Help'
  }
  wait_for 30 drawn || fail "nothing is drawn"
  tmux -S "$TMUX_SOCKET" capture-pane -p >"$TMP/out"
  sed -n 2,23p "$TMP/out" | grep -qE '^JOB +RANK' || { fail "no heads on the screen"; cat "$TMP/out"; }
  tail -n 1 "$TMP/out" | grep -q '^F1 Help' || { fail "the last line is not that of keys"; cat "$TMP/out"; }
  [ "$(tmux -S "$TMUX_SOCKET" display -p '#T')" != owned ] || fail "the terminal's title was set"
fi
finish
