"""Writes what ran as the plugin writes it (docs/format.md)."""

import gzip
import json
import os

from draws import mix, stream
from program import ALLTOALL, BROADCAST, GATHER, REDUCE, SCATTER

PRODUCER = "nccl-inspector-c 0.1.0"
# of nccl-tests: what its size is of the message size, and the bus factor, for n ranks
FACTORS = {
    REDUCE: lambda n: (1, 2.0 * (n - 1) / n),
    GATHER: lambda n: (n, (n - 1) / n),
    SCATTER: lambda n: (n, (n - 1) / n),
    ALLTOALL: lambda n: (n, (n - 1) / n),
    BROADCAST: lambda n: (1, 1.0),
}


def dumps(x):
    return json.dumps(x, separators=(",", ":"))


def kernel(job, comm, func, size):
    """(algorithm, protocol, channels) that NCCL would take, roughly."""
    channels = min(32, max(1, size >> 17)) if size < 1 << 22 else (24 if not comm.nics else 16)
    if func == REDUCE and comm.nics and len(comm.hosts) > 2 and size < 1 << 20:
        return "TREE", "LL" if size < 1 << 14 else "LL128", min(channels, 8)
    if size < 1 << 13:
        return "RING", "LL", 1 if size < 1024 else 2
    return "RING", "LL128" if size < 1 << 22 else "SIMPLE", channels


def bucket(ns):
    """Lower edge of a roll-up's bucket."""
    if ns < 1024:
        return 0
    top = ns.bit_length() - 1
    if top >= 36:
        return 1 << 36
    return ns >> top - 2 << top - 2


class Account:
    """A communicator's figures for one kind of operation."""

    def __init__(self):
        self.started = self.written = self.sampled = self.small = 0
        self.rolled = {}

    def roll(self, func, size, ns, a, b):
        x = self.rolled.setdefault((func, size), [0, 0, ns, ns, {}, a, b])
        x[0] += 1
        x[1] += ns
        x[2], x[3], x[6] = min(x[2], ns), max(x[3], ns), b
        edge = bucket(ns)
        x[4][edge] = x[4].get(edge, 0) + 1

    def stats(self):
        out = {}
        if self.small:
            out["min_size"] = self.small
        if self.sampled:
            out["sampled"] = self.sampled
        return {
            "started": self.started,
            "written": self.written,
            "filtered_by": out,
            "dropped_by": {},
            "incomplete": 0,
            "late": 0,
            "in_flight": 0,
            "timing_fallback_by": {},
        }


