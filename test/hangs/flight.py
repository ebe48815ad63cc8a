"""Flight Recorder dumps of a simulated job, as PyTorch's watchdogs write them: a pickle or a JSON document
for
each rank."""

import json
import os
import pickle

from world import MS, S

NAMES = {
    "AllReduce": "all_reduce",
    "AllGather": "_all_gather_base",
    "ReduceScatter": "_reduce_scatter_base",
    "Broadcast": "broadcast",
}


def group_number(job, name):
    return str(list(job.sim.comms).index(name))


def torch_name(op, backend="nccl"):
    if not op.p2p:
        return "%s:%s" % (backend, NAMES[op.func])
    return "%s:%s %d%s%d" % (
        backend,
        op.func.lower(),
        op.comm.place[op.rank],
        "->" if op.func == "Send" else "<-",
        op.peer,
    )


def entry(job, base, op, now, sns, timing, gave_up, backend):
    """sns: the numbers so far by group: collectives, sends and receives, all. gave_up: the watchdog has
    retired what is open."""
    pg = op.comm.name
    counts = sns.setdefault(pg, [0, 0, 0])
    counts[1 if op.p2p else 0] += 1
    counts[2] += 1
    begun = op.start is not None and op.start <= now
    done = op.end is not None and op.end <= now
    state = (
        "completed"
        if done and backend != "gloo"
        else "started" if begun and timing and backend != "gloo" else "scheduled"
    )
    kind = [[op.bytes // 4]]
    number = group_number(job, pg)
    return {
        "record_id": len(sns),
        "pg_id": int(number),
        "process_group": [number, "default_pg" if pg == job.world else pg],
        "collective_seq_id": counts[0],
        "p2p_seq_id": counts[1],
        "op_id": counts[2],
        "profiling_name": torch_name(op, backend),
        "time_created_ns": base + op.enq,
        "duration_ms": None,
        "input_sizes": kind,
        "input_dtypes": ["Float"],
        "output_sizes": kind,
        "output_dtypes": ["Float"],
        "state": state,
        "time_discovered_started_ns": (
            base + op.start + 50 * MS if begun and timing and backend != "gloo" else None
        ),
        "time_discovered_completed_ns": base + op.end + 90 * MS if done and backend != "gloo" else None,
        "retired": done or gave_up,
        "timeout_ms": 600000,
        "is_p2p": op.p2p,
        "frames": [],
    }


def dump(job, base, r, now, timing, gave_up=False, backend="nccl"):
    sns, entries, status = {}, [], {}
    for i, op in enumerate(o for o in r.ops if o.enq <= now):
        e = entry(job, base, op, now, sns, timing, gave_up, backend)
        e["record_id"] = i
        entries.append(e)
        if not op.p2p:
            s = status.setdefault(group_number(job, op.comm.name), [0, 0, 0])
            s[0] = e["collective_seq_id"]
            if op.start is not None and op.start <= now:
                s[1] = e["collective_seq_id"]
            if op.end is not None and op.end <= now:
                s[2] = e["collective_seq_id"]
    config = {}
    for name in r.comms:
        comm = job.sim.comms[name]
        n = group_number(job, name)
        config[n] = {
            "name": n,
            "desc": "default_pg" if name == job.world else name,
            "ranks": str(list(comm.members)),
        }
    keys = ("last_enqueued_collective", "last_started_collective", "last_completed_collective")
    return {
        "version": "2.10",
        "entries": entries,
        "pg_config": config,
        "pg_status": {n: dict(zip(keys, (str(v) for v in s))) for n, s in status.items()},
    }


def write(job, base, now, folder, random, skip=(), **how):
    """Dumps of all ranks but `skip`, made at `now`; each file's time is that of its dump."""
    style = random.choice(("nccl_trace_rank_%d", "comm_lib_trace_rank_%d", "host-nccl_trace_rank_%d.json"))
    as_pickle = not style.endswith(".json") and random.random() < 0.7
    for r in job.sim.ranks:
        if r.number in skip:
            continue
        d = dump(job, base, r, now, **how)
        path = os.path.join(folder, style % r.number)
        with open(path, "wb") as f:
            f.write(pickle.dumps(d, 2) if as_pickle else json.dumps(d).encode())
        at = base + now + random.randrange(S)
        os.utime(path, ns=(at, at))
