"""What each rank's program does in a step, as one list of items in an order that all ranks' programs agree
with.

Items are tuples, by their first member (machine.py runs them):
  COMPUTE ranks, ns, launch ns: a block of kernels
  COLL    comm, function, bytes, stream, after_compute, then, slot
          then: 0 nothing waits, 1 compute does, 2 it is noted in the slot
  START   rank, stream, kernel: a kernel of grouped Sends and Recvs begins; kernels are numbered in a step
  MOVE    comm, a, b, bytes, kernel of a, kernel of b: a Send of a to b, which needs both kernels
  FINISH  rank, stream, kernel: it ends when all that it moves has moved; compute waits for it
  SWAP    comm, bytes a pair, stream, place: grouped Send and Recv of all with all (experts)
  JOIN    ranks, slot: compute waits for what was noted
  JOINALL ranks, stream: compute waits for a stream
  MARK    ranks, slot: notes where compute is
  LIMIT   ranks, slot: the CPU waits for what was noted
  HOST    ranks: the CPU waits for the GPU
  HOLD    place: pauses of the CPU fall here
"""

COMPUTE, COLL, START, MOVE, FINISH, SWAP, JOIN, MARK, JOINALL, HOST, LIMIT, HOLD = range(12)
REDUCE, GATHER, SCATTER, ALLTOALL, BROADCAST = (
    "AllReduce",
    "AllGather",
    "ReduceScatter",
    "AlltoAll",
    "Broadcast",
)
KERNELS = 14  # of a block, of which the first must have been launched for the block to begin


class Builder:
    def __init__(self, job):
        self.job, self.items, self.streams, self.slots = job, [], {}, 0
        self.holds = self.kernels = 0

    def stream(self, comm):
        """A stream for each communicator of a rank, as PyTorch has it; alike ones of other ranks share its
        number."""
        return self.streams.setdefault(comm.lane, len(self.streams))

    def slot(self):
        self.slots += 1
        return self.slots - 1

    def compute(self, ranks, ns):
        self.items.append((COMPUTE, list(ranks), ns, ns * self.job.launch_share))

    def coll(self, comm, func, size, after=1, then=1, slot=-1):
        if comm is not None:
            self.items.append(
                (COLL, comm.number, func, max(4, int(size) & ~3), self.stream(comm), after, then, slot)
            )

    def hold(self):
        self.items.append((HOLD, self.holds))
        self.holds += 1

    def add(self, *item):
        self.items.append(item)


def layer(b, ranks, comm, ns, forward):
    """One transformer layer of a tensor-parallel group: attention, then the MLP, and what each of them
    exchanges."""
    j = b.job
    for share in (0.4, 0.6):
        if comm is None:
            continue
        if j.sequence:
            b.coll(comm, GATHER, j.hidden / j.tp)
        b.compute(ranks, ns * share)
        if j.sequence:
            b.coll(comm, SCATTER, j.hidden / j.tp)
        else:
            b.coll(comm, REDUCE, j.hidden)
    if comm is None:
        b.compute(ranks, ns)


def stage_pass(b, s, forward, part=1.0):
    """Forward or backward pass of one micro batch in stage s, of all its replicas; of a part of its
    layers."""
    j = b.job
    ns = (j.layer if forward else 2.0 * j.layer) * part
    for d in range(j.dp):
        comm = j.tensor.get((d, s))
        ranks = [j.rank_at(t, d, s) for t in range(j.tp)]
        extra = (j.first_extra if s == 0 else 0.0) + (j.last_extra if s == j.pp - 1 else 0.0)
        if extra and (s == 0) == forward:
            b.compute(ranks, ns * extra)
        for _ in range(j.stage_layers[s]):
            layer(b, ranks, comm, ns, forward)
        if extra and (s == 0) != forward:
            b.compute(ranks, ns * extra)


# A stage's program is a list of "F", "B", or a tuple: what one kernel sends and receives, each as (kind,
# from, to) where the kind is f (activations) or b (gradients), and the others are stages. The n-th send of a
# kind between two stages goes to the n-th receive.


