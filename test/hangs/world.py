"""A model of ranks with queues: programs of calls on communicators, in simulated time.

Enqueueing is asynchronous, as on NCCL's streams, and so is the GPUs' computing between calls: a host is
ahead of its GPU until it waits for it (sync). An operation of a rank starts when the operation of the same
communicator before it has ended on that rank, and so has the newest one that its compute stream waits for
(`blocking`). It ends on all members some time after the last of them has started. Calls of one place that
differ in function, size or root never end.

Times are ns of one true clock that begins at 0 with the job. Nothing here knows of logs, boxes or the
judge.
"""

import heapq
import itertools

US, MS, S = 10**3, 10**6, 10**9
FOREVER = 10**18
NO_TAIL = (None, [], [])
HOLD = object()  # a host that waits until somebody wakes it


class Comm:
    def __init__(self, name, members, code):
        self.name, self.members, self.hash = name, list(members), code
        self.place = {r: i for i, r in enumerate(self.members)}
        self.meets = {}


class Op:
    """A call of one rank. number: place among the calls of its kind on the communicator; sn: as NCCL or the
    plugin counts."""

    __slots__ = (
        "rank",
        "comm",
        "func",
        "sn",
        "number",
        "bytes",
        "peer",
        "enq",
        "start",
        "end",
        "needs",
        "then",
        "meet",
        "given_up",
        "lost",
        "called_only",
        "p2p",
        "blocking",
        "group",
        "dtype",
        "seen_end",
        "replay",
    )

    def __init__(self, rank, comm, func, nbytes, peer, enq):
        self.rank, self.comm, self.func, self.bytes, self.peer, self.enq = rank, comm, func, nbytes, peer, enq
        self.p2p = func in ("Send", "Recv")
        self.start = self.end = self.meet = self.given_up = self.seen_end = None
        self.needs, self.then = 0, []
        self.lost = self.called_only = self.blocking = False
        self.group = self.replay = None  # replay: number of the call that a graph captured
        self.dtype = "ncclFloat32"

    def label(self):
        return "%s %d of %s, rank %d" % (self.func, self.sn, self.comm.name, self.rank)


class Work:
    """Computing of a rank's GPU: the compute stream is busy for so long."""

    __slots__ = ("rank", "lasts", "end", "needs", "then", "given_up", "group")

    def __init__(self, rank, lasts):
        self.rank, self.lasts, self.end, self.given_up, self.group = rank, lasts, None, None, None
        self.needs, self.then = 0, []


class Meet:
    """Where calls meet: the k-th collective of a communicator, or the k-th message between two ranks."""

    __slots__ = ("ops", "wanted", "started", "frozen", "key")

    def __init__(self, key, wanted):
        self.key, self.ops, self.wanted, self.started, self.frozen = key, {}, wanted, 0, False

    def alike(self):
        signs = (
            {(o.func, o.bytes, o.peer) for o in self.ops.values()}
            if self.key[0] == "coll"
            else {o.bytes for o in self.ops.values()}
        )
        return len(signs) == 1


class Rank:
    def __init__(self, number, host, pid):
        self.number, self.host, self.pid = number, host, pid
        self.ops, self.of = [], {}  # all; by communicator
        self.open = 0
        self.numbers, self.func_sn = {}, {}  # where its next calls meet; NCCL's counts
        self.tails = {}  # ends of queues: of communicators; None: of what the compute stream waits for
        self.died = self.how = None  # when it ended, and how
        self.comms = {}  # name -> [begin, end or None, why]
        self.parked = None
        self.items, self.pc = [], 0  # its program, and what of it comes next
        self.group = None


