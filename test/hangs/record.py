"""What the plugin would have left of a simulated job at an instant: logs, black boxes and copies of them."""

import gzip
import json
import os

import box
from world import MS, S, US, seen

STATS = (
    '"dump_stats":{"coll_records":%d,"coll_dropped_total":0,"coll_dropped_since_last_dump":0,'
    '"p2p_records":%d,'
    '"p2p_dropped_total":0,"p2p_dropped_since_last_dump":0,"proxy_records":0,"proxy_dropped_total":0,'
    '"proxy_dropped_since_last_dump":0,"final":%s,"coll":%s,"p2p":%s,"strays":{}%s}'
)
ACCOUNT = (
    '{"started":%d,"written":%d,"filtered_by":{},"dropped_by":{},"incomplete":%d,"late":0,"in_flight":%d,'
    '"timing_fallback_by":{}}'
)
NO_ACCOUNT = ACCOUNT % (0, 0, 0, 0)


BRACKET = 5 * US  # of a replay's start and stop


def plain_end(o):
    """When the plugin saw it end: of a replay its bracket is all there is."""
    return o.end if o.replay is None else o.enq + BRACKET


class Clock:
    """A host's CLOCK_REALTIME: it differs from the true time by skew, and from `at` on by step more."""

    def __init__(self, base, skew=0, at=None, step=0):
        self.base, self.skew, self.at, self.step = base, skew, at, step

    def unix(self, t, said_at=None):
        """t as the plugin says it at the true time said_at: by what it knows then of the clocks."""
        when = t if said_at is None else said_at
        return self.base + t + self.skew + (self.step if self.at is not None and when >= self.at else 0)