def one_forward_one_backward(s, p, m):
    """1F1B: as many forward passes ahead as there are stages behind."""
    warm, out = min(p - s - 1, m), []

    def talk(*moves):
        moves = tuple(x for x in moves if 0 <= x[1] < p and 0 <= x[2] < p)
        if moves:
            out.append(moves)

    sent_up, got_up = ("f", s, s + 1), ("b", s + 1, s)
    sent_down, got_down = ("b", s, s - 1), ("f", s - 1, s)
    for _ in range(warm):
        talk(got_down)
        out.append("F")
        talk(sent_up)
    left = m - warm
    if left:
        talk(got_down)
    for i in range(left):
        out.append("F")
        talk(sent_up, got_up)
        out.append("B")
        talk(*((sent_down, got_down) if i < left - 1 else (sent_down,)))
    for _ in range(warm):
        talk(got_up)
        out.append("B")
        talk(sent_down)
    return out


def interleaved(s, p, m, v):
    """Each stage has v chunks of layers, p stages apart; stages make a ring. m is a multiple of p."""
    total = m * v
    warm = total if m == p else min(total, (p - s - 1) * 2 + (v - 1) * p)
    first, last = s == 0, s == p - 1
    up, down = (s + 1) % p, (s - 1) % p
    out = []

    def chunk(k, forward=True):
        c = k % (p * v) // p
        return c if forward else v - 1 - c

    def talk(send_f=False, recv_f=False, send_b=False, recv_b=False):
        moves = (
            [("f", s, up)] * send_f
            + [("f", down, s)] * recv_f
            + [("b", s, down)] * send_b
            + [("b", up, s)] * recv_b
        )
        if moves:
            out.append(tuple(moves))

    talk(recv_f=not first)
    for k in range(warm):
        out.append("F")
        wanted = not (first and chunk(k + 1) == 0) and k < total - 1
        sent = not (last and chunk(k) == v - 1)
        talk(send_f=sent, recv_f=wanted, recv_b=k == warm - 1 and warm < total and not last)
    for k in range(total - warm):
        out += ["F", "B"]
        ahead = k + warm
        wanted_f = not (first and chunk(ahead - (p - 1)) == v - 1) and k < total - warm - 1
        wanted_b = not (last and chunk(k - (p - 1), False) == 0)
        talk(
            send_f=not (last and chunk(ahead) == v - 1),
            recv_f=wanted_f,
            send_b=not (first and chunk(k, False) == 0),
            recv_b=wanted_b,
        )
    if warm == total:
        talk(recv_b=not last)
    for k in range(total - warm, total):
        out.append("B")
        wanted = not (last and chunk(k + 1, False) == v - 1) and k < total - 1
        talk(send_b=not (first and chunk(k, False) == 0), recv_b=wanted)
    return out


def programs_of(job, forward_only=False):
    p, m = job.pp, job.micro
    if forward_only:
        return [
            ([(("f", s - 1, s),)] * (s > 0) + ["F"] + [(("f", s, s + 1),)] * (s < p - 1)) * m
            for s in range(p)
        ]
    if job.chunks > 1:
        return [interleaved(s, p, m, job.chunks) for s in range(p)]
    return [one_forward_one_backward(s, p, m) for s in range(p)]


def meet(programs):
    """One order of all stages' programs: ("F" or "B", stage), ("start" or "finish", stage, kernel), ("move",
    kind and stages, kernel of the sender, of the receiver). A kernel finishes when all its moves have both of
    their kernels.
    """
    at, out = [0] * len(programs), []
    open_kernel = [None] * len(programs)
    queues, left, kernels = {}, {}, 0
    while any(at[s] < len(programs[s]) for s in range(len(programs))):
        moved = False
        for s, items in enumerate(programs):
            while at[s] < len(items):
                item = items[at[s]]
                if isinstance(item, str):
                    out.append((item, s))
                    at[s] += 1
                    moved = True
                    continue
                if open_kernel[s] is None:
                    k = open_kernel[s] = kernels
                    kernels += 1
                    left[k] = len(item)
                    out.append(("start", s, k))
                    moved = True
                    for move in item:
                        waiting = queues.setdefault(move, ([], []))
                        waiting[0 if move[1] == s else 1].append(k)
                        if waiting[0] and waiting[1]:
                            a, z = waiting[0].pop(0), waiting[1].pop(0)
                            out.append(("move", move, a, z))
                            left[a] -= 1
                            left[z] -= 1
                if left[open_kernel[s]]:
                    break
                out.append(("finish", s, open_kernel[s]))
                open_kernel[s] = None
                at[s] += 1
                moved = True
        if not moved:
            raise RuntimeError("the stages' programs do not meet")
    return out


