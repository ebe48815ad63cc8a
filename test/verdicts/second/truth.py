"""truth.json: what was planted, what it cost, who may be named for it, and whether anybody could tell
(docs/verdicts.md).

`identifiable` is conservative: false where another subject would leave the same logs, where the cost is
within the noise of such a job, or where the culprit's own log is missing.
"""

from faults import NOTES, LinkFault
from machine import between_ranks, transfer
from program import COLL, MOVE, SWAP, build

LEAST_PERCENT = 0.3  # of the job: below, chance does as much


def operations(job):
    """(what it crosses, ns within hosts, ns between hosts): each different operation of a training step."""
    seen = {}
    for it in build(job).items:
        if it[0] == COLL:
            comm = job.comms[it[1]]
            seen["c", comm.number, it[2], it[3]] = (comm, None) + transfer(job, comm, it[2], it[3])[1:]
        elif it[0] == MOVE:
            seen["p", it[2], it[3]] = (job.comms[it[1]], (it[2], it[3])) + between_ranks(
                job, it[2], it[3], it[4]
            )[1:]
        elif it[0] == SWAP:
            comm = job.comms[it[1]]
            for a in comm.ranks:
                for b in comm.ranks:
                    if a < b:
                        seen["p", a, b] = (comm, (a, b)) + between_ranks(job, a, b, it[2])[1:]
    return seen


def signature(job, ops, fault):
    """The operations that this fault makes notably slower."""
    out = set()
    for key, (comm, ranks, inside, between) in ops.items():
        i, o = fault.on_comm(job, comm) if ranks is None else fault.on_ranks(job, *ranks)
        fast, slow = max(inside, between), max(inside * i, between * o)
        if slow > 1.1 * fast + 2e3:
            out.add(key)
    return frozenset(out)


def places(job, factor):
    """Every link that could be slow instead."""
    for h in range(job.n_hosts):
        yield LinkFault("nvlink", factor, host=h)
        yield LinkFault("nic", factor, host=h)
        for n in range(job.n_nics):
            yield LinkFault("rail", factor, nic=(h, n))
        for other in range(h):
            yield LinkFault("pair", factor, hosts=(other, h))
    yield LinkFault("fabric", factor)


def on_nic(job, nic):
    return [r for r in range(job.world) if job.nic_of[r] == nic]


def subject(job, f):
    """A place as findings name it."""
    if f.level == "rail":
        return {"level": "rail", "ranks": on_nic(job, f.nic)}
    if f.level == "pair":
        return {"level": "pair", "hosts": [job.hostnames[h] for h in f.hosts]}
    if f.level == "fabric":
        return {"level": "fabric"}
    return {"level": f.level, "hosts": [job.hostnames[f.host]]}