class Look:
    """A job seen at `now`. base: Unix ns of the job's beginning. mono: CLOCK_MONOTONIC then, of all hosts.
    Options by rank: lag: ns before a death that its box lacks; full_disk: ranks whose log could not be
    written from some time on; frozen: ranks that are stopped since then, alive. old_nccl: an NCCL before
    2.28, which shows no calls; old_box: of a release of the plugin before the one that says how it ended;
    nccl: (version, interface); old_plugin: it waits for kernels of replays for ever.
    """

    def __init__(
        self,
        job,
        now,
        base,
        mono,
        stuck_s,
        folder,
        clocks=None,
        lag=None,
        full_disk=None,
        frozen=None,
        begun=0,
        interval=S,
        old_nccl=False,
        old_box=False,
        nccl=None,
        old_plugin=False,
    ):
        self.job, self.now, self.base, self.mono, self.stuck, self.folder = (
            job,
            now,
            base,
            mono,
            stuck_s * S,
            folder,
        )
        self.clocks = clocks or {}
        self.lag, self.full, self.frozen = lag or {}, full_disk or {}, frozen or {}
        self.interval, self.old_nccl, self.old_box = interval, old_nccl, old_box
        self.nccl = nccl or ((22703, "v4") if old_nccl else (23007, "v6"))
        self.old_plugin = old_plugin
        self.rccl = box.rccl()
        self.phase = {r.number: job.random.randrange(interval) for r in job.sim.ranks}
        self.begun = begun
        self.default = Clock(base)
        self.codes = {r.number: job.random.getrandbits(64) for r in job.sim.ranks}

    def clock(self, r):
        return self.clocks.get(r.host, self.default)

    def until(self, r):
        """Up to when its dump thread wrote."""
        return min([self.now] + [t for t in (r.died, self.frozen.get(r.number)) if t is not None])

    def over(self, r):
        """When the plugin of a rank wrote its process's last lines, or None: at its last communicator's end,
        or at exit."""
        ends = [c[1] for c in r.comms.values()]
        if ends and all(e is not None and e <= self.now for e in ends):
            return max(ends)
        if r.how == "exit" and r.died <= self.now:
            return r.died
        return None

    def tick(self, r, t):
        """The dump thread's first pass at or after t, or None: not yet."""
        k = -(-(t - self.phase[r.number]) // self.interval)
        at = max(self.phase[r.number] + k * self.interval, t)
        if at <= min(self.until(r), self.full.get(r.number, at)):
            return at
        over = self.over(r)
        return over if over is not None and over >= t and r.number not in self.full else None

    def ops(self, r, name):
        """[(operation, its state, when its record was written or None)] of a communicator, in the order of
        calls."""
        out = []
        for o in r.of.get(name, ()):
            state = seen(o, r, self.now, self.lag.get(r.number, 0))
            if state == "none":
                continue
            if o.replay is not None and self.old_plugin:
                state = "queued"
            at = None
            if state == "done":
                at = self.tick(r, plain_end(o) + 20 * US)
            out.append((o, state, at))
        return out

    def name(self, r):
        return "%s-pid%d-%d" % (r.host, r.pid, self.clock(r).unix(self.begun) // S)

    # logs

    def lines_of(self, r):
        """Lines of a rank's log in the order of the file, as (time of writing, order, text)."""
        clock, out = self.clock(r), []
        unix = clock.unix

        def say(at, header, body, order=0):
            out.append(
                (
                    at,
                    order,
                    '{"header":%s,"metadata":{"inspector_output_format_version":"v4.0","git_rev":"156c990e4",'
                    '"rec_mechanism":"nccl_profiler_interface","dump_timestamp_us":%d,"hostname":"%s",'
                    '"pid":%d,'
                    '"producer":"nccl-inspector-c 0.1.0"},%s}'
                    % (header, unix(at) // 1000, r.host, r.pid, body),
                )
            )

        n = len(self.job.sim.ranks)
        mine = '{"id":"0x0","rank":%d,"n_ranks":%d,"nnodes":0}' % (r.number, n)
        env = {
            "RANK": str(r.number),
            "LOCAL_RANK": str(r.number % self.job.per_host),
            "WORLD_SIZE": str(n),
            "SLURM_JOB_ID": self.job.job_id,
        }
        settings = {
            "NCCL_INSPECTOR_ENABLE": "1",
            "NCCL_INSPECTOR_DUMP_DIR": self.folder,
            "NCCL_INSPECTOR_STUCK_SECONDS": str(self.stuck // S),
        }
        say(
            self.begun,
            mine,
            '"process":'
            + json.dumps(
                {
                    "start_ns": unix(self.begun),
                    "boot_id": box.BOOT,
                    "exe": "python3",
                    "rank": r.number,
                    "local_rank": r.number % self.job.per_host,
                    "world_size": n,
                    "env": env,
                    "nccl_version": self.nccl[0],
                    **({"library": "rccl", "gpu_clock_khz": 100000} if self.rccl else {}),
                    "interface": self.nccl[1],
                    "settings": settings,
                    "blackbox": self.box_name(r),
                },
                separators=(",", ":"),
            ),
        )
        over = self.over(r)
        final = over is not None and r.number not in self.full
        for name, (begin, end, why) in r.comms.items():
            comm = self.job.sim.comms[name]
            if begin > self.until(r):
                continue
            header = '{"id":"0x%x",%s"rank":%d,"n_ranks":%d,"nnodes":%d}' % (
                comm.hash,
                "" if box.unnamed() else '"comm_name":"%s",' % name,
                comm.place[r.number],
                len(comm.members),
                self.nodes(comm),
            )
            self.comm_lines(
                r, comm, header, begin, end if end is not None and end <= self.now else None, why, say
            )
        if final:
            end = "exited" if r.how == "exit" else "finalized"
            say(over, mine, STATS % (0, 0, "true", NO_ACCOUNT, NO_ACCOUNT, ',"end":"%s"' % end), 9)
        out.sort(key=lambda x: x[:2])
        return [x[2] for x in out]

    def nodes(self, comm):
        return len({self.job.sim.ranks[m].host for m in comm.members})

    def comm_lines(self, r, comm, header, begin, end, why, say):
        unix, full = self.clock(r).unix, r.number in self.full
        say(
            begin,
            header,
            '"comm":{"name":%s,"hash":"0x%x","rank":%d,"n_ranks":%d,"nnodes":%d,"gpu_index":null,'
            '"gpu_uuid":null,'
            '"gpu_pci":null,"init_ns":%d}'
            % ("null" if box.unnamed() else '"%s"' % comm.name, comm.hash, comm.place[r.number],
               len(comm.members), self.nodes(comm), unix(begin)),
        )
        written, last_stats = [0, 0], None
        ops = self.ops(r, comm.name)
        flushes = {}
        for o, state, at in ops:
            if at is not None:
                flushes.setdefault(at, []).append(o)
        open_ops = [
            (o, s)
            for o, s, at in ops
            if s in ("inside", "queued", "given_up") or (s == "done" and at is None)
        ]
        stuck_at = {}
        for o, s in open_ops:
            at = self.tick(r, o.enq + self.stuck)
            gone = o.given_up if s == "given_up" else self.judged_over(r, o)
            if gone is not None and s != "given_up":
                say(gone, header, '"incomplete":' + self.unfinished(o, "kernel", gone, "overtaken", unix), 3)
            if at is not None and (gone is None or at < gone) and s != "done":
                stuck_at[o] = at
        for at in sorted(flushes):
            for o in flushes[at]:
                say(at, header, self.record(r, comm, o, at), 1)
                written[o.p2p] += 1
            if last_stats is None or at - last_stats >= 10 * S:
                say(at, header, self.stats(ops, at, flushes, False, since=last_stats), 2)
                last_stats = at
        if begin <= self.until(r) and (not flushes or min(flushes) > begin + S):
            self.clock_line(r, header, begin + MS, say)
        elif flushes:
            self.clock_line(r, header, min(flushes), say)
        for o, at in stuck_at.items():
            say(at, header, '"stuck":' + self.unfinished(o, self.state_at(o, r, at), at, "stuck", unix), 1)
        if stuck_at:
            for at in sorted(
                {max(min(stuck_at.values()), (last_stats or 0) + 10 * S), self.until(r) - 11 * S}
            ):
                if at >= min(stuck_at.values()) and at <= self.until(r) and (end is None or at < end):
                    say(at, header, self.stats(ops, at, flushes, False, since=last_stats), 2)
                    last_stats = at
        if end is not None and not full:
            for o, s in open_ops:
                if self.judged_over(r, o) is not None:
                    continue
                if s == "given_up" or (s != "done" and why == "destroy"):
                    say(end, header, '"incomplete":' + self.unfinished(o, "kernel", end, "finalize", unix), 3)
                elif s != "done":
                    say(
                        end,
                        header,
                        '"in_flight":' + self.unfinished(o, self.state_at(o, r, end), end, "exit", unix),
                        3,
                    )
            say(end, header, self.stats(ops, end, flushes, True, why == "destroy", last_stats), 4)
            say(end, header, '"comm_end":{"why":"%s","ns":%d}' % (why, unix(end)), 5)

    def clock_line(self, r, header, at, say):
        offset = self.clock(r).unix(at) - (self.mono + at)
        say(
            at,
            header,
            '"clock":{"source":"tsc","ticks":%d,"monotonic_ns":%d,"realtime_ns":%d,'
            '"ns_per_tick":1.000000000000,'
            '"gpu_offset_ns":%d,"gpu_offset_at_ns":%d,"gpu_samples":7}'
            % (self.mono + at, self.mono + at, self.clock(r).unix(at), offset, self.clock(r).unix(at)),
            0,
        )

    def state_at(self, o, r, at):
        return "kernel" if o.start is not None and o.start <= at and o.replay is None else "launched"

    def stats(self, ops, at, flushes, final, destroyed=False, since=None):
        """since: when the line before it was written, None: there is none."""
        kinds, new = [], []
        for p2p in (False, True):
            started = sum(1 for o, _, _ in ops if o.p2p == p2p and o.enq <= at)
            wrote = sum(1 for f, os_ in flushes.items() if f <= at for o in os_ if o.p2p == p2p)
            new.append(
                sum(
                    1
                    for f, os_ in flushes.items()
                    if f <= at and (since is None or f > since)
                    for o in os_
                    if o.p2p == p2p
                )
            )
            open_now = started - wrote
            given = sum(
                1
                for o, s, _ in ops
                if o.p2p == p2p and (s == "given_up" or (destroyed and s in ("inside", "queued")))
            )
            given = given if final else 0
            kinds.append(ACCOUNT % (started, wrote, given, open_now - given))
        return STATS % (*new, "true" if final else "false", kinds[0], kinds[1], "")

    def unfinished(self, o, state, at, why, unix):
        start = state == "kernel"
        body = {
            "kind": "p2p" if o.p2p else "coll",
            "func": o.func,
            "sn": o.sn,
            "rec_sn": o.number,
            "msg_size_bytes": o.bytes,
            "channels_expected": 8,
            "channels_started": 8 if start else 0,
            "channels_stopped": 7 if o.lost else 0,
            "enqueue_ns": unix(o.enq, at),
            "age_ms": (at - o.enq) // MS,
            "why": why,
        }
        if why != "finalize":
            body.update(state=state, datatype=o.dtype)
            body["peer" if o.p2p else "root"] = o.peer
            body["channels_open"] = ("0x80" if o.lost else "0xff") if start else "0x0"
        return json.dumps(body, separators=(",", ":"))

    def record(self, r, comm, o, at):
        if o.replay is not None:
            return self.replayed(r, o, at)
        run, what = o.end - o.start, "p2p" if o.p2p else "coll"
        sizes = '"nccl_tests_size_bytes":%d' % (
            o.bytes * (1 if o.p2p or o.func == "AllReduce" else len(comm.members))
        )
        run = run // 10 * 10 or 10 if self.rccl else run  # ticks of 10 ns
        head = (
            '"p2p":"%s","p2p_sn":%d,"p2p_peer":%d' % (o.func, o.sn, o.peer)
            if o.p2p
            else '"coll":"%s","coll_sn":%d' % (o.func, o.sn)
        )
        mid = "" if o.p2p else '"coll_algo":"RING","coll_proto":"SIMPLE",'
        root = "" if o.p2p else '"coll_root":%d,' % o.peer
        k = what
        return (
            '"%s_perf":{%s,"%s_msg_size_bytes":%d,"%s_exec_time_us":%d,"%s_timing_source":"kernel_gpu",'
            '"%s_algobw_gbs":null,'
            '"%s_busbw_gbs":null,%s"%s_datatype":"%s",%s"%s_nchannels":8,"%s_exec_time_ns":%d,'
            '"%s_enqueue_ns":%d,'
            '"%s_gpu_start_delta_ns":%d,"rec_sn":%d,%s%s}'
            % (
                what,
                head,
                k,
                o.bytes,
                k,
                max(1, (run + 500) // 1000),
                k,
                k,
                k,
                mid,
                k,
                o.dtype,
                root,
                k,
                k,
                run,
                k,
                self.clock(r).unix(o.enq, at),
                k,
                o.start - o.enq,
                o.number,
                sizes,
                "" if self.old_nccl else ',"call_sn":%d' % o.number,
            )
        )

    def replayed(self, r, o, at):
        """A symmetric kernel of a graph: the bracket's time, and since when the call was replayed before."""
        before = [x for x in r.of[o.comm.name] if x.replay == o.replay and x.number < o.number]
        body = {
            "coll": o.func,
            "coll_sn": o.sn,
            "coll_msg_size_bytes": o.bytes,
            "coll_exec_time_us": BRACKET // US,
            "coll_timing_source": "collective_cpu",
            "coll_algobw_gbs": None,
            "coll_busbw_gbs": None,
            "coll_algo": "AGxLL_R",
            "coll_datatype": o.dtype,
            "coll_root": o.peer,
            "coll_nchannels": 8,
            "coll_exec_time_ns": BRACKET,
            "coll_enqueue_ns": self.clock(r).unix(o.enq, at),
            "rec_sn": o.number,
            "nccl_tests_size_bytes": o.bytes,
            "call_sn": o.replay,
            "graph": True,
            "symmetric": True,
            "coll_kernel": o.func + "_AGxLL_R",
        }
        if before:
            body["prev_replay_ns"] = o.enq - before[-1].enq
        return '"coll_perf":' + json.dumps(body, separators=(",", ":"))

    def write_log(self, r, folder):
        text = "\n".join(self.lines_of(r)) + "\n"
        path = os.path.join(folder, self.name(r) + ".jsonl.gz")
        with open(path, "wb") as f:
            f.write(gzip.compress(text.encode(), 1))
        last = max(self.begun, self.until(r) if self.over(r) is None else self.over(r))
        os.utime(path, ns=(self.clock(r).unix(last), self.clock(r).unix(last)))
        return path

    # boxes

    def box_name(self, r):
        return "/dev/shm/nccl-inspector-%s-pid%d-%016x.box" % (r.host, r.pid, self.codes[r.number])

    def has_box(self, r):
        """A box goes with the process that ended by exit and wrote everything."""
        if r.died is None or r.died > self.now or r.how in ("sigkill", "_exit", "crash"):
            return True
        return r.number in self.full

    def box_of(self, r, pid=None, start_ticks=1):
        """pid and start_ticks: of the real process that stands for a living one."""
        clock, until = self.clock(r), self.until(r)
        beat = max(self.begun, until - (until - self.phase[r.number]) % S)
        session = (self.folder, self.name(r) + ".jsonl.gz", self.lines_of(r)[0])
        b = box.Box(
            r.host,
            r.pid if pid is None else pid,
            r.number,
            len(self.job.sim.ranks),
            (self.mono + beat, clock.unix(beat)),
            clock.unix(self.begun),
            session,
            self.mono + beat,
        )
        b.old = self.old_box
        b.start_ticks, b.local = start_ticks, r.number % self.job.per_host
        over = self.over(r)
        finished = []
        for name, (begin, end, why) in r.comms.items():
            if begin > until or (end is not None and end <= self.now and r.number not in self.full):
                continue
            ops = self.ops(r, name)
            comm = self.job.sim.comms[name]
            kinds = [{"started": 0, "written": 0, "incomplete": 0} for _ in range(2)]
            calls = [0, 0]
            for o, s, at in ops:
                calls[o.p2p] += not self.old_nccl
                if s != "called":
                    kinds[o.p2p]["started"] += 1
                    kinds[o.p2p]["written"] += at is not None
            device = sum(1 for o, s, _ in ops if s in ("done", "inside"))
            b.comms.append(
                {
                    "name": name,
                    "hash": comm.hash,
                    "rank": comm.place[r.number],
                    "n_ranks": len(comm.members),
                    "nodes": self.nodes(comm),
                    "init": self.mono + begin,
                    "init_ns": clock.unix(begin),
                    "calls": calls,
                    "kinds": kinds,
                    "newest_group": device,
                }
            )
            kept = self.job.random.choice((0, 3, 12) if self.nccl[0] < 23100 else (3, 12))
            settled = [x for x in ops if x[2] is not None]
            for o, s, at in settled[len(settled) - kept :] + [
                x for x in ops if x[2] is None and x[1] != "called"
            ]:
                b.ops.append(self.slot(o, s, at, len(b.comms) - 1, until, over))
            finished += [o for o, s, _ in ops if s == "done"]
        b.nccl = self.nccl[0], int(self.nccl[1][1:])
        b.longest_operation = max((plain_end(o) - o.enq for o in finished), default=0)
        b.longest_gap = self.longest_gap(r, until)
        if r.how == "exit" and r.died <= self.now:
            b.end, b.error, b.end_unix = box.EXITED, 28, clock.unix(r.died)
            b.unwritten = sum(1 for c in r.comms for o, s, at in self.ops(r, c) if s == "done" and at is None)
        elif over is not None:
            b.end, b.end_unix = box.FINALIZED, clock.unix(over)
            if r.number in self.full:
                b.end, b.error = box.EXITED, 28
                b.unwritten = sum(
                    1 for c in r.comms for o, s, at in self.ops(r, c) if s == "done" and at is None
                )
            else:
                b.state = 2
        return b

    def longest_gap(self, r, until):
        """The longest time without the start of an operation that another start has ended."""
        starts = [self.begun] + sorted(o.enq for o in r.ops if o.enq <= until)
        return max((b - a for a, b in zip(starts, starts[1:])), default=0)

    def slot(self, o, s, at, comm, until, over):
        told = 128 if o.enq + self.stuck <= until else 0
        inside = s == "inside" or (s == "queued" and o.start is not None and o.start <= until)
        ran = s == "done"
        flags = box.LIVE | box.CLOSED
        if at is not None:
            flags = 0
        elif ran:
            flags |= box.KDONE | box.DONE
        elif s == "given_up" or self.judged_over(self.job.sim.ranks[o.rank], o) is not None:
            flags |= box.RETIRED | box.GIVEN_UP
        else:
            flags |= told
        if o.replay is not None:
            return self.replay_slot(o, flags, comm)
        first = self.mono + o.start if inside or ran else 0
        stopped = 8 if ran else 7 if o.lost and inside else 0
        open_channels = () if ran or flags & box.RETIRED or not inside else (7,) if o.lost else range(8)
        return {
            "comm": comm,
            "gen": 1 if flags == 0 else 0,
            "flags": flags,
            "want": 0 if flags == 0 else 8,
            "started": 8 if inside or ran else 0,
            "stopped": stopped,
            "first": first,
            "done": self.mono + o.end if ran else 0,
            "start": self.mono + o.enq,
            "group_ord": o.number + 1,
            "call": o.number,
            "sn": o.sn,
            "bytes": o.bytes,
            "rec_sn": o.number,
            "root": o.peer,
            "func": o.func,
            "open_channels": open_channels,
            "origin": 0 if self.old_nccl else 1,
        }

    def replay_slot(self, o, flags, comm):
        free = flags == 0
        return {
            "comm": comm,
            "gen": 1 if free else 0,
            "flags": flags,
            "want": 8 if self.old_plugin and not free else 0,
            "started": 0,
            "stopped": 0,
            "first": 0,
            "done": self.mono + o.enq + BRACKET if not self.old_plugin else 0,
            "start": self.mono + o.enq,
            "stop": self.mono + o.enq + BRACKET,
            "group_ord": o.number + 1,
            "call": o.replay,
            "sn": o.sn,
            "bytes": o.bytes,
            "rec_sn": o.number,
            "root": o.peer,
            "func": o.func,
            "algo": box.TEXTS.index("AGxLL_R"),
            "proto": 0,
            "open_channels": (),
            "origin": 3,
        }

    def judged_over(self, r, o):
        """When the dump thread gave an operation up whose last stop never came, or None: later ones ran, and
        10 s were quiet."""
        return self.tick(r, o.end + 10 * S) if o.lost and o.end is not None else None

    def write_box(self, r, folder, pid=None, start_ticks=1, copy=False, taken=None):
        """pid, start_ticks: of a real process, for a rank that lives. copy: as `snapshot` takes one."""
        b = self.box_of(r, pid, start_ticks)
        taken = self.now if taken is None else taken
        life = 2 if r.died is not None and r.died <= taken else 1
        return b.write(folder, self.codes[r.number], (life, self.clock(r).unix(taken)) if copy else None)
