"""Draws that a planted cause cannot shift: each is a hash of the seed and of its place (step, rank,
operation)."""

import functools
import math
import random

MASK = (1 << 64) - 1
ROWS = 1 << 16
LONGEST = 1 << 14


def mix(*keys):
    """A number of 64 bits from integers and texts (the finaliser of splitmix64 over each of them)."""
    h = 0x9E3779B97F4A7C15
    for k in keys:
        if isinstance(k, str):
            k = int.from_bytes(k.encode(), "little") % MASK
        h = (h ^ k) * 0xBF58476D1CE4E5B9 & MASK
        h = (h ^ h >> 27) * 0x94D049BB133111EB & MASK
        h ^= h >> 31
    return h


def unit(*keys):
    """Uniform in [0, 1)."""
    return mix(*keys) / 2.0**64


def stream(*keys):
    """A generator for the draws of one place, as many as it likes."""
    return random.Random(mix(*keys))


def log_uniform(rng, low, high):
    return math.exp(rng.uniform(math.log(low), math.log(high)))


@functools.lru_cache(None)
def normal_row():
    gauss = stream("noise").gauss
    return [gauss(0.0, 1.0) for _ in range(ROWS)]


@functools.lru_cache(8)
def factor_row(deviation, tail):
    """A long row of factors around 1; a share `tail` of them is much longer: clocks, page faults, scrubbing
    of memory."""
    rng = stream("tail")
    row = [max(0.2, 1.0 + deviation * x) for x in normal_row()]
    for _ in range(int(tail * ROWS)):
        row[rng.randrange(ROWS)] *= 1.0 + rng.expovariate(1 / 0.3)
    return row + row[:LONGEST]


class Noise:
    """Factors around 1 with a relative deviation. Those of one place are a piece of one long row, from where
    a hash says."""

    def __init__(self, seed, deviation, tail=0.0):
        self.row, self.seed = factor_row(deviation, tail), seed

    def piece(self, n, *keys):
        if n > LONGEST:
            raise ValueError("a step of %d draws" % n)
        at = mix(self.seed, *keys) & ROWS - 1
        return self.row[at : at + n]
