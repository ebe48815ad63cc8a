"""The files of convert against the logs that they were made of. Usage: verify_convert.py LOGS...; LOGS-pfw1/
and LOGS1.ndjson."""
import glob, gzip, json, sys, zlib
from collections import Counter
from datetime import datetime, timezone

TYPES = {"keyword": str, "long": int, "integer": int, "double": (int, float), "date_nanos": str}


def members(path):
    data = open(path, "rb").read()
    while data:
        z = zlib.decompressobj(31)
        yield z.decompress(data)
        data = z.unused_data


def records(logs):
    """(line, record, is it P2P, global rank)"""
    for path in sorted(glob.glob(logs + "/**/*", recursive=True)):
        if not path.endswith((".log", ".log.gz", ".jsonl", ".jsonl.gz")):
            continue
        lines = [json.loads(x) for x in (gzip.open(path, "rt") if path.endswith(".gz") else open(path))]
        stated = [x["process"]["rank"] for x in lines if "process" in x]
        marker, ops = None, []
        for x in lines:
            if "dump_stats" in x and "header" in x:
                marker = x
            if "coll_perf" not in x and "p2p_perf" not in x:
                continue
            x = x if "header" in x else dict(x, header=marker["header"], metadata=marker["metadata"])
            ops.append(x)
        largest = max((x["header"]["n_ranks"] for x in ops), default=0)
        rank = stated[0] if stated else next((x["header"]["rank"] for x in ops
                                              if x["header"]["n_ranks"] == largest), None)
        for x in ops:
            p2p = "p2p_perf" in x
            o = x["p2p_perf" if p2p else "coll_perf"]
            prefix = "p2p_" if p2p else "coll_"
            yield x, {k[len(prefix):] if k.startswith(prefix) else k: v for k, v in o.items()}, p2p, rank


for logs in sys.argv[1:]:
    want, docs = Counter(), Counter()
    for x, o, p2p, rank in records(logs):
        start = o["enqueue_ns"] + o["gpu_start_delta_ns"] if "enqueue_ns" in o else x["metadata"]["dump_timestamp_us"] * 1000
        func = o["p2p"] if "p2p" in o else o["coll"]
        comm = int(x["header"]["id"], 16)
        want[(func, rank, start // 1000, o["exec_time_us"], comm, x["metadata"]["hostname"],
              o["msg_size_bytes"], o["sn"])] += 1
        docs[(func, rank, start, o["exec_time_us"], o.get("exec_time_ns"), comm,
              x["header"].get("comm_name") or None, x["metadata"]["hostname"], o["msg_size_bytes"], o["sn"],
              x["header"]["rank"], o.get("busbw_gbs"), o.get("rec_sn"))] += 1
    assert want, logs
    got, hosts, files = Counter(), {}, sorted(glob.glob(logs + "-pfw1/*.pfw.gz"))
    for path in files:
        names, n = {}, 0
        for text in members(path):
            assert text.endswith(b"\n"), "a member of %s is cut within a line" % path
            for line in text.decode().splitlines():
                e = json.loads(line)
                n += 1
                if e["ph"] == "M":
                    names[e["name"], e["args"]["value"]] = e["args"]["name"]
                    continue
                assert (e["ph"] == "X" and e["cat"] == "comm" and e["ts"] >= 0 and e["dur"] > 0 and
                        e["tid"] == e["pid"])
                a = e["args"]
                file = names["FH", a["fhash"]]
                assert file.startswith("/comm/0x%x" % int(a["fhash"], 16)) and "/" not in file[6:], file
                assert names["PR", str(e["pid"])] == "rank"
                got[(e["name"], e["pid"], e["ts"], e["dur"], int(a["fhash"], 16), names["HH", a["hhash"]],
                     a["size_sum"],
                     a["coll_sn"])] += 1
        assert n > 3, path
    assert got == want, (logs, list((want - got).items())[:3], list((got - want).items())[:3])

    types = {k: v["type"] for k, v in json.load(open(logs + "1.ndjson-template.json"))["template"]["mappings"]["properties"].items()}
    lines = open(logs + "1.ndjson").read().splitlines()
    ids, found = set(), Counter()
    for head, body in zip(lines[::2], lines[1::2]):
        head, d = json.loads(head), json.loads(body)
        assert (list(head) == ["index"] and list(head["index"]) == ["_id"] and
                len(head["index"]["_id"].encode()) <= 512)
        ids.add(head["index"]["_id"])
        for k, v in d.items():
            assert isinstance(v, TYPES[types[k]]) and not isinstance(v, bool), (k, v)
            assert types[k] != "long" or abs(v) < 2**63, (k, v)
            assert types[k] != "integer" or abs(v) < 2**31, (k, v)
        when, frac = d["@timestamp"][:-1].split(".")
        ns = int(datetime.fromisoformat(when).replace(tzinfo=timezone.utc).timestamp()) * 10**9 + int(frac)
        assert d["@timestamp"].endswith("Z") and len(frac) == 9
        found[(d["coll"], d["global_rank"], ns, d["coll_exec_time_us"], d.get("coll_exec_time_ns"),
               int(d["id"], 16), d.get("comm_name"), d["hostname"], d["coll_msg_size_bytes"], d["coll_sn"],
               d["rank"], d.get("coll_busbw_gbs"), d.get("rec_sn"))] += 1
    assert found == docs, (logs, list((docs - found).items())[:2], list((found - docs).items())[:2])
    assert len(ids) == len(lines) // 2 == sum(docs.values()), (logs, len(ids), len(lines))
    print("%s: %d records, %d files" % (logs, sum(want.values()), len(files)))
