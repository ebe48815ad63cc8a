"""Lines of the log as docs/format.md has them, for tests that invent a job: the one place where they are put
together by hand.

The plugin has no part in it, so that a reader is not checked against our own writer alone. A value is written
as it is given, also one that no plugin would write. What a function takes by name may be left out where a
test wants a line without it. Times are ns since 1970 unless their name says us.
"""
import gzip
import json
import re

T0 = 1790000000 * 10**9  # when the jobs begin: 2026-09-21T14:13:20Z
# Keys of an operation's record, in their order. Those of the first list have the kind in front: coll_sn.
PREFIXED = ("sn", "peer", "msg_size_bytes", "exec_time_us", "timing_source", "algobw_gbs", "busbw_gbs",
            "algo", "proto", "datatype", "root", "nchannels", "exec_time_ns", "enqueue_ns",
            "gpu_start_delta_ns")
BARE = ("rec_sn", "nccl_tests_size_bytes", "call_sn", "plan_sn", "graph", "user_tag", "nccl_tag", "symmetric",
        "coll_kernel", "shared_span", "initial_sync_ns", "compute_ns", "final_sync_ns", "prev_replay_ns")
PERF = {kind: [(k, kind + "_" + k) for k in PREFIXED] + [(k, k) for k in BARE] for kind in ("coll", "p2p")}
COMPACT = json.JSONEncoder(separators=(",", ":")).encode
SPACED = json.JSONEncoder().encode


def header(id_, rank, n_ranks, nnodes, comm_name=None):
    """Of a communicator's line. Older versions of NCCL give it no name, which leaves the key out."""
    h = {"id": id_} if comm_name is None else {"id": id_, "comm_name": comm_name}
    h.update(rank=rank, n_ranks=n_ranks, nnodes=nnodes)
    return h


def own_header(rank, world_size):
    """Of a line about the process itself."""
    return header("0x0", rank, world_size, 0)


def metadata(us, host, pid, git_rev="1a2b3c4d5", producer="nccl-inspector-c 0.1.0",
             mechanism="nccl_profiler_interface"):
    """us: when the line was written. producer=None: as NVIDIA's plugin, which does not name itself."""
    m = {"inspector_output_format_version": "v4.0", "git_rev": git_rev, "rec_mechanism": mechanism,
         "dump_timestamp_us": us, "hostname": host, "pid": pid}
    if producer is not None:
        m["producer"] = producer
    return m


def line(about, meta, kind, body):
    return {"header": about, "metadata": meta, kind: body}


def text(x, spaced=False):
    """One line without its end. The plugin writes no blanks; what reads it must not care (spaced)."""
    return SPACED(x) if spaced else COMPACT(x)


def template(x):
    """The line, with its end, for many of its kind: "%d", "%s" and "%.6f" in it are the % operator's."""
    return re.sub(r'"(%(?:d|\.\d+f))"', r"\1", text(x)) + "\n"


def process(start_ns, rank, world_size, boot_id, exe="python3", local_rank=None, env=None, interface="v4"):
    return {"start_ns": start_ns, "boot_id": boot_id, "exe": exe, "rank": rank, "local_rank": local_rank,
            "world_size": world_size, "env": env or {}, "nccl_version": 23007, "interface": interface,
            "settings": {}}


def comm(about, init_ns, gpu_index=None, gpu_pci=None):
    """about: the communicator's header, which says the same of it."""
    return {"name": about.get("comm_name"), "hash": about["id"], "rank": about["rank"],
            "n_ranks": about["n_ranks"], "nnodes": about["nnodes"], "gpu_index": gpu_index, "gpu_uuid": None,
            "gpu_pci": gpu_pci, "init_ns": init_ns}


def clock(ticks, monotonic_ns, realtime_ns, ns_per_tick, gpu_offset_ns, gpu_offset_at_ns):
    return {"source": "tsc", "ticks": ticks, "monotonic_ns": monotonic_ns, "realtime_ns": realtime_ns,
            "ns_per_tick": ns_per_tick, "gpu_offset_ns": gpu_offset_ns, "gpu_offset_at_ns": gpu_offset_at_ns,
            "gpu_samples": 9}


def perf(kind, func, **keys):
    """The record of an operation, kind "coll" or "p2p": those keys of PREFIXED and BARE that are given."""
    x = {kind: func}
    for k, name in PERF[kind]:
        if k in keys:
            x[name] = keys[k]
    assert len(x) == len(keys) + 1, keys
    return x