def pipeline(b, forward_only=False):
    j = b.job
    lanes = [(t, d) for d in range(j.dp) for t in range(j.tp)]
    size = int(j.hidden / (j.tp if j.sequence else 1)) & ~3
    order = meet(programs_of(j, forward_only))
    n = len(lanes)
    first = b.kernels
    for item in order:
        if item[0] in "FB":
            stage_pass(b, item[1], item[0] == "F", 1.0 / j.chunks)
            continue
        for i, (t, d) in enumerate(lanes):
            comm = j.pipe[t, d]
            if item[0] == "move":
                (_, low, high), a, z = item[1:]
                b.add(
                    MOVE,
                    comm.number,
                    j.rank_at(t, d, low),
                    j.rank_at(t, d, high),
                    size,
                    first + a * n + i,
                    first + z * n + i,
                )
            else:
                r = j.rank_at(t, d, item[1])
                b.add(START if item[0] == "start" else FINISH, r, b.stream(comm), first + item[2] * n + i)
                b.kernels = max(b.kernels, first + item[2] * n + i + 1)


def step_megatron(b):
    j = b.job
    b.hold()
    if j.layout == "P":
        pipeline(b)
    else:
        for m in range(j.micro):
            stage_pass(b, 0, True)
            if m == 0:
                b.hold()
            stage_pass(b, 0, False)
    b.hold()
    for (t, p), comm in j.data.items():
        ranks = [j.rank_at(t, d, p) for d in range(j.dp)]
        size = j.params * j.stage_layers[p]
        n = 2 if j.overlap_grads else 1
        if comm is None:
            b.compute(ranks, 0.3 * j.layer)
            continue
        for _ in range(n):
            if j.optimizer == "scatter":
                b.coll(comm, SCATTER, size / n / j.dp, then=0)
            else:
                b.coll(comm, REDUCE, size / n, then=0)
            if n > 1:
                b.compute(ranks, 0.5 * j.layer)
        b.add(JOINALL, ranks, b.stream(comm))
    b.coll(j.whole, REDUCE, 4)
    b.compute(range(j.world), 0.4 * j.layer)
    if j.optimizer == "scatter":
        for (t, p), comm in j.data.items():
            if comm is not None:
                b.coll(comm, GATHER, j.params * j.stage_layers[p] / j.dp)


def step_sharded(b, shard_of, ranks_of, replicas, backward=True):
    """FSDP: parameters are gathered one layer ahead, at most two layers are held; gradients are scattered."""
    j = b.job
    n = len(ranks_of)
    share = [j.params * 4 / len(r) for r in ranks_of]
    for way in (1, -1) if backward else (1,):
        b.hold()
        order = range(j.layers) if way == 1 else range(j.layers - 1, -1, -1)
        slots = {}
        marks = {}

        def gather(l):
            slots[l] = b.slot()
            for i in range(n):
                b.coll(shard_of[i], GATHER, share[i], after=0, then=2, slot=slots[l])

        order = list(order)
        gather(order[0])
        for at, l in enumerate(order):
            if at + 1 < len(order):
                if at >= 2:
                    b.add(LIMIT, list(range(j.world)), marks[order[at - 2]])
                gather(order[at + 1])
            for i in range(n):
                b.add(JOIN, ranks_of[i], slots[l])
                b.compute(ranks_of[i], j.layer * (1 if way == 1 else 2))
            marks[l] = b.slot()
            b.add(MARK, list(range(j.world)), marks[l])
            if way == -1:
                for i in range(n):
                    b.coll(shard_of[i], SCATTER, share[i], then=0)
                for i, comm in replicas:
                    b.coll(comm, REDUCE, share[0], then=0)
    if backward:
        for i in range(n):
            b.add(JOINALL, ranks_of[i], b.stream(shard_of[i]))
        for i, comm in replicas:
            b.add(JOINALL, comm.ranks, b.stream(comm))
    b.compute(range(j.world), 0.5 * j.layer)
    if j.grad_norm and backward:
        b.coll(shard_of[0] if n == 1 else None, REDUCE, 4)


