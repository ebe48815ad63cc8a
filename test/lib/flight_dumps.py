"""Makes Flight Recorder dumps of a job with 8 ranks that hangs (or does not), as PyTorch writes them.

  flight_dumps.py DIR KIND-FORM...          each into a folder of that name
  flight_dumps.py DIR KIND FORM RANKS       KIND: see plant(). FORM: json, torch (its pickler's opcodes) or 2 to 5 (Python's
                                            pickler). RANKS: of which there are dumps ("0,1,2")

Groups: default_pg of all, tp of pairs, dp of even and of odd ranks, pp of ranks 0 and 4.
"""
import json
import os
import pathlib
import pickle
import struct
import sys

S = 10**9
T0 = 1790000000 * S
GROUPS = {"0": ("default_pg", list(range(8)))}
GROUPS.update({"%d" % (1 + i): ("tp", [2 * i, 2 * i + 1]) for i in range(4)})
GROUPS.update({"5": ("dp", [0, 2, 4, 6]), "6": ("dp", [1, 3, 5, 7]), "7": ("undefined", [0, 4])})


class Rank:
    def __init__(self, rank, timed=False):
        self.rank, self.timed, self.entries, self.now = rank, timed, [], T0 + rank * 1000000
        self.coll, self.p2p = dict.fromkeys(GROUPS, 0), dict.fromkeys(GROUPS, 0)
        self.frames = [{"name": "train_step", "filename": "/job/train.py", "line": 42}]

    def call(self, group, name, state, elements=1048576, dtype="BFloat16", p2p=False, same=False, sizes=True):
        """same: of the batch that began before."""
        self.now += 50 * 1000000
        count = self.p2p if p2p else self.coll
        count[group] += not same
        created, done = self.now, state == "completed"
        e = {"frames": self.frames, "record_id": len(self.entries), "pg_id": int(group),
             "process_group": (group, GROUPS[group][0]), "collective_seq_id": self.coll[group],
             "p2p_seq_id": self.p2p[group], "op_id": len(self.entries) + 1,
             "profiling_name": "nccl:" + name, "time_created_ns": created,
             "input_sizes": [[elements // 1024, 1024]] if sizes else [],
             "input_dtypes": [dtype] if sizes else [],
             "output_sizes": [[elements // 1024, 1024]] if sizes else [],
             "output_dtypes": [dtype] if sizes else [], "state": state,
             "time_discovered_started_ns": created + 1000 if self.timed and state != "scheduled" else None,
             "time_discovered_completed_ns": created + 2000000 if done else None,
             "retired": done, "timeout_ms": 600000, "is_p2p": p2p}
        self.entries.append(e)
        return e

    def dump(self, form):
        mine = {g: d for g, d in GROUPS.items() if self.rank in d[1]}
        config = {g: {"name": g, "desc": d[0], "ranks": "[%s]" % ", ".join(map(str, d[1]))}
                  for g, d in mine.items()}
        status = {}
        for g in mine:
            own = [e for e in self.entries if e["process_group"][0] == g and not e["is_p2p"]]
            done = [e["collective_seq_id"] for e in own if e["state"] == "completed"]
            status[g] = {"last_enqueued_collective": self.coll[g],
                         "last_started_collective": max(done, default=-1),
                         "last_completed_collective": max(done, default=-1)}
        entries = self.entries
        if form == "json":
            status = {g: {k: str(v) for k, v in x.items()} for g, x in status.items()}
            entries = [{k: 0 if v is None and k.endswith("_ns") else v for k, v in e.items() if k != "frames"}
                       for e in entries]
        out = {"version": "2.10", "pg_config": config, "pg_status": status}
        return {"entries": entries, **out} if entries else out


def torch_pickle(x):
    """As torch::jit::Pickler does: protocol 2, texts and dicts once in the memo, whole numbers of more than
    32 bits as LONG1."""
    out, memo = bytearray(b"\x80\x02"), {}

    def keep(key):
        memo[key] = len(memo)
        out.extend(struct.pack("<cB", b"q", memo[key]) if memo[key] < 256
                   else struct.pack("<cI", b"r", memo[key]))

    def known(key):
        if key in memo:
            out.extend(struct.pack("<cB", b"h", memo[key]) if memo[key] < 256
                       else struct.pack("<cI", b"j", memo[key]))
        return key in memo

    def save(v):
        if v is None:
            out.extend(b"N")
        elif isinstance(v, bool):
            out.extend(b"\x88" if v else b"\x89")
        elif isinstance(v, int):
            if 0 <= v < 256:
                out.extend(struct.pack("<cB", b"K", v))
            elif 0 <= v < 65536:
                out.extend(struct.pack("<cH", b"M", v))
            else:
                out.extend(struct.pack("<ci", b"J", v) if -2**31 <= v < 2**31
                           else struct.pack("<cBq", b"\x8a", 8, v))
        elif isinstance(v, str):
            if not known(v):
                out.extend(struct.pack("<cI", b"X", len(v.encode())) + v.encode())
                keep(v)
        elif isinstance(v, tuple):
            for i in v:
                save(i)
            out.extend(b"\x86")
            keep((id(v), "tuple"))
        elif not known(id(v)):
            out.extend(b"}" if isinstance(v, dict) else b"]")
            keep(id(v))
            out.extend(b"(")
            for i in v:
                save(i)
                if isinstance(v, dict):
                    save(v[i])
            out.extend(b"u" if isinstance(v, dict) else b"e")
    save(x)
    return bytes(out) + b"."


def plant(kind):
    """The ranks, each with its entries."""
    job = [Rank(r, timed=kind == "timed") for r in range(8)]
    dp = lambda r: "5" if r % 2 == 0 else "6"
    for _ in range(3):
        for x in job:
            x.call("%d" % (1 + x.rank // 2), "_all_gather_base", "completed")
            x.call(dp(x.rank), "_reduce_scatter_base", "completed", dtype="Float")
            x.call("0", "all_reduce", "completed")
    for x in job:
        open_ = "started" if x.timed else "scheduled"
        if kind == "healthy":
            x.now += 400 * S
        elif kind in ("never", "timed"): # rank 3 stops before its step; the others call the next ones, too
            if x.rank != 3:
                x.call("0", "all_reduce", open_)
                x.call(dp(x.rank), "_reduce_scatter_base", "scheduled", dtype="Float")
        elif kind == "behind": # rank 3 is missing from tp, where rank 2 waits, for whom the others of dp wait
            if x.rank == 2:
                x.call("2", "_all_gather_base", open_)
            elif x.rank % 2 == 0:
                x.call("5", "_reduce_scatter_base", open_, dtype="Float")
        elif kind == "other":
            x.call("0", "broadcast" if x.rank == 5 else "all_reduce", open_)
        elif kind == "size":
            x.call("0", "all_reduce", open_, elements=1024 if x.rank == 5 else 1048576)
        elif kind == "type":
            x.call("0", "all_reduce", open_, dtype="Half" if x.rank == 5 else "BFloat16")
        elif kind in ("given_up", "aborted",
                      "gloo"): # rank 3 stops; the others' watchdogs have given up, or their abort ended it
            if x.rank != 3:
                e = x.call("0", "all_reduce", "completed" if kind == "aborted" else open_)
                e["retired"] = True
                if kind == "aborted": # rank 0 timed out, and all aborted a moment later
                    e["time_discovered_completed_ns"] = e["time_created_ns"] + (600 if x.rank == 0 else 599.99) * S + 10**7
                    e["time_discovered_completed_ns"] = int(e["time_discovered_completed_ns"])
            if kind == "gloo": # knows no completed: retired is done
                e = e if x.rank != 3 else x.call("0", "all_reduce", open_)
                for e in x.entries:
                    e.update(profiling_name=e["profiling_name"].replace("nccl:", "gloo:"), state="scheduled",
                             retired=True,
                             time_discovered_completed_ns=None)
        elif kind == "inside":
            x.call("0", "all_reduce", open_)
        elif kind == "coalesced": # finished as a whole; its parts keep the state they had
            x.call("0", "_all_gather_base", "scheduled")
            x.call("0", "_all_gather_base", "scheduled", same=True)
            x.call("0", "coalesced", "completed", same=True, sizes=False)
            if x.rank % 4 == 0:
                x.call("7", "send %d->%d" % (x.rank // 4, 1 - x.rank // 4), "scheduled", p2p=True)
                x.call("7", "recv %d<-%d" % (x.rank // 4, 1 - x.rank // 4), "scheduled", p2p=True, same=True)
                x.call("7", "coalesced", "completed", p2p=True, same=True, sizes=False)
        elif kind in ("send", "batch") and x.rank == 0:
            x.call("7", "send 0->1", "scheduled", p2p=True)
            if kind == "batch":
                x.call("7", "coalesced", open_, p2p=True, same=True, sizes=False)
    return job


def make(directory, kind, form="json", ranks=None, after=650):
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    for x in plant(kind):
        if ranks is not None and x.rank not in ranks:
            continue
        path, dump = directory / ("nccl_trace_rank_%d" % x.rank), x.dump(form)
        if form == "json":
            path.write_text(json.dumps(dump))
        else:
            path.write_bytes(torch_pickle(dump) if form == "torch" else pickle.dumps(dump, int(form)))
        os.utime(path, ns=(T0 + after * S, T0 + after * S))


if __name__ == "__main__":
    if "-" in sys.argv[2]:
        for name in sys.argv[2:]:
            make("%s/%s" % (sys.argv[1], name), *name.split("-"))
    else:
        make(sys.argv[1], sys.argv[2], sys.argv[3], [int(r) for r in sys.argv[4].split(",")])