def counts(started, written, filtered_by=None, dropped_by=None, incomplete=0, late=0, in_flight=0):
    """A kind's part of a dump_stats line."""
    return {"started": started, "written": written, "filtered_by": filtered_by or {},
            "dropped_by": dropped_by or {}, "incomplete": incomplete, "late": late, "in_flight": in_flight,
            "timing_fallback_by": {}}


def dump_stats(coll, p2p, final, records=(0, 0, 0), dropped=(0, 0, 0)):
    """coll, p2p: counts. records, dropped: of collectives, P2P and network operations, in NVIDIA's keys."""
    x = {}
    for i, name in enumerate(("coll", "p2p", "proxy")):
        x[name + "_records"] = records[i]
        x[name + "_dropped_total"] = dropped[i]
        x[name + "_dropped_since_last_dump"] = 0
    x.update(final=final, coll=coll, p2p=p2p, strays={})
    return x


def stuck(kind, func, sn, rec_sn, size, channels, enqueue_ns, age_ms, channels_open, why="stuck",
          state="kernel", datatype="ncclBfloat16", root=0, peer=None):
    """Of a stuck or an in_flight line. channels: expected, started, stopped."""
    x = {"kind": kind, "func": func, "sn": sn, "rec_sn": rec_sn, "msg_size_bytes": size}
    x.update(zip(("channels_expected", "channels_started", "channels_stopped"), channels))
    x.update({"enqueue_ns": enqueue_ns, "age_ms": age_ms, "why": why, "state": state, "datatype": datatype})
    x.update({"root": root} if peer is None else {"peer": peer})
    x["channels_open"] = channels_open
    return x


def mark(said, ns, command):
    """A control line: `mark` in a control file."""
    return {"source": "file", "file": "nccl-inspector.control", "line": 1, "command": command, "mark": said,
            "result": "done", "why": None, "events": "coll,p2p,kernelch", "verbose": False, "sample": 1,
            "ns": ns}


def tag_name(number, name, ns, source="tags", result="done"):
    """A control line that gives a tag a name: of NCCL_INSPECTOR_TAGS, or `tag` in a control file (source
    "file")."""
    x = {"source": source}
    if source == "file":
        x.update(file="nccl-inspector.control", line=1)
    x.update(command="tag %s %s" % (number, name), result=result, why=None, events="coll,p2p,kernelch",
             verbose=False, sample=1,
             ns=ns)
    return x


def rollup(func, size, from_ns, to_ns, count, sum_bytes, sum_ns, min_ns, max_ns):
    """Of a collective."""
    return {"kind": "coll", "func": func, "msg_size_bytes": size, "timing_source": "kernel_gpu",
            "from_ns": from_ns, "to_ns": to_ns, "count": count, "sum_bytes": sum_bytes, "sum_ns": sum_ns,
            "min_ns": min_ns, "max_ns": max_ns}


def path(folder, host, pid, begun=None):
    """The name of a process's log; begun: the second it has in its name."""
    return "%s/%s-pid%d%s.jsonl" % (folder, host, pid, "" if begun is None else "-%d" % begun)


def write(name, texts, gz=False, member_lines=100):
    """texts: lines without their ends. gz: members of so many lines, .gz behind the name. Returns it."""
    if not gz:
        with open(name, "w") as f:
            f.write("".join(x + "\n" for x in texts))
        return name
    with open(name + ".gz", "wb") as f:
        for i in range(0, len(texts), member_lines):
            f.write(gzip.compress("".join(x + "\n" for x in texts[i:i + member_lines]).encode(), 1, mtime=0))
    return name + ".gz"


class Log:
    """The log of one process, line by line."""

    def __init__(self, rank, world_size, host, pid, spaced=False, **about):
        """about: what metadata takes beside us, host and pid."""
        self.own, self.host, self.pid = own_header(rank, world_size), host, pid
        self.spaced, self.about, self.lines = spaced, about, []

    def add(self, us, kind, body, about=None):
        """about: a communicator's header; None: the line is about the process."""
        meta = metadata(us, self.host, self.pid, **self.about)
        self.lines.append(text(line(about or self.own, meta, kind, body), self.spaced))

    def write(self, folder, begun=None, gz=False, member_lines=100):
        return write(path(folder, self.host, self.pid, begun), self.lines, gz, member_lines)