def step_ddp(b):
    j = b.job
    everybody = range(j.world)
    b.hold()
    for _ in range(j.buckets):
        b.compute(everybody, j.layer)
    b.hold()
    for i in range(j.buckets):
        b.compute(everybody, 2 * j.layer)
        size = j.params * (0.1 if i == j.buckets - 1 else 1.0 if i else 0.3)
        b.coll(j.whole, REDUCE, size, then=0 if j.layout == "D" or i % 2 else 1)
    b.add(JOINALL, list(everybody), b.stream(j.whole))
    b.compute(everybody, 0.5 * j.layer)
    if j.grad_norm:
        b.coll(j.whole, REDUCE, 4)


def step_experts(b, backward=True):
    j = b.job
    place = 0
    for way in (1, 2) if backward else (1,):
        b.hold()
        for _ in range(j.layers):
            b.compute(range(j.world), 0.5 * way * j.layer)
            for half in (0, 1):
                for comm in j.expert.values():
                    size = j.hidden / j.ep
                    if j.native_alltoall:
                        b.coll(comm, ALLTOALL, size)
                    else:
                        b.add(SWAP, comm.number, size, b.stream(comm), place)
                if half == 0:
                    b.compute(range(j.world), 0.5 * way * j.layer)
            place += 1
    if backward:
        for _ in range(2):
            b.coll(j.whole, REDUCE, j.params * j.layers / 2, then=0)
        b.add(JOINALL, list(range(j.world)), b.stream(j.whole))
        b.compute(range(j.world), 0.4 * j.layer)


def step_engine(b, engine, tokens):
    """A step of one inference engine: every layer's two AllReduces, by the number of tokens that are in the
    batch."""
    j = b.job
    comm = j.tensor[engine, 0]
    for _ in range(j.layers * 4):
        b.compute(comm.ranks, 4e4 + 25.0 * tokens)
        b.coll(comm, REDUCE, 8192 * tokens)


def build(job, what="train"):
    """(items, number of streams, slots, places for pauses) of a step: `train`, or `evaluate`, which is
    forward only."""
    b = Builder(job)
    backward = what == "train"
    if job.layout in "TP":
        if backward:
            step_megatron(b)
        else:
            b.hold()
            if job.layout == "P":
                pipeline(b, forward_only=True)
            else:
                stage_pass(b, 0, True)
    elif job.layout == "F":
        step_sharded(b, [job.whole], [list(range(job.world))], [], backward)
    elif job.layout == "H":
        shards = [job.tensor[h] for h in range(job.n_hosts)]
        step_sharded(b, shards, [c.ranks for c in shards], list(job.data.items()), backward)
    elif job.layout == "M":
        step_experts(b, backward)
    else:
        step_ddp(b)
        if not backward:
            b.items = [i for i in b.items if i[0] in (COMPUTE, HOLD)] + [i for i in b.items if i[0] == COLL][
                -1:
            ]
    if backward and job.layout != "I":
        if job.sync:
            b.add(HOST, list(range(job.world)))
    return b


def records(job, items):
    """Records that all ranks write of these items."""
    n = 0
    for i in items:
        if i[0] == COLL:
            n += len(job.comms[i[1]].ranks)
        elif i[0] == MOVE:
            n += 2
        elif i[0] == SWAP:
            n += 2 * len(job.comms[i[1]].ranks) * (len(job.comms[i[1]].ranks) - 1)
    return n