def link_truth(job, cause, factor, sampled=False):
    """(accept, related, identifiable) of a slow link, from which operations can show it. A message's transfer
    is what both sides have in common: of sampled ones each side kept others, so only collectives show it."""
    fault = LinkFault(
        cause.level, factor, cause.subject.get("host"), cause.subject.get("nic"), cause.subject.get("hosts")
    )
    ops = operations(job)
    mine = signature(job, ops, fault)
    accept, related = [subject(job, fault)], []
    told = {k: op for k, op in ops.items() if k[0] == "c" or not sampled}
    seen = signature(job, told, fault)
    same = [f for f in places(job, factor) if signature(job, told, f) == seen] if seen else []
    # The NICs of a host that has one are that NIC, and its rail; nobody could tell them apart, nor need to.
    near = [
        f
        for f in same
        if cause.level in ("nic", "rail")
        and f.level in ("nic", "rail")
        and (f.host if f.level == "nic" else f.nic[0]) == cause.subject["host"]
    ]
    own = (cause.level, fault.host, fault.nic, fault.hosts)
    others = [f for f in same if (f.level, f.host, f.nic, f.hosts) != own and f not in near]
    accept += [subject(job, f) for f in near if subject(job, f) not in accept]
    slowed = sorted({ops[k][0].number for k in mine})
    alike = {ops[k][0].number for k in ops if slowed and ops[k][0].lane == job.comms[slowed[0]].lane}
    # One communicator is slow and others of its kind are not: that much can be told, whoever of it has the
    # slow link. Where one alone crosses hosts, whether the network is slow or a link of it cannot be told.
    one = len(slowed) == 1 and len(alike) > 1
    if one or (cause.level == "fabric" and len(slowed) == 1):
        accept.append({"level": "communicator", "communicator": job.comms[slowed[0]].hash})
    if cause.level == "nvlink":
        accept.append({"level": "host", "hosts": [job.hostnames[cause.subject["host"]]]})
    if cause.level == "rail":
        ranks = accept[0]["ranks"]
        accept.append({"level": "nic", "ranks": ranks})
        related += [{"level": "rank", "ranks": [r]} for r in ranks] + [
            {"level": "nic", "hosts": [job.hostnames[fault.nic[0]]]}
        ]
    if cause.level in ("rail", "nic"):
        h = cause.subject["host"]
        related += [{"level": "host", "hosts": [job.hostnames[h]]}]
        related += [subject(job, f) for f in places(job, factor) if f.level == "rail" and f.nic[0] == h]
        related += [subject(job, f) for f in places(job, factor) if f.level == "pair" and h in f.hosts]
    if cause.level == "pair":
        for h in fault.hosts:
            related += [{"level": level, "hosts": [job.hostnames[h]]} for level in ("nic", "host")]
        for key in mine:
            if key[0] == "p":
                related.append({"level": "pair", "ranks": sorted(key[1:])})
    if cause.level == "fabric":
        related += [{"level": "nic"}, {"level": "pair"}]
    related += [subject(job, f) for f in others]
    related += [{"level": "communicator", "communicator": job.comms[n].hash} for n in slowed]
    return accept, related, bool(seen) and (not others or one or cause.level == "fabric")


def comms_of(job, ranks):
    return [c.hash for c in job.comms if set(ranks) & set(c.ranks)]


def subjects(job, cause, factor, sampled=False):
    """(accept, related, identifiable) of a cause."""
    names = job.hostnames
    if cause.level in ("nvlink", "nic", "rail", "pair", "fabric"):
        return link_truth(job, cause, factor, sampled)
    ranks = sorted(cause.ranks)
    hosts = sorted({job.host_of[r] for r in ranks})
    each = [{"level": "rank", "ranks": [r]} for r in ranks]
    all_of = [
        {"level": "host", "hosts": [names[h]]}
        for h in hosts
        if 2 * sum(job.host_of[r] == h for r in ranks) >= job.gpus
    ]
    if cause.kind == "evaluation":
        return (
            [{"level": level} for level in ("job", "all")]
            + [{"level": "rank", "ranks": list(range(job.world))}],
            [],
            False,
        )
    if cause.level == "rank":
        accept = [{"level": "rank", "ranks": ranks}]
        related = [s for s in each + all_of if s not in accept]
        if cause.kind == "gpu":
            related += [{"level": "communicator", "communicator": c} for c in comms_of(job, ranks)]
        if job.gpus == 1:
            accept += all_of
        if cause.kind == "checkpoint":
            related += [
                {"level": "host", "hosts": [names[h] for h in hosts]},
                {"level": "replica", "ranks": ranks},
            ]
        return accept, [s for s in related if s not in accept], True
    if cause.level == "host":
        h = hosts[0]
        accept = [{"level": "host", "hosts": [names[h]]}]
        return accept, each + [{"level": "rank", "ranks": ranks}], job.n_hosts > 1
    accept = [{"level": cause.level, "ranks": ranks}]
    if cause.level == "stage":
        accept.append({"level": "stage", "hosts": [names[h] for h in hosts]})
        if len(ranks) == len(hosts) * job.gpus and len(hosts) == 1:
            accept.append(all_of[0])
    related = each + all_of + [{"level": level, "ranks": ranks} for level in ("stage", "replica", "rank")]
    if cause.level == "replica":
        related += [
            {"level": "communicator", "communicator": c.hash} for c in job.comms if set(c.ranks) <= set(ranks)
        ]
    return accept, [s for s in related if s not in accept], True


