#!/usr/bin/env bash
# A head's store is killed again and again: no sample that was acknowledged is missing in its sessions,
# whether it came in time or late, and frames are numbered without a gap or a repeat. KILLS=50.
. "$(dirname "$0")/../../lib/case.sh"
FEED=$BUILD/test/host/session_feed
KILLS=${KILLS:-50} python3 - "$FEED" "$TMP" <<'PY'
import json, os, random, re, signal, subprocess, sys, time
feed, tmp = sys.argv[1:]
random.seed(1)
acked = {0: 0, 1: 0, 2: 0}
def note(line):
    m = re.fullmatch(rb"ack (\d) (\d+)\n", line)
    if m: acked[int(m[1])] = max(acked[int(m[1])], int(m[2]))
rounds = 0
for i in range(int(os.environ["KILLS"])):
    p = subprocess.Popen([feed, "kill", tmp, "3"], stdout=subprocess.PIPE)
    before = dict(acked)
    note(p.stdout.readline()) # it goes on: something new was acknowledged
    time.sleep(random.random() * 0.1)
    p.send_signal(signal.SIGKILL)
    for line in p.stdout: note(line)
    if p.wait() != -signal.SIGKILL: sys.exit("round %d: ended by itself: %d" % (i, p.returncode))
    rounds += acked != before
if rounds < int(os.environ["KILLS"]) * 0.9: sys.exit("only %d rounds acknowledged anything" % rounds)
if min(acked.values()) < 500: sys.exit("too little was acknowledged: %s" % acked)
texts = []
for name in "ab":
    text = subprocess.run([feed, "export", tmp, name], stdout=subprocess.PIPE, check=True).stdout
    d = json.loads(text)
    ids = [f["frame_id"] for f in d["frames"]]
    if ids != list(range(1, len(ids) + 1)):
        sys.exit("%s: frame ids %s" % (name, [x for x, y in zip(ids, range(1, len(ids) + 1)) if x != y][:5]))
    for at, f in enumerate(d["frames"]):
        where = "%s, frame %d" % (name, at + 1)
        if len(f["gpu_id"]) != 2 * len(f["client_id"]): sys.exit("%s: %s" % (where, f["gpu_id"]))
        for k, v in f.items():
            n = len(f["gpu_id"]) if k.startswith(("gpu_", "dram_bandwidth")) and k != "gpu_bandwidth" else len(f["client_id"]) if k.startswith("client_") else None
            if n is not None and len(v) != n: sys.exit("%s: %s has %d values" % (where, k, len(v)))
        for c in acked: # the sample of tick k is number k, and says k
            if at + 1 > acked[c]: continue
            me = "n%d_%08x" % (c, c + 1)
            if me not in f["client_id"]: sys.exit("%s: no column of %s" % (where, me))
            i = f["client_id"].index(me)
            if f["client_seq"][i] != at + 1 or f["client_state"][i] != "ok":
                sys.exit("%s: %s has %s %s" % (where, me, f["client_seq"][i], f["client_state"][i]))
            for g in 0, 1:
                j = f["gpu_id"].index("n%d:%d:NVIDIA H100 80GB HBM3" % (c, g))
                want = "%d.00" % (((at + 1) * 7 + c + g) % 100)
                if f["gpu_util"][j] != want:
                    sys.exit("%s: %s GPU %d: %s, not %s" % (where, me, g, f["gpu_util"][j], want))
    if len(ids) < max(acked.values()): sys.exit("%s: %d frames, acknowledged %s" % (name, len(ids), acked))
print("killed %s times, acknowledged %s" % (os.environ["KILLS"], acked))
PY