class Sim:
    def __init__(self, random, n_ranks, per_host, host_name="node-%d", pid0=4300000):
        self.random, self.now, self.heap, self.count = random, 0, [], itertools.count()
        self.ranks = [Rank(r, host_name % (r // per_host), pid0 + r) for r in range(n_ranks)]
        self.comms = {}
        self.lag = {}

    def comm(self, name, members):
        c = Comm(name, members, self.random.getrandbits(60) | 1)
        self.comms[name] = c
        return c

    def join(self, comm, at=None):
        for r in comm.members:
            self.ranks[r].comms[comm.name] = [self.now if at is None else at, None, None]
            self.ranks[r].of.setdefault(comm.name, [])

    def at(self, when, what, *args):
        heapq.heappush(self.heap, (when, next(self.count), what, args))

    def begin(self, rank, items, when=0):
        r = self.ranks[rank]
        r.items = items
        self.at(when, self.step, r)

    def run(self, until):
        while self.heap and self.heap[0][0] <= until:
            self.now, _, what, args = heapq.heappop(self.heap)
            what(*args)
        self.now = until

    # hosts

    def step(self, r):
        """Lets the host of a rank go on until it has to wait."""
        while r.died is None and r.pc < len(r.items):
            todo = r.items[r.pc]
            r.pc += 1
            verb = todo[0]
            if verb == "call":
                self.call(r, *todo[1:])
            elif verb == "sleep":
                return self.at(self.now + todo[1], self.step, r) if todo[1] < FOREVER else None
            elif verb == "compute":
                self.compute(r, todo[1])
                return self.at(self.now + todo[1] // 40, self.step, r)
            elif verb == "sync":
                if r.open:
                    r.parked = HOLD
                    return
            elif verb == "group":
                r.group = object() if todo[1] else None
            elif verb == "abort":
                self.abort(r, todo[1])
            elif verb == "destroy":
                r.comms[todo[1]][1:] = [self.now, "destroy"]
            elif verb == "join":
                r.comms.setdefault(todo[1], [self.now, None, None])
                r.of.setdefault(todo[1], [])
            elif verb == "end":
                self.die(r, todo[1])
            else:
                raise ValueError(verb)

    def place_of(self, r, numbers, comm, func, peer):
        """The place where the next such call of a rank meets others; numbers: what it has called so far,
        which
        is brought on."""
        if func not in ("Send", "Recv"):
            n = numbers[comm.name] = numbers.get(comm.name, -1) + 1
            return "coll", comm.name, n
        me = comm.place[r.number]
        pair = (me, peer) if func == "Send" else (peer, me)
        n = numbers[comm.name, pair] = numbers.get((comm.name, pair), -1) + 1
        return "p2p", comm.name, pair, n

    def call(self, r, comm_name, func, nbytes, peer=0, blocking=True, how=None):
        comm = self.comms[comm_name]
        op = Op(r.number, comm, func, nbytes, peer, self.now)
        key = (comm_name, "p2p" if op.p2p else func)
        op.sn = r.func_sn.get(key, 0)
        r.func_sn[key] = op.sn + 1
        op.blocking, op.group = blocking, r.group
        where = self.place_of(r, r.numbers, comm, func, peer)
        count = (comm_name, op.p2p)
        op.number = r.func_sn.get(count, 0)
        r.func_sn[count] = op.number + 1
        wanted = 2 if op.p2p else len(comm.members)
        op.meet = comm.meets.setdefault(where, Meet(where, wanted))
        op.meet.ops[r.number] = op
        r.ops.append(op)
        r.of[comm_name].append(op)
        r.open += 1
        if isinstance(how, tuple):  # a graph has it: nothing is seen of it before its turn comes
            op.replay, op.enq = how[1], FOREVER
        if how == "called only":
            op.called_only = True
            return
        op.lost = how == "lost"
        before = self.queue(r, comm_name, op) + (
            self.queue(r, None, op) if blocking else r.tails.get(None, NO_TAIL)[1]
        )
        self.wait_for(op, before)

    def compute(self, r, lasts):
        """The GPU computes after what the compute stream has to do before. The host goes on at once."""
        work = Work(r.number, lasts)
        r.open += 1
        self.wait_for(work, self.queue(r, None, work))

    def wait_for(self, op, before):
        for o in {id(o): o for o in before if o.end is None and o.given_up is None}.values():
            o.then.append(op)
            op.needs += 1
        if not op.needs:
            self.at(self.now + 3 * US, self.launch, op)

    def queue(self, r, name, op):
        """Puts an operation to the end of a queue: a communicator's, or that of the compute stream (None).
        Returns what it waits for there: what stood there last; of a group the operations that stood there
        before the group."""
        group, ops, before = r.tails.get(name, NO_TAIL)
        if op.group is not None and op.group is group:
            ops.append(op)
            return before
        r.tails[name] = (op.group, [op], ops)
        return ops

    def launch(self, op):
        r = self.ranks[op.rank]
        if r.died is not None or op.given_up is not None:
            return
        if isinstance(op, Work):
            self.at(self.now + op.lasts, self.finish_work, op)
            return
        if op.start is not None:
            return
        op.start = self.now
        if op.replay is not None:
            op.enq = self.now
        meet = op.meet
        meet.started += 1
        if meet.started == meet.wanted and not meet.frozen and meet.alike():
            lasts = (20 * US + op.bytes // 50) * (0.9 + 0.2 * self.random.random())
            self.at(self.now + int(lasts), self.finish, meet)

    def finish(self, meet):
        if meet.frozen:
            return
        for op in meet.ops.values():
            op.end = self.now
            self.release(op)

    def finish_work(self, work):
        if self.ranks[work.rank].died is None:
            work.end = self.now
            self.release(work)

    def release(self, op):
        r = self.ranks[op.rank]
        r.open -= 1
        for o in op.then:
            o.needs -= 1
            if not o.needs:
                self.at(self.now + self.random.randrange(1, 5) * US, self.launch, o)
        op.then = []
        if r.parked is HOLD and not r.open and r.died is None:
            r.parked = None
            self.at(self.now + 10 * US, self.step, r)

    # endings

    def die(self, r, how):
        """how: sigkill, _exit, crash, exit (its exit handler runs), final (every communicator destroyed
        before)."""
        if r.died is not None:
            return
        r.died, r.how = self.now, how
        for op in r.ops:
            if op.end is None and op.given_up is None:
                op.meet.frozen = True
        for c in r.comms.values():
            if c[1] is None and how in ("exit", "final"):
                c[1:] = [self.now, "destroy" if how == "final" else "exit"]

    def abort(self, r, name):
        for op in r.of[name]:
            if op.end is None and op.given_up is None:
                op.given_up = self.now
                op.meet.frozen = True
                self.release(op)
        r.comms[name][1:] = [self.now, "destroy"]

    def kill(self, rank, when, how="sigkill"):
        self.at(when, self.die, self.ranks[rank], how)

    def inside(self, comm=None):
        """Operations in whose kernel somebody is now, oldest first."""
        out = [
            o
            for r in self.ranks
            for o in r.ops
            if o.start is not None and o.end is None and o.given_up is None
        ]
        return sorted((o for o in out if comm is None or o.comm.name == comm), key=lambda o: o.start)


def seen(op, r, look, lag=0):
    """Of an operation at a look what its process saw: none, called, queued, inside, done, given_up. A process
    that was killed lacks what its progress thread would have seen within `lag` of its death."""
    until = look if r.died is None else min(look, r.died)
    if op.enq > until:
        return "none"
    if op.called_only:
        return "called"
    if op.replay is not None:
        return "done"  # its bracket is all that NCCL shows
    if (
        op.end is not None
        and op.end <= until - (lag if r.died is not None and r.died <= look else 0)
        and not op.lost
    ):
        return "done"
    if op.given_up is not None and op.given_up <= until:
        return "given_up"
    return "inside" if op.start is not None and op.start <= until else "queued"
