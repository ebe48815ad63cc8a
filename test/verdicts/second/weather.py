"""What logs suffer from that is no cause: clocks, stamps, what is missing of them. Drawn by the seed, told in
truth.json."""

from draws import log_uniform, stream

STILL = {
    "overlap_us": 0.2,
    "gap_us": 1.5,
    "timer_ns": 32,
    "drift_ppm": 5.0,
    "offset_ms": 1.0,
    "gpu_drift_ppm": 0.2,
}


def draw(seed, wanted, healthy):
    """A dict by name: only what there is. `wanted` false: the least of each, and logs that lack nothing."""
    if not wanted:
        return dict(STILL)
    rng = stream(seed, "weather")
    w = dict(STILL)
    w["overlap_us"] = log_uniform(rng, 0.1, 5) if rng.random() < 0.75 else log_uniform(rng, 5, 300)
    w["gap_us"] = log_uniform(rng, 0.5, 8) if rng.random() < 0.8 else log_uniform(rng, 8, 300)
    w["timer_ns"] = rng.choice((32, 32, 32, 64, 512, 1000, 1024))
    w["drift_ppm"] = log_uniform(rng, 0.5, 25) if rng.random() < 0.75 else log_uniform(rng, 25, 100)
    w["offset_ms"] = log_uniform(rng, 0.05, 5) if rng.random() < 0.7 else log_uniform(rng, 100, 300e3)
    w["gpu_drift_ppm"] = rng.uniform(0.0, 0.8)
    if rng.random() < 0.1:
        w["clock_step"] = {
            "at": rng.uniform(0.15, 0.85),
            "ms": rng.choice((-1, 1)) * log_uniform(rng, 0.5, 2000),
        }
    rare = rng.random()
    if rare < 0.07:
        w["missing"] = rng.choice(("rank", "rank", "host"))
    elif rare < 0.14:
        w["sample"] = rng.choice((2, 3, 5, 10))
    elif rare < 0.2:
        w["min_size"] = rng.choice((1024, 65536, 1 << 20))
    elif rare < 0.32:
        w["steps"] = 20
    elif rare < (0.42 if healthy else 0.37):
        w["symmetric"] = rng.choice(
            ("AllReduce_RSxLD_AGxST", "AllReduce_RSxLDMC_AGxSTMC", "AllReduce_AGxLL_R")
        )
    return w


class Clocks:
    """Hosts' clocks and the stamps of GPUs, as the plugin relates them."""

    def __init__(self, job, w, epoch_ns, total):
        rng = stream(job.noise, "clocks")
        self.epoch, self.resolution = epoch_ns, w["timer_ns"]
        self.offset = [int(rng.uniform(-1, 1) * w["offset_ms"] * 1e6) for _ in range(job.n_hosts)]
        self.drift = [rng.uniform(-1, 1) * w["drift_ppm"] * 1e-6 for _ in range(job.n_hosts)]
        self.step_at, self.step_ns, self.stepped = None, 0, -1
        if "clock_step" in w:
            self.step_at, self.step_ns = w["clock_step"]["at"] * total, int(w["clock_step"]["ms"] * 1e6)
            self.stepped = rng.randrange(job.n_hosts)
            w["clock_step"]["host"] = job.hostnames[self.stepped]
        # Of each rank: how much too late its GPU's times are, and since when they were related like that.
        self.delivery, self.gpu_epoch = [], []
        for r in range(job.world):
            least = log_uniform(rng, 800, 60e3)
            drift = rng.uniform(-1, 1) * w["gpu_drift_ppm"] * 1e-6
            fits, at, much = [], -1.0, least + rng.expovariate(1 / 15e3)
            while at < total:
                fits.append((at, much, drift))
                at += rng.uniform(0.5e9, 2e9) if len(fits) < 3 else rng.uniform(4e9, 9e9)
                much = least + rng.expovariate(1 / 6e3) / len(fits)
            if self.stepped == job.host_of[r]:
                fits = sorted(fits + [(self.step_at, least, drift)])
            self.delivery.append(fits)
            self.gpu_epoch.append(rng.randrange(1 << 50))

    def host(self, h, t):
        """CLOCK_REALTIME of a host at the true time t (ns from the job's begin)."""
        x = self.epoch + self.offset[h] + int(t + t * self.drift[h])
        if h == self.stepped and t >= self.step_at:
            x += self.step_ns
        return x
