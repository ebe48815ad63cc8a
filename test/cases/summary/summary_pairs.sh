#!/usr/bin/env bash
# P2P by peer pair: Send and Recv matched in their order although each rank counts on its own; every figure
# recomputed from the lines; a missing side and a lost record show in the counts; the page has the table.
. "$(dirname "$0")/../../lib/case.sh"
inspector=$BUILD/nccl-inspector loggen=$BUILD/test/host/loggen

# By hand: 4 ranks, each sends to its right neighbour two sizes, numbers of the two sides differ, receivers
# late; rank 3 has lost one Recv, nobody logged for rank 0's Recvs.
mkdir "$TMP/hand"
python3 - "$TMP/hand" <<'P'
import sys
sys.path.insert(0, "test/lib")
import logs
for rank in range(4):
    with open(f"{sys.argv[1]}/h{rank}-pid{rank + 10}.log", "w") as f:
        sn = rank * 100
        for k in range(300):
            for func, peer in (("Send", (rank + 1) % 4), ("Recv", (rank - 1) % 4)):
                sn += 1
                if func == "Recv" and (rank == 0 or (rank == 3 and k == 299)): continue
                us = 50 + k % 7 + (20 if func == "Send" and rank == 1 else 5 if func == "Recv" else 0)
                meta = logs.metadata(1790000000000000 + k, f"h{rank}", rank + 10, git_rev="", mechanism="m",
                                     producer=None)
                f.write(logs.text(logs.line(logs.header("0xabc", rank, 4, 4), meta, "p2p_perf", logs.perf(
                    "p2p", func, sn=sn, peer=peer, msg_size_bytes=1 << (12 + k % 2), exec_time_us=us,
                    timing_source="kernel_gpu",
                    algobw_gbs=1.0, busbw_gbs=1.0))) + "\n")
P
"$loggen" "$TMP/v40" --ranks 12 --node 4 --ops 2000 --p2p 20 --comm-name --gzip
"$loggen" "$TMP/ours" --ranks 6 --node 3 --ops 1000 --p2p 30 --format ours --straggler 3
"$inspector" summary "$TMP/hand" --output-dir "$TMP/hand-out" --no-plots -q >/dev/null
for job in v40 ours; do
  "$inspector" summary "$TMP/$job" --output-dir "$TMP/$job-out" --no-plots --no-html -q >/dev/null
done

python3 - "$TMP" <<'P'
import collections, csv, glob, gzip, json, sys
def close(a, b): return abs(a - b) <= 1e-9 * max(abs(a), abs(b), 1e-300)
def quantile(v, q):
    v = sorted(v); at = q * (len(v) - 1); i = int(at)
    return v[i] + (at - i) * (v[i + 1] - v[i]) if i + 1 < len(v) else v[i]
for job in ("hand", "v40", "ours"):
    truth = collections.defaultdict(lambda: ([], []))
    for path in glob.glob(f"{sys.argv[1]}/{job}/*"):
        for line in (gzip.open if path.endswith("gz") else open)(path, "rt"):
            o = json.loads(line)
            if "p2p_perf" not in o: continue
            h, p = o["header"], o["p2p_perf"]
            recv = p["p2p"] == "Recv"
            ends = (p["p2p_peer"], h["rank"]) if recv else (h["rank"], p["p2p_peer"])
            us = p["p2p_exec_time_ns"] / 1e3 if "p2p_exec_time_ns" in p else p["p2p_exec_time_us"]
            truth[h["id"], *ends, p["p2p_msg_size_bytes"]][recv].append((p["p2p_sn"], us))
    s = json.load(open(f"{sys.argv[1]}/{job}-out/summary/summary.json"))
    got = {(p["id"], p["sender"]["rank"], p["receiver"]["rank"], p["msg_size_bytes"]): p
           for p in s["p2p_pairs"]}
    assert set(got) == set(truth) and got, (job, sorted(set(got) ^ set(truth))[:3])
    assert s["p2p_pair_records_left_out"] == 0
    for key, (sends, recvs) in truth.items():
        p = got[key]
        sends, recvs = [us for _, us in sorted(sends)], [us for _, us in sorted(recvs)]
        both = list(zip(sends, recvs))
        assert (p["sends"], p["recvs"], p["matched"]) == (len(sends), len(recvs), len(both)), (job, key, p)
        for name, v in (("send", sends), ("recv", recvs), ("transfer", [min(b) for b in both])):
            if not v: continue
            t = p[f"{name}_time_us"]
            assert t["n"] == len(v) and close(t["mean"], sum(v) / len(v)), (job, key, name, t)
            if t.get("approx"):
                assert abs(t["p99"] / quantile(v, .99) - 1) < .005
            else:
                assert (close(t["p50"], quantile(v, .5)) and
                        close(t["p99"], quantile(v, .99))), (job, key, name, t)
        assert close(p["sender_waited_us"], sum(max(0, a - b) for a, b in both)), (job, key, p)
        assert close(p["receiver_waited_us"], sum(max(0, b - a) for a, b in both)), (job, key, p)
        if both:
            assert (close(p["bandwidth_gbs"], key[3] / (quantile([min(b) for b in both], .5) * 1e3)) or
                    p["transfer_time_us"].get("approx"))
    rows = list(csv.DictReader(open(f"{sys.argv[1]}/{job}-out/summary/summary_p2p_by_pair.csv")))
    assert len(rows) == len(got)
    for r in rows:
        p = got[r["id"], int(r["sender_rank"]), int(r["receiver_rank"]), int(r["msg_size_bytes"])]
        assert ((int(r["sends"]), int(r["matched"])) == (p["sends"], p["matched"]) and
                r["receiver_hostname"] == p["receiver"].get("hostname", ""))
    if job == "hand":
        lost = got["0xabc", 2, 3, 8192]
        assert (lost["sends"], lost["recvs"], lost["matched"]) == (150, 149, 149), lost
        none = got["0xabc", 3, 0, 4096]
        assert (none["recvs"] == 0 and "hostname" not in none["receiver"] and
                none["transfer_time_us"]["n"] == 0)
        assert got["0xabc", 1, 2, 4096]["sender_waited_us"] == 150 * 15
    print(f"{job}: {len(got)} pairs agree")
if True:
    page = open(f"{sys.argv[1]}/hand-out/report.html").read() if glob.glob(f"{sys.argv[1]}/hand-out/report.html") else None
    if page:
        data = json.loads(page.split('id="data">')[1].split("</script>")[0])
        assert len(data["pairs"]["rows"]) == 8 and data["pairs"]["left_out"] == 0
P
"$inspector" summary "$TMP/v40" --output-dir "$TMP/again" --jobs 1 --memory 16M --no-plots --no-html -q \
  >/dev/null
cmp "$TMP/again/summary/summary_p2p_by_pair.csv" "$TMP/v40-out/summary/summary_p2p_by_pair.csv"