class RankLog:
    """One rank's log: lines by dump interval and communicator."""

    def __init__(self, job, weather, clocks, r, life):
        self.job, self.w, self.clocks, self.r, self.life = job, weather, clocks, r, life
        self.host = job.host_of[r]
        self.interval = life["interval_ns"]
        rng = stream(job.seed, job.attempt, "process", r)
        self.pid = rng.randrange(2000, 400000)
        self.start = clocks.host(self.host, -1.5e9 - 3e8 * rng.random())
        self.tail = '","pid":%d,"producer":"%s"}' % (self.pid, PRODUCER)
        self.tail = ',"hostname":"%s%s' % (job.hostnames[self.host], self.tail)
        self.uuid = "GPU-%08x-%04x-4%03x-a%03x-%012x" % (
            mix(job.job_id, r) >> 32,
            r,
            r,
            r,
            mix(job.job_id, r, 1) >> 16,
        )
        self.lines = {}
        self.n = 0
        self.last = 0

    def head(self, comm, i):
        name = '"comm_name":%s,' % dumps(comm.name) if comm.name else ""
        return (
            '{"header":{"id":"%s",%s"rank":%d,"n_ranks":%d,"nnodes":%d},"metadata":{'
            '"inspector_output_format_version":"v4.0",'
            '"git_rev":"5ec0ad000","rec_mechanism":"nccl_profiler_interface","dump_timestamp_us":'
            % (comm.hash, name, i, len(comm.ranks), len(comm.hosts))
        )

    def process_head(self):
        return (
            '{"header":{"id":"0x0","rank":%d,"n_ranks":%d,"nnodes":0},"metadata":{'
            '"inspector_output_format_version":"v4.0",'
            '"git_rev":"5ec0ad000","rec_mechanism":"nccl_profiler_interface","dump_timestamp_us":'
            % (self.r, self.job.world)
        )

    def operations(self, log, comm, i, head):
        """Records of one communicator's operations, in the order of their ends, into self.lines. Returns both
        accounts."""
        clocks, r = self.clocks, self.r
        job, w = self.job, self.w
        h = self.host
        fits = clocks.delivery[r]
        at_fit = 0
        epoch = clocks.epoch + clocks.offset[h]
        drift = 1.0 + clocks.drift[h]
        step_at = clocks.step_at if h == clocks.stepped else float("inf")
        step_ns = clocks.step_ns
        resolution = clocks.resolution
        gpu_epoch = clocks.gpu_epoch[r]
        interval, tail, lines = self.interval, self.tail, self.lines
        overlap = w["overlap_us"] * 1000.0
        rng = stream(job.noise, job.attempt, "stamps", r, comm.number)
        chance = rng.random
        sample, smallest = w.get("sample"), w.get("min_size", 0)
        n = len(comm.ranks)
        coll, p2p = Account(), Account()
        symmetric = w.get("symmetric") if comm.role == "t" and not comm.nics and not job.sequence else None
        ops = [(x[3][i], x[4], 0, x) for x in log.colls[comm.number]]
        messages = [(x[6], x[5], 1, x) for x in log.messages[r] if x[0] == comm.number]
        if messages:  # numbers are given as the calls are made
            ops = sorted(ops + messages, key=lambda o: o[0])
        shapes, serials = {}, {}
        cut = self.life["cut_ns"]
        for enq, end, message, op in ops:
            if message:
                _, is_send, peer, size, start, end, enq = op
            else:
                start = op[2][i]
            if cut is not None and end > cut:
                continue
            # A kernel's first channel is stamped within a microsecond of its begin; the last one's stop may
            # come late.
            stop = end + overlap * chance() * chance()
            start -= 400.0 * chance()
            while at_fit < len(fits) and start >= fits[at_fit][0]:
                since, late, gpu_drift = fits[at_fit]
                self.clock_line(comm, head, max(start, 0.0), stop, late, coll.written + p2p.written)
                at_fit += 1
            first = int(start + gpu_epoch) // resolution * resolution
            last = int(stop + gpu_epoch) // resolution * resolution
            ns = max(last - first, resolution)
            begin = epoch + int((first - gpu_epoch) * drift + late + (start - since) * gpu_drift)
            queued = epoch + int(enq * drift)
            if start >= step_at:
                begin += step_ns
            if enq >= step_at:
                queued += step_ns
            us = (ns + 500) // 1000 or 1
            block = int(stop // interval) + 1
            self.last = block if block > self.last else self.last
            stamp = epoch + int(block * interval * drift) + (step_ns if block * interval >= step_at else 0)
            stamp //= 1000
            key = (block, comm.number)
            if message:
                number = p2p.started
                p2p.started += 1
                func = "Send" if is_send else "Recv"
                if size < smallest:
                    p2p.small += 1
                    continue
                if sample:
                    p2p.roll(func, size, ns, begin, begin + ns)
                    if mix(comm.number, number, "p2p") % sample:
                        p2p.sampled += 1
                        continue
                p2p.written += 1
                bw = size / ns
                call = ',"call_sn":%d' % number if job.call_numbers else ""
                line = (
                    f'{head}{stamp}{tail},"p2p_perf":{{"p2p":"{func}","p2p_sn":{number},"p2p_peer":{peer},'
                    f'"p2p_msg_size_bytes":{size},'
                    f'"p2p_exec_time_us":{us},"p2p_timing_source":"kernel_gpu","p2p_algobw_gbs":{bw:.6f},'
                    f'"p2p_busbw_gbs":{bw:.6f},'
                    f'"p2p_datatype":"ncclBfloat16","p2p_nchannels":{2 if size > 65536 else 1},'
                    f'"p2p_exec_time_ns":{ns},'
                    f'"p2p_enqueue_ns":{queued},"p2p_gpu_start_delta_ns":{begin - queued},"rec_sn":{number},'
                    f'"nccl_tests_size_bytes":{size}{call}}}}}\n'
                )
            else:
                shape = shapes.get((op[0], op[1]))
                if shape is None:
                    func, size = log.templates[op[0]].meta[op[1]]
                    algo, proto, channels = kernel(job, comm, func, size)
                    factor, bus = FACTORS[func](n)
                    datatype = (
                        "ncclInt8" if func == GATHER else "ncclFloat32" if size == 4 else "ncclBfloat16"
                    )
                    special = symmetric if func == REDUCE else None
                    how = f'"coll_algo":"{algo}","coll_proto":"{proto}",'
                    if special:
                        how = f'"coll_algo":"{special.split("_", 1)[1]}",'
                    how += f'"coll_datatype":"{datatype}","coll_root":0,"coll_nchannels":{channels},'
                    how += '"coll_exec_time_ns":'
                    shape = shapes[op[0], op[1]] = (func, size, size * factor, bus, how, special)
                func, size, tests, bus, how, special = shape
                number = coll.started
                coll.started += 1
                serial = serials.get(func, 0)
                serials[func] = serial + 1
                if size < smallest:
                    coll.small += 1
                    continue
                if sample:
                    coll.roll(func, size, ns, begin, begin + ns)
                    if mix(comm.number, number) % sample:
                        coll.sampled += 1
                        continue
                coll.written += 1
                bw = tests / ns
                more = ',"call_sn":%d' % number if job.call_numbers else ""
                if special:
                    more += ',"symmetric":true,"coll_kernel":"%s",%s' % (special, phases(op, i, ns))
                line = (
                    f'{head}{stamp}{tail},"coll_perf":{{"coll":"{func}","coll_sn":{serial},'
                    f'"coll_msg_size_bytes":{size},'
                    f'"coll_exec_time_us":{us},"coll_timing_source":"kernel_gpu","coll_algobw_gbs":{bw:.6f},'
                    f'"coll_busbw_gbs":{bw * bus:.6f},{how}{ns},"coll_enqueue_ns":{queued},'
                    f'"coll_gpu_start_delta_ns":{begin - queued},"rec_sn":{number},'
                    f'"nccl_tests_size_bytes":{tests}{more}}}}}\n'
                )
            x = lines.get(key)
            if x is None:
                lines[key] = [line]
            else:
                x.append(line)
        self.n += coll.written + p2p.written
        return coll, p2p

    def clock_line(self, comm, head, t, stop, late, samples):
        c, h = self.clocks, self.host
        block = int(stop // self.interval) + 1
        stamp = c.host(h, block * self.interval) // 1000
        # The clocks are read as the line is written; the offset was seen before, with the record that
        # follows.
        here = self.lines.setdefault((block, comm.number), [])
        read = block * self.interval + 1e5 * comm.number + 10.0 * len(here)
        ticks, seen = int((read + 9e12) * 2.5), c.host(h, t)
        line = (
            '%s%d%s,"clock":{"source":"tsc","ticks":%d,"monotonic_ns":%d,"realtime_ns":%d,'
            '"ns_per_tick":0.400000000000,'
            '"gpu_offset_ns":%d,"gpu_offset_at_ns":%d,"gpu_samples":%d}}\n'
            % (
                head,
                stamp,
                self.tail,
                ticks,
                int(read + 9e12),
                c.host(h, read),
                seen - int(t + c.gpu_epoch[self.r]) + int(late),
                seen,
                samples + 1,
            )
        )
        here.append(line)

    def write(self, log, folder, level):
        """The file of this rank. Returns how many records are in it."""
        job, r, c = self.job, self.r, self.clocks
        mine = [(comm, comm.ranks.index(r)) for comm in job.comms if r in comm.ranks]
        accounts = []
        for comm, i in mine:
            accounts.append(self.operations(log, comm, i, self.head(comm, i)))
        first = c.host(self.host, 0) // 1000
        out = [self.process(first)]
        for k, (comm, i) in enumerate(mine):
            init = c.host(self.host, -1.2e9 + 3e7 * comm.number)
            gpu = r % job.gpus
            body = {
                "name": comm.name,
                "hash": comm.hash,
                "rank": i,
                "n_ranks": len(comm.ranks),
                "nnodes": len(comm.hosts),
                "gpu_index": gpu,
                "gpu_uuid": self.uuid,
                "gpu_pci": "0000:%02x:00.0" % (0x1B + 0x10 * gpu),
                "init_ns": init,
            }
            out.append('%s%d%s,"comm":%s}\n' % (self.head(comm, i), first, self.tail, dumps(body)))
        for key in sorted(self.lines):
            out += self.lines[key]
        if self.life["cut_ns"] is None:
            self.close(out, mine, accounts)
        name = "%s-pid%d-%d.jsonl.gz" % (job.hostnames[self.host], self.pid, self.start // 10**9)
        with open(os.path.join(folder, name), "wb") as f:
            # Members of some 2,000 lines, as the plugin flushes.
            for at in range(0, len(out), 2000):
                f.write(gzip.compress("".join(out[at : at + 2000]).encode(), level, mtime=0))
        return self.n

    def process(self, stamp):
        job, r = self.job, self.r
        env = {
            "RANK": str(r),
            "LOCAL_RANK": str(r % job.gpus),
            "WORLD_SIZE": str(job.world),
            "SLURM_JOB_ID": str(job.job_id),
        }
        if job.attempt:
            env["TORCHELASTIC_RESTART_COUNT"] = str(job.attempt)
        settings = {}
        if "sample" in self.w:
            settings["NCCL_INSPECTOR_SAMPLE"] = "1/%d" % self.w["sample"]
        if "min_size" in self.w:
            settings["NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES"] = str(self.w["min_size"])
        new = job.call_numbers
        body = {
            "start_ns": self.start,
            "boot_id": "%08x-0000-4000-8000-000000000000" % (mix(job.hostnames[self.host]) >> 32),
            "exe": job.base_name,
            "rank": r,
            "local_rank": r % job.gpus,
            "world_size": job.world,
            "env": env,
            "nccl_version": (23102 if "symmetric" in self.w else 22809) if new else 22706,
            "interface": ("v7" if "symmetric" in self.w else "v5") if new else "v4",
            "settings": settings,
            "blackbox": None,
        }
        return '%s%d%s,"process":%s}\n' % (self.process_head(), stamp, self.tail, dumps(body))

    def close(self, out, mine, accounts):
        """The last lines: accounts, which say that nothing is missing."""
        c = self.clocks
        end = c.host(self.host, (self.last + 1) * self.interval)
        stamp = end // 1000
        for (comm, i), (coll, p2p) in zip(mine, accounts):
            head = "%s%d%s" % (self.head(comm, i), stamp, self.tail)
            for kind, account in (("coll", coll), ("p2p", p2p)):
                for (func, size), x in sorted(account.rolled.items()):
                    body = {
                        "kind": kind,
                        "func": func,
                        "msg_size_bytes": size,
                        "timing_source": "kernel_gpu",
                        "from_ns": x[5],
                        "to_ns": x[6],
                        "count": x[0],
                        "sum_bytes": x[0] * size,
                        "sum_ns": x[1],
                        "min_ns": x[2],
                        "max_ns": x[3],
                        "hist": {str(k): x[4][k] for k in sorted(x[4])},
                    }
                    out.append('%s,"rollup":%s}\n' % (head, dumps(body)))
            out.append('%s,"dump_stats":%s}\n' % (head, dumps(self.stats(coll, p2p))))
            out.append('%s,"comm_end":{"why":"destroy","ns":%d}}\n' % (head, end - 1000000 + comm.number))
        last = self.stats(Account(), Account())
        last["end"] = "finalized"
        out.append('%s%d%s,"dump_stats":%s}\n' % (self.process_head(), stamp, self.tail, dumps(last)))

    @staticmethod
    def stats(coll, p2p):
        return {
            "coll_records": coll.written,
            "coll_dropped_total": 0,
            "coll_dropped_since_last_dump": 0,
            "p2p_records": p2p.written,
            "p2p_dropped_total": 0,
            "p2p_dropped_since_last_dump": 0,
            "proxy_records": 0,
            "proxy_dropped_total": 0,
            "proxy_dropped_since_last_dump": 0,
            "final": True,
            "coll": coll.stats(),
            "p2p": p2p.stats(),
            "strays": {},
        }


def phases(op, i, ns):
    """Of a symmetric kernel: the wait for the peers, the work, and the barrier at its end."""
    wait = max(0, min(int(max(op[2]) - op[2][i]) + 2500, ns - 2000))
    final = min(1800, (ns - wait) // 3)
    return '"initial_sync_ns":%d,"compute_ns":%d,"final_sync_ns":%d' % (wait, ns - wait - final, final)


def write(job, weather, clocks, log, folder, life, missing=(), level=1):
    """All ranks' logs into folder; returns how many records."""
    os.makedirs(folder, exist_ok=True)
    return sum(
        RankLog(job, weather, clocks, r, life).write(log, folder, level)
        for r in range(job.world)
        if r not in missing
    )
