"""The shape of a job: hosts, ranks, communicators, links, the model's size. All by the seed, nothing by the
cause.

Layouts, a letter each (truth.json's `layout`, and the first part of a folder's name):
  T  tensor and data parallel        P  tensor, pipeline and data parallel     F  FSDP over all ranks
  H  FSDP within hosts, replicas     D  DDP                                     M  mixture of experts
  O  one communicator alone          I  inference: tensor-parallel engines that serve irregular requests
Times are ns, sizes bytes, speeds GB/s (= bytes per ns).
"""

import collections

from draws import log_uniform, mix, stream

HOST_STEMS = ("node", "gpu-", "ip-10-0-3-", "h100-", "rack2-n", "worker", "dgx")


class Comm:
    """A communicator: its ranks in order, what it is for (t, d, p, e, w), and which links its operations
    cross."""

    def __init__(self, job, number, role, ranks, name):
        self.number, self.role, self.ranks, self.name = number, role, ranks, name
        self.lane = role  # those of a rank with one lane share a stream
        self.hash = "0x%x" % (mix(job.seed, job.attempt, "comm", number) >> 1)
        self.hosts = sorted({job.host_of[r] for r in ranks})
        self.nics = sorted({job.nic_of[r] for r in ranks}) if len(self.hosts) > 1 else []
        members = collections.Counter(job.host_of[r] for r in ranks)
        self.local = max(members.values())
        per_host = collections.Counter(h for h, _ in self.nics)
        self.n_nics = min(per_host.values()) if per_host else 0
        # Other communicators of the role send through the same NICs at the same time.
        self.sharing = max(1.0, job.gpus * self.n_nics / (job.n_nics * self.local)) if self.nics else 1.0
        # Pairs of hosts that are neighbours in its rings.
        self.links = set()
        if len(self.hosts) > 1:
            ring = self.hosts + self.hosts[:1]
            self.links = {tuple(sorted(p)) for p in zip(ring, ring[1:])}