def who(job, cause):
    """The culprit by its names in truth.json."""
    out = {}
    x = cause.subject
    if cause.level == "rank":
        out["rank"] = x["rank"]
    if "host" in x:
        out["host"] = job.hostnames[x["host"]]
    if "nic" in x:
        out["nic"], out["rank"] = x["nic"][1], on_nic(job, x["nic"])[0]
    if "hosts" in x:
        out["host"], out["host_b"] = (job.hostnames[h] for h in x["hosts"])
    if "stage" in x:
        out["stage"], out["stage_ranks"] = x["stage"], sorted(cause.ranks)
        out["stage_hosts"] = sorted({job.hostnames[job.host_of[r]] for r in cause.ranks})
    if "replica" in x:
        out["replica"] = x["replica"]
    return out


def moments(job, cause, outcome):
    """[begin, end] in ns of what does not last from the onset to the end."""
    if cause.spans:
        return cause.spans
    begins = outcome.step_begin + [outcome.end]
    if "bursts" in cause.extra:
        return [(begins[a], begins[z]) for a, z in cause.extra["bursts"]]
    steps = set(cause.extra.get("steps", ()))
    stops = [
        (b, b + ns)
        for r, s, b, ns, _, why in outcome.incidents
        if why == "pause" and s in steps and r in cause.ranks
    ]
    if not stops and steps:  # an evaluation ends with its step
        return [(begins[s], begins[s + 1]) for s in sorted(steps)]
    out = []
    for a, z in sorted(stops):  # those of a host's ranks are one
        if out and a < out[-1][1]:
            out[-1] = (out[-1][0], max(z, out[-1][1]))
        else:
            out.append((a, z))
    return out


def stage_work(job):
    """What a stage has to do without a cause, in layers."""
    work = list(job.stage_layers)
    work[0] += job.first_extra
    work[-1] += job.last_extra
    return [round(x, 3) for x in work]


def has_bytes(job):
    """Whether messages of experts show who has more tokens: an AlltoAll's size is the same on all its
    ranks."""
    return job.layout == "M" and not job.native_alltoall


def culprit(job, cause, strength, outcome, without_s, missing, sampled=False):
    """One of truth.json's culprits; `outcome` is that of the job with it."""
    with_s = outcome.end / 1e9
    x = cause.size
    factor = 1.0 + (x - 1.0) * strength if cause.unit == "x" else 1.0
    accept, related, can = subjects(job, cause, factor, sampled)
    percent = 100.0 * (with_s - without_s) / with_s
    onset, end = cause.onset, cause.end
    if cause.spans:  # their steps
        onset = max(0, sum(b <= cause.spans[0][0] for b in outcome.step_begin) - 1)
        end = min(job.steps, sum(b <= cause.spans[-1][1] for b in outcome.step_begin))
    # Without messages by the work a rank that has more of it looks slow.
    noted = cause.kind in NOTES and (cause.kind != "uneven" or has_bytes(job))
    # Without tensor parallelism the first or the last stage looks as slow with an embedding or a loss.
    either = cause.kind == "stage" and job.tp == 1 and cause.subject["stage"] in (0, job.pp - 1)
    concerned = comms_of(job, cause.ranks) or [
        s["communicator"] for s in accept + related if "communicator" in s
    ]
    can = can and cause.kind != "inference"  # it has no steps, and no two batches have the same work
    can = can and percent >= LEAST_PERCENT and not set(cause.ranks) & set(missing)
    return {
        "kind": cause.kind,
        "level": cause.level,
        "class": "any" if either else "note" if noted else "fault",
        "strength": round(strength, 4),
        **who(job, cause),
        "ranks": sorted(cause.ranks),
        "size": round({"x": factor, "times": x}.get(cause.unit, x * strength), 4),
        "unit": cause.unit,
        "cost_s": round(with_s - without_s, 6),
        "cost_percent": round(percent, 3),
        "identifiable": bool(can),
        "onset_step": onset,
        "end_step": end,
        "spans": [[round(a / 1e9, 6), round(b / 1e9, 6)] for a, b in moments(job, cause, outcome)],
        "communicators": sorted(set(concerned)),
        "accept": accept,
        "related": related,
        **cause.extra,
    }
