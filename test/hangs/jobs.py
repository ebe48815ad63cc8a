"""Training jobs as programs of calls: data parallel, sharded, Megatron's tensor, pipeline and data groups,
and
an idle server."""

from world import FOREVER, MS, S, Sim

KB, MB = 1 << 10, 1 << 20
LAYOUTS = {  # style, tensor, pipeline, data, ranks on a host
    "ddp8": ("ddp", 1, 1, 8, 4),
    "fsdp8": ("fsdp", 1, 1, 8, 8),
    "t2p2d2": ("megatron", 2, 2, 2, 4),
    "t4d2": ("megatron", 4, 1, 2, 4),
    "t2p4": ("megatron", 2, 4, 1, 4),
    "p2d4": ("megatron", 1, 2, 4, 4),
    "t4p2d2": ("megatron", 4, 2, 2, 8),
    "t2d4": ("megatron", 2, 1, 4, 4),
    "t2p2d4": ("megatron", 2, 2, 4, 8),
}


class Job:
    """One run: its simulation, its ranks' programs, and what the case plants into them."""

    def __init__(self, random, layout, steps=8, world_name="world", job_id="77", **sim):
        self.random, self.steps, self.job_id, self.layout = random, steps, job_id, layout
        self.style, self.tp, self.pp, self.dp, self.per_host = (
            LAYOUTS[layout] if isinstance(layout, str) else layout
        )
        self.n = self.tp * self.pp * self.dp
        self.sim = Sim(random, self.n, self.per_host, **sim)
        self.world = world_name
        self.layers = random.choice((2, 3))
        self.micro = random.choice((2, 3)) if self.pp > 1 else 1
        self.compute = random.randrange(4, 12) * MS
        self.sim.comm(world_name, range(self.n))
        self.groups = {r: {} for r in range(self.n)}
        if self.style in ("megatron", "serve"):
            self.make_groups()
        for c in self.sim.comms.values():
            self.sim.join(c, at=0)
        self.programs = {r: self.program(r) for r in range(self.n)}
        self.culprits, self.note = [], ""

    def make_groups(self):
        tp, dp, pp = self.tp, self.dp, self.pp
        self.family(
            "tp", tp, [[p * tp * dp + d * tp + t for t in range(tp)] for p in range(pp) for d in range(dp)]
        )
        self.family(
            "dp", dp, [[p * tp * dp + d * tp + t for d in range(dp)] for p in range(pp) for t in range(tp)]
        )
        self.family(
            "pp", pp, [[p * tp * dp + d * tp + t for p in range(pp)] for d in range(dp) for t in range(tp)]
        )

    def family(self, name, size, lists):
        if size < 2:
            return
        for i, members in enumerate(lists):
            self.sim.comm("%s%d" % (name, i), members)
            for r in members:
                self.groups[r][name] = "%s%d" % (name, i)

    def stage(self, r):
        return r // (self.tp * self.dp)

    def program(self, r):
        out = [("sleep", 20 * MS + r * 100_000)]
        for step in range(self.steps):
            out += {"ddp": self.ddp, "fsdp": self.fsdp, "megatron": self.megatron}[self.style](r, step)
        return out

    def rest_of_compute(self, share=1.0):
        return ("compute", int(self.compute * share * (0.9 + 0.2 * self.random.random())))

    def ddp(self, r, step):
        out = [self.rest_of_compute(2)]
        for bucket in range(self.layers + 1):
            out += [self.rest_of_compute(), ("call", self.world, "AllReduce", (4 + bucket) * MB, 0, False)]
        return out + [
            ("sync",),
            self.rest_of_compute(),
            ("call", self.world, "AllReduce", 4 * KB, 0, True),
            ("sync",),
        ]

    def fsdp(self, r, step):
        out = []
        for layer in range(self.layers):
            out += [("call", self.world, "AllGather", (2 + layer) * MB, 0, True), self.rest_of_compute()]
        for layer in reversed(range(self.layers)):
            out += [
                ("call", self.world, "AllGather", (2 + layer) * MB, 0, True),
                self.rest_of_compute(2),
                ("call", self.world, "ReduceScatter", (2 + layer) * MB, 0, False),
            ]
        return out + [("sync",), ("call", self.world, "AllReduce", 4 * KB, 0, True), ("sync",)]

    def tensor(self, r, forward):
        """A pass through the layers of a stage, with sequence parallelism."""
        out = []
        tp = self.groups[r].get("tp")
        for layer in range(self.layers):
            out.append(self.rest_of_compute())
            if tp:
                first, then = ("AllGather", "ReduceScatter") if forward else ("ReduceScatter", "AllGather")
                out += [
                    ("call", tp, first, (1 + layer) * MB, 0, True),
                    self.rest_of_compute(0.3),
                    ("call", tp, then, (1 + layer) * MB, 0, True),
                ]
        return out

    def megatron(self, r, step):
        out = []
        pp, stage = self.groups[r].get("pp"), self.stage(r)
        for forward in (True, False):
            before, after = (stage - 1, stage + 1) if forward else (stage + 1, stage - 1)
            for _ in range(self.micro):
                if pp and 0 <= before < self.pp:
                    out.append(("call", pp, "Recv", 2 * MB, before, True))
                out += self.tensor(r, forward)
                if pp and 0 <= after < self.pp:
                    out.append(("call", pp, "Send", 2 * MB, after, True))
        dp = self.groups[r].get("dp")
        if dp:
            for bucket in range(2):
                out += [("call", dp, "ReduceScatter", (6 + bucket) * MB, 0, False), self.rest_of_compute(0.2)]
            out += [("sync",), ("call", dp, "AllGather", 6 * MB, 0, True)]
        return out + [("call", self.world, "AllReduce", 4 * KB, 0, True), ("sync",)]

    # plants

    def calls(self, r, of, least=0.4, most=0.8):
        """Indexes in the program of the calls whose communicator or function begins with `of`, in the middle
        of the run."""
        p = self.programs[r]
        return [
            i
            for i in range(int(len(p) * least), int(len(p) * most))
            if p[i][0] == "call" and (p[i][1].startswith(of) or p[i][2] == of)
        ]

    def pick(self, of, ranks=None):
        """(rank, index) of a call to plant something at; of: tp, dp, pp, world, Send, Recv, any. Where the
        job
        has none such, any."""
        ranks = list(ranks if ranks is not None else range(self.n))
        self.random.shuffle(ranks)
        for r in ranks:
            found = self.calls(r, "" if of == "any" else self.world if of == "world" else of)
            if found:
                return r, self.random.choice(found)
        return self.pick("any", ranks)

    def insert(self, r, i, *items):
        self.programs[r][i:i] = list(items)

    def stop(self, r, i, for_ns=FOREVER):
        self.insert(r, i, ("sleep", for_ns))

    def change(self, r, i, func=None, nbytes=None, peer=None, how=None):
        _, comm, f, b, p, blocking = self.programs[r][i][:6]
        self.programs[r][i] = (
            "call",
            comm,
            func or f,
            nbytes or b,
            p if peer is None else peer,
            blocking,
            how,
        )

    def finish(self, how="final", pause=50 * MS):
        """All programs end in order: communicators destroyed, then exit."""
        for r in range(self.n):
            names = [n for n in self.sim.ranks[r].comms]
            ends = [("destroy", n) for n in names] if how == "final" else []
            self.programs[r] += [("sync",), ("sleep", pause)] + ends + [("end", how)]

    def start(self):
        for r in range(self.n):
            self.sim.begin(r, self.programs[r])

    def still_since(self):
        """When the last operation ended or was called, on any rank."""
        times = (t for r in self.sim.ranks for o in r.ops for t in (o.enq, o.start or 0, o.end or 0))
        return max(t for t in times if t < FOREVER)

    def run_until_still(self, most=3600 * S):
        """Plays until nothing moves any more (sleepers that never come back aside). Returns when that was."""
        self.start()
        self.sim.run(most)
        return self.still_since()


def owed(sim, r):
    """Of a rank that has stopped, the first call of its program, in order, in which others wait for it: Meet
    or None."""
    if r.died is not None:
        for op in r.ops:
            others = [o for o in op.meet.ops.values() if o.rank != r.number and waiting(o)]
            if op.end is None and others:
                return op.meet
    numbers = dict(r.numbers)
    for item in r.items[r.pc :]:
        if item[0] != "call":
            continue
        comm = sim.comms[item[1]]
        meet = comm.meets.get(sim.place_of(r, numbers, comm, item[2], item[4] if len(item) > 4 else 0))
        if meet and any(waiting(o) for o in meet.ops.values() if o.rank != r.number):
            return meet
    return None


def waiting(op):
    return op.end is None and op.given_up is None and op.start is not None
