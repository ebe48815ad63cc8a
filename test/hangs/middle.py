"""Kinds: a rank stops in the middle of a step; jobs as public descriptions have them; logs are all there is.

Pipelines in the 1F1B order (Megatron-LM: batched sends and receives, or each by itself), tensor groups inside
the stages, data parallel in buckets, sharding in two dimensions (HSDP), experts (AlltoAll in expert groups,
their gradients in groups of their own). What the rank owes first is known by its program (jobs.owed).
"""

import jobs
import quiet
from case import LOGS, Case
from jobs import KB, MB
from kinds import kind
from world import US

KINDS = quiet.KINDS
STYLES = {  # tensor, pipeline, data, ranks on a host
    "pipe": (1, 4, 2, 4),
    "tensor": (4, 1, 2, 4),
    "stages": (2, 2, 2, 4),
    "buckets": (1, 1, 8, 4),
    "hybrid": (1, 1, 8, 4),
    "experts": (1, 1, 8, 4),
}


class Job(jobs.Job):
    """One of STYLES. Its rank's step is a program of its own, the rest is jobs.Job's."""

    def __init__(self, random, style, steps):
        self.kind_of = style
        self.batched = random.random() < 0.5
        # PyTorch gives two stages a communicator of their own, where it does not batch
        self.pairs = random.random() < 0.5
        super().__init__(random, ("megatron", *STYLES[style]), steps=steps)

    def make_groups(self):
        super().make_groups()
        if self.kind_of in ("hybrid", "experts"):
            self.family("inner", 4, [[4 * h + k for k in range(4)] for h in range(2)])
            self.family("outer", 2, [[k, 4 + k] for k in range(4)])

        if self.pp > 1 and self.pairs:
            self.make_pairs()

    def make_pairs(self):
        width = self.tp * self.dp
        for k in range(width):
            del self.sim.comms[self.groups[k]["pp"]]
        for low in range(self.n - width):
            name = "pipe%d" % low
            self.sim.comm(name, [low, low + width])
            self.groups[low]["next"] = self.groups[low + width]["previous"] = name

    def message(self, r, func, to):
        if not self.pairs:
            return ("call", self.groups[r]["pp"], func, 2 * MB, to, True)
        up = to > self.stage(r)
        return ("call", self.groups[r]["next" if up else "previous"], func, 2 * MB, int(up), True)

    def megatron(self, r, step):
        out, together = [], False
        for x in getattr(self, self.kind_of)(r):
            together = x[1] if x[0] == "group" else together
            out.append(x)
            if x[0] == "call" and not together:
                out.append(("sleep", self.random.randrange(2, 9) * US))  # a host takes a while for each call
        return out + [("sync",), ("call", self.world, "AllReduce", 4 * KB, 0, True), ("sync",)]

    def blocks(self, r, share):
        tp, out = self.groups[r].get("tp"), []
        for layer in range(self.layers):
            out.append(self.rest_of_compute(share))
            if tp:
                out.append(("call", tp, "AllReduce", (1 + layer) * MB, 0, True))
        return out or [self.rest_of_compute(share)]

    def gradients(self, r, group="dp"):
        name = self.groups[r].get(group)
        out = []
        for bucket in range(3):
            if name:
                out += [self.rest_of_compute(0.2), ("call", name, "AllReduce", (3 + bucket) * MB, 0, False)]
        return out

    def move(self, r, *messages):
        """(function, stage) each; in a group where they are batched, else stages take turns to be first."""
        calls = [self.message(r, f, to) for f, to in messages if 0 <= to < self.pp]
        if not self.batched or len(calls) < 2:
            return calls[::-1] if self.stage(r) % 2 else calls
        return [("group", True)] + calls + [("group", False)]

    def stages(self, r):
        """1F1B: a stage warms up with as many forward passes as there are stages behind it."""
        s, n = self.stage(r), self.pp + 1
        warm, out = min(self.pp - 1 - s, n), []
        for _ in range(warm):
            out += self.move(r, ("Recv", s - 1)) + self.blocks(r, 0.5) + self.move(r, ("Send", s + 1))
        for i in range(n - warm):
            if i == 0:
                out += self.move(r, ("Recv", s - 1))
            out += self.blocks(r, 0.5) + self.move(r, ("Send", s + 1), ("Recv", s + 1)) + self.blocks(r, 1)
            last = i == n - warm - 1
            out += self.move(r, ("Send", s - 1), *([] if last else [("Recv", s - 1)]))
        for _ in range(warm):
            out += self.move(r, ("Recv", s + 1)) + self.blocks(r, 1) + self.move(r, ("Send", s - 1))
        return out + self.gradients(r)

    pipe = stages

    def tensor(self, r, forward=True):
        return self.blocks(r, 0.5) + self.blocks(r, 1) + self.gradients(r)

    def buckets(self, r):
        return self.blocks(r, 2) + self.gradients(r)

    def hybrid(self, r):
        inner, outer = self.groups[r]["inner"], self.groups[r]["outer"]
        out = []
        for layer in range(self.layers):
            out += [("call", inner, "AllGather", (1 + layer) * MB, 0, True), self.rest_of_compute()]
        for layer in reversed(range(self.layers)):
            out += [("call", inner, "AllGather", (1 + layer) * MB, 0, True), self.rest_of_compute(2)]
            out += [("call", inner, "ReduceScatter", (1 + layer) * MB, 0, False)]
            out += [("call", outer, "AllReduce", (1 + layer) * MB, 0, False)]
        return out

    def experts(self, r):
        inner, out = self.groups[r]["inner"], []
        for share in (0.5, 1):
            for _ in range(self.layers):
                out += [self.rest_of_compute(share), ("call", inner, "AlltoAll", MB, 0, True)]
                out += [self.rest_of_compute(share), ("call", inner, "AlltoAll", MB, 0, True)]
        return out + self.gradients(r, "outer") + self.gradients(r)


def stops(m, style):
    job = Job(m.random, style, m.random.choice((6, 8, 10)))
    stretch = m.random.choice((1, 10, 100))
    for p in job.programs.values():
        p[:] = [(x[0], x[1] * stretch) if x[0] == "compute" else x for x in p]
    r, i = job.pick("any")
    while i and job.programs[r][i - 1][0] in ("call", "group") and job.inside_group(r, i):
        i -= 1  # a host does not stop inside a group's calls
    job.stop(r, i)
    job.run_until_still()
    c = Case(m, job)
    c.blame([r])
    c.look_at_wait()
    return c


def inside_group(job, r, i):
    begun = [x[1] for x in job.programs[r][:i] if x[0] == "group"]
    return bool(begun and begun[-1])


Job.inside_group = inside_group


def make(style):
    return lambda m: stops(m, style)


for name, what in (
    ("pipe", "a pipeline"),
    ("stages", "a pipeline with tensor groups"),
    ("tensor", "tensor groups"),
    ("buckets", "data parallel"),
    ("hybrid", "sharding in two dimensions"),
    ("experts", "experts"),
):
    title = "a rank stops in the middle of a step: " + what
    kind(title, sources=(LOGS,), whens=("late", "killed"), into=KINDS)(make(name))