class Job:
    """Draws a shape for `kind` that it makes sense in. `attempt`: another start of the same job."""

    def __init__(self, seed, kind, attempt=0, weather=True, layout=None):
        self.seed, self.kind, self.attempt = seed, kind, attempt
        self.noise = seed  # of what differs from run to run
        rng = stream(seed, "shape")
        for _ in range(400):
            self.draw(rng, kind, layout)
            if self.fits(kind):
                break
        else:
            raise ValueError("no shape for %s" % kind)
        self.draw_speeds(rng)
        self.make_comms(rng)

    def draw(self, rng, kind, layout):
        self.layout = layout or rng.choice("TTTPPPPPFFHDDMMMO")
        if kind == "inference":
            self.layout = "I"
        elif kind in ("stage", "stages_differ"):
            self.layout = "P"
        elif kind == "replica":
            self.layout = rng.choice("TPPP")
        elif kind == "uneven" and rng.random() < 0.5:
            self.layout = "M"
        self.world = rng.choice((4, 8, 12, 16, 16, 16, 16, 24, 24, 32, 32, 32, 32, 48, 64))
        self.gpus = rng.choice((1, 2, 4, 4, 4, 8, 8, 8, 8, 8))
        if self.layout == "I" or (self.layout == "O" and rng.random() < 0.3):
            self.world = rng.choice((4, 8, 8, 16))
        self.n_hosts = self.world // self.gpus if self.world % self.gpus == 0 else 99
        self.tp = self.pp = 1
        self.order = rng.choice(("tp-dp-pp", "tp-dp-pp", "tp-pp-dp"))
        if self.layout in "TP":
            self.tp = rng.choice([t for t in (1, 2, 4, 8) if t <= self.gpus])
        if self.layout == "P":
            self.pp = rng.choice((2, 2, 3, 4, 4, 6, 8))
        if self.layout == "T" and self.tp == 1:
            self.tp = min(2, self.gpus)
        if self.layout == "I":
            self.tp = min(self.gpus, self.world)
        self.dp = self.world // (self.tp * self.pp) if self.world % (self.tp * self.pp) == 0 else 0
        self.ep = rng.choice((4, 8, 8)) if self.layout == "M" else 1

    def fits(self, kind):
        if not 1 <= self.n_hosts <= 8 or self.dp < 1 or self.world < 4:
            return False
        if self.layout == "P" and self.world // self.pp < 1 or self.layout == "I" and self.tp < 2:
            return False
        if self.layout == "T" and self.tp < 2 or self.layout == "M" and self.world % self.ep:
            return False
        if self.layout == "H" and (self.n_hosts < 2 or self.gpus < 2):
            return False
        if kind in ("nic", "rail", "pair", "congestion", "flap", "two") and self.n_hosts < 2:
            return False
        if kind == "pair" and self.n_hosts < 3:
            return False
        if kind in ("nvlink", "two") and self.gpus < 2:
            return False
        if kind == "replica" and (self.dp < 3 or self.tp * self.pp < 2):
            return False
        return True

    def draw_speeds(self, rng):
        self.job_id = rng.randrange(1000, 99999)
        stem = rng.choice(HOST_STEMS)
        first = rng.randrange(1, 60)
        numbers = (
            list(range(first, first + self.n_hosts))
            if rng.random() < 0.6
            else sorted(rng.sample(range(1, 200), self.n_hosts))
        )
        self.hostnames = ["%s%s" % (stem, ("%02d" % n) if stem != "node" else n) for n in numbers]
        if rng.random() < 0.3:
            rng.shuffle(self.hostnames)
        self.n_nics = rng.choice(
            [n for n in (1, 2, 4, 8) if n <= self.gpus and n * 4 >= self.gpus] + [self.gpus] * 3
        )
        self.host_of = [r // self.gpus for r in range(self.world)]
        self.nic_of = [(r // self.gpus, r % self.gpus * self.n_nics // self.gpus) for r in range(self.world)]
        self.nvlink = log_uniform(rng, 90, 400)
        self.nic = log_uniform(rng, 11, 46)
        self.latency = log_uniform(rng, 8e3, 25e3)
        self.layer = log_uniform(rng, 0.35e6, 2.5e6)  # forward time of one layer and micro batch
        self.hidden = log_uniform(rng, 2e6, 60e6)  # bytes of one layer's activations
        self.params = log_uniform(rng, 20e6, 300e6)  # bytes of one layer's parameters on one GPU
        self.by_cpu = rng.random() < (0.5 if self.kind == "cpu" else 0.18)
        self.launch_share = rng.uniform(1.0, 1.3) if self.by_cpu else rng.uniform(0.1, 0.65)
        self.queue = 16  # compute blocks that the CPU may be ahead
        self.sync = rng.random() < 0.7  # the CPU waits for the GPU at each step's end
        self.jitter = log_uniform(rng, 0.005, 0.05)
        self.jitter_step = rng.choice((0.0, 0.0, 0.003, 0.01, 0.02))
        self.spread = rng.choice((0.0005, 0.0015, 0.003))  # of GPUs, which nobody calls slow
        self.optimizer = rng.choice(("reduce", "scatter"))
        self.sequence = rng.random() < 0.4
        self.grad_norm = rng.random() < 0.7
        self.overlap_grads = rng.random() < 0.5
        self.names = rng.choice(("none", "none", "megatron", "own", "pytorch"))
        self.call_numbers = rng.random() < 0.75
        self.native_alltoall = rng.random() < 0.4
        self.buckets = rng.randrange(3, 16)
        self.layers = rng.randrange(6, 17) if self.layout in "FH" else rng.choice((1, 2, 3, 4, 6))
        if self.layout == "M":
            self.layers = rng.randrange(1, 4)
        if self.layout in "DO":
            self.layers = self.buckets
        self.micro = max(self.pp, rng.choice((2, 3, 4, 4, 8)))
        if self.layout == "T":
            self.micro = rng.choice((1, 1, 2, 4))
        self.chunks = 1
        if self.layout == "P" and rng.random() < 0.35:
            self.chunks = 2
            self.micro = self.pp * max(1, self.micro // self.pp)
        self.beside = rng.choice((0.0, 0.0, 0.03, 0.08)) if self.layout in "FHDO" else 0.0
        self.stage_layers = [self.layers] * self.pp
        self.first_extra = self.last_extra = 0.0
        differ = self.kind == "stages_differ" or (self.layout == "P" and rng.random() < 0.3)
        if differ:
            way = rng.randrange(3)
            if way != 1:
                self.first_extra, self.last_extra = rng.uniform(0.1, 0.7), rng.uniform(0.3, 1.6)
            if way != 0:
                self.layers = max(2, self.layers)
                self.stage_layers = [self.layers] * self.pp
                for s in rng.sample(range(self.pp), rng.randrange(1, self.pp)):
                    self.stage_layers[s] += rng.choice((-1, 1))
        self.records_wanted = log_uniform(rng, 42e3, 110e3)
        self.base_name = rng.choice(("python3", "python3.11", "pretrain_gpt", "train"))

    def coordinates(self, r):
        """(tensor, data, pipeline) of a rank."""
        t, rest = r % self.tp, r // self.tp
        if self.order == "tp-dp-pp":
            return t, rest % self.dp, rest // self.dp
        return t, rest // self.pp, rest % self.pp

    def rank_at(self, t, d, p):
        if self.order == "tp-dp-pp":
            return (p * self.dp + d) * self.tp + t
        return (d * self.pp + p) * self.tp + t

    def add(self, role, ranks, megatron):
        if len(ranks) < 2:
            return None
        n = len(self.comms)
        name = {"none": None, "megatron": megatron, "own": "%s_%d" % (role + "p", n), "pytorch": "undefined"}[
            self.names
        ]
        if self.names == "pytorch" and role == "w":
            name = "default_pg"
        c = Comm(self, n, role, list(ranks), name)
        c.lane = megatron
        self.comms.append(c)
        return c

    def make_comms(self, rng):
        self.comms = []
        everybody = range(self.world)
        self.tensor, self.data, self.pipe, self.expert = {}, {}, {}, {}
        self.whole = None
        if self.layout in "TPI":
            grid = [(t, d, p) for p in range(self.pp) for d in range(self.dp) for t in range(self.tp)]
            for t, d, p in grid:
                if t == 0:
                    ranks = [self.rank_at(i, d, p) for i in range(self.tp)]
                    self.tensor[d, p] = self.add("t", ranks, "TENSOR_MODEL_PARALLEL_GROUP")
                if d == 0 and self.layout != "I":
                    ranks = [self.rank_at(t, i, p) for i in range(self.dp)]
                    self.data[t, p] = self.add("d", ranks, "DATA_PARALLEL_GROUP")
                if p == 0:
                    ranks = [self.rank_at(t, d, i) for i in range(self.pp)]
                    self.pipe[t, d] = self.add("p", ranks, "PIPELINE_MODEL_PARALLEL_GROUP")
            if self.grad_norm and self.layout != "I":
                self.whole = self.add("w", everybody, "WORLD")
        elif self.layout == "H":
            for h in range(self.n_hosts):
                self.tensor[h] = self.add("d", [r for r in everybody if self.host_of[r] == h], "SHARD_GROUP")
            for i in range(self.gpus):
                self.data[i] = self.add("d", [r for r in everybody if r % self.gpus == i], "REPLICA_GROUP")
        elif self.layout == "M":
            n = self.world // self.ep
            across = rng.random() < 0.5  # experts over hosts, or next to one another
            for g in range(n):
                ranks = (
                    [g + i * n for i in range(self.ep)]
                    if across
                    else list(range(g * self.ep, (g + 1) * self.ep))
                )
                self.expert[g] = self.add("e", ranks, "EXPERT_MODEL_PARALLEL_GROUP")
            self.whole = self.add("w", everybody, "DATA_PARALLEL_GROUP")
        else:
            self.whole = self.add("w", everybody, "default_pg")

    def stage_of(self, r):
        return self.coordinates(r)[2] if self.layout == "P" else 0

    def replica_of(self, r):
        return self.coordinates(r)[1] if self.layout in "TPI" else r
