"""What a summary's findings are worth beside the truth of a job (docs/verdicts.md, "How a job is scored")."""
import bisect
import json
import os
import subprocess

import incidents

# of findings without a level
LEVELS = {"late_rank": "rank", "slow_communicator": "communicator", "slow_host": "host"}
SPANNED = ("onset", "episode", "moving", "congestion")
NOTES = ("uneven_work", "undecided")  # of findings without a class


def findings(summary):
    """Findings in one form: level, ranks, hosts, communicator, lost (s), low, high, onset, end, text."""
    out = []
    for f in summary["findings"]:
        ranks = f.get("ranks")
        if not isinstance(ranks, list):
            ranks = [f["rank"]] if f.get("rank") is not None else []
        hosts = f.get("hosts") or ([f["hostname"]] if f.get("hostname") else [])
        out.append({"kind": f["kind"], "class": f.get("class") or ("note" if f["kind"] in NOTES else "fault"),
                    "period": f.get("period_steps"), "length": f.get("length_s"), "times": f.get("times"),
                    "moments": f.get("moments"), "level": f.get("level") or LEVELS.get(f["kind"], "job"),
                    "ranks": set(ranks), "hosts": set(hosts),
                    "communicator": f.get("communicator") or f.get("id"), "text": f["text"],
                    "lost": f["cost_s"] if f.get("cost_s") is not None else f.get("lost_us", 0) / 1e6,
                    "low": f.get("cost_low_s"), "high": f.get("cost_high_s"), "has_onset": "onset_step" in f,
                    "onset": f.get("onset_step"), "end": f.get("end_step")})
    return out


def is_subject(finding, subject):
    if finding["level"] != subject["level"]:
        return False
    if "communicator" in subject and finding["communicator"] != subject["communicator"]:
        return False
    return all(k not in subject or finding[k] == set(subject[k]) for k in ("ranks", "hosts"))


def matches(finding, culprit):
    """2: the right level and subject; 1: a related one; 0: neither."""
    right = culprit.get("class", "fault")
    if right == "note" and finding["class"] == "fault":
        return 0  # nobody is to blame for it
    if any(is_subject(finding, s) for s in culprit["accept"]):
        return 1 if right == "fault" and finding["class"] == "note" else 2
    return 1 if any(is_subject(finding, s) for s in culprit["related"]) else 0


def spans(finding, culprit, kind, steps):
    """Errors in steps of begin and end, where the cause has them; None: not said."""
    if kind not in SPANNED or not finding["has_onset"]:
        return None, None
    onset = None if culprit["onset_step"] == 0 else abs((finding["onset"] or 0) - culprit["onset_step"])
    end = None
    if culprit["end_step"] is not None:
        end = abs((steps if finding["end"] is None else finding["end"]) - culprit["end_step"])
    return onset, end


def in_steps(truth, culprit):
    """When a flap or a burst was, in steps with decimals; [] where the cause is always there."""
    at = culprit.get("bursts") or culprit.get("spans") or []
    by_time = truth.get("model") == "second" and "bursts" not in culprit
    seconds = culprit.get("moments_s") or (at if by_time else None)
    if not seconds:
        return at
    begin = truth["step_begin_s"]
    return [[max(0, bisect.bisect_right(begin, x) - 1) for x in pair] for pair in seconds]


def length_s(culprit):
    """Of one of the pauses that come again and again."""
    unit = {"ms": 1e-3, "s": 1}.get(culprit.get("unit"))
    return culprit.get("length_s") or (culprit["size"] * unit if unit else None)


def about(truth, culprit, finding):
    """What a finding says beside who and how much, against the truth; None: it or the cause has none."""
    out = {"right_kind": None, "period": None, "length": None, "times": None, "moments": None}
    if culprit.get("finding"):
        out["right_kind"] = finding["kind"] == culprit["finding"]
    if culprit.get("period_steps") and finding["kind"] == "periodic_work":
        period = finding["period"]
        out["period"] = bool(period) and abs(period / culprit["period_steps"] - 1) <= 0.1
        true = length_s(culprit)
        out["length"] = bool(finding["length"] and true) and abs(finding["length"] / true - 1) <= 0.3
    true = in_steps(truth, culprit) if finding["kind"] in ("flapping_link", "throttling") else []
    if true and finding["times"]:
        out["times"] = finding["times"] / len(true)
    if true and finding["moments"]:
        said = [(m["step"], m["end_step"] if m["end_step"] is not None else truth["steps"])
                for m in finding["moments"]]
        hit = sum(any(a <= last + 1 and b >= first - 1 for first, last in true) for a, b in said)
        out["moments"] = hit / len(said)
    return out


def drawn_uneven(truth, finding):
    """Experts that get more in all steps are weather: a note that says so is true, and accuses nobody."""
    return finding["kind"] == "uneven_work" and (truth.get("weather") or {}).get("experts", 0) >= 0.04 \
        and not any(matches(finding, c) for c in truth["culprits"])


def has_more_to_do(truth, finding):
    """A note that a stage takes longer is true, and accuses nobody, where it has more to do than most, in all
    or for as many layers."""
    work = truth.get("stage_work")
    if finding["class"] != "note" or finding["level"] != "stage" or not work:
        return False
    stages = {truth["stages"][r] for r in finding["ranks"] if r < len(truth["stages"])}
    layers = (truth.get("shape") or {}).get("stage_layers") or [1] * len(work)
    each = [x / n for x, n in zip(work, layers)]
    stage = stages.pop() if len(stages) == 1 else None
    more = stage is not None and any(x[stage] >= 1.02 * sorted(x)[(len(x) - 1) // 2] for x in (work, each))
    return more and not any(matches(finding, c) for c in truth["culprits"])


def judge(truth, summary):
    """The outcome of a job, as a dict of plain values."""
    culprits = truth["culprits"]
    said = [f for f in findings(summary) if not drawn_uneven(truth, f) and not has_more_to_do(truth, f)]
    accused = [f for f in said if f["kind"] != "undecided" or not culprits]
    best = [[matches(f, c) for c in culprits] for f in accused]
    # A note accuses nobody; in a job without a cause that nothing can be told is said of somebody all the
    # same.
    notes = [f["class"] == "note" and f["kind"] != "undecided" for f in accused]
    faults = [b for b, note in zip(best, notes) if not note]
    first = faults if any(c.get("class", "fault") == "fault" for c in culprits) and faults else best
    named = [max((b[i] for b in best), default=0) for i in range(len(culprits))]
    out = {"layout": truth["layout"], "model": truth.get("model", "first"), "kind": truth["kind"],
           "complete": summary["complete"], "cost": truth["cost_percent"],
           "identifiable": all(c["identifiable"] for c in culprits),
           "causes": len(culprits), "findings": len(accused),
           "first": bool(first) and max(first[0], default=0) > 0, "exactly": any(n == 2 for n in named),
           "named": sum(n > 0 for n in named), "named_exactly": sum(n == 2 for n in named),
           "innocents": sum(max(b, default=0) == 0 for b, note in zip(best, notes) if not note),
           "wrong_notes": sum(max(b, default=0) == 0 for b, note in zip(best, notes) if note),
           "about": {}, "weather": truth.get("weather") or {},
           "undecided": any(f["kind"] == "undecided" for f in said), "lost": None, "within": None,
           "onset": None, "end": None,
           "all_late": summary.get("late_share_median", 0) >= 0.1,
           "each": [{"cost": c["cost_percent"], "identifiable": c["identifiable"], "match": n,
                     "first": bool(first) and first[0][i] > 0,
                     "ratio": next((f["lost"] / c["cost_s"] for f, b in zip(accused, best) if b[i] and
                                    c["cost_s"] > 0.005), None)}
                    for i, (c, n) in enumerate(zip(culprits, named))],
           "sentences": [{"named": max(b, default=0), "text": f["text"]} for f, b in zip(accused, best)]}
    for f, b in zip(accused, best):
        if not b or max(b) == 0:
            continue
        c = culprits[b.index(max(b))]
        if c["cost_s"] > 0.005:
            out["lost"] = f["lost"] / c["cost_s"]
        if f["low"] is not None and f["high"] is not None:
            out["within"] = f["low"] <= c["cost_s"] <= f["high"]
        out["onset"], out["end"] = spans(f, c, truth["kind"], truth["steps"])
        out["about"] = about(truth, c, f)
        break
    return out


def summarise(exporter, folder, out):
    """Runs the summary of a job and reads what it says."""
    args = [exporter, "summary", folder, "--output-dir", out, "--no-plots", "--no-html", "--no-parquet",
            "--no-csv", "-q",
            "-j1"]
    p = subprocess.run(args, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if p.returncode not in (0, 2):
        raise RuntimeError("%s: exit %d: %s" % (" ".join(args), p.returncode, p.stderr.strip()))
    with open(os.path.join(out, "summary", "summary.json")) as f:
        return json.load(f)


def score(exporter, folder, out):
    with open(os.path.join(folder, "truth.json")) as f:
        truth = json.load(f)
    summary = summarise(exporter, folder, out)
    return dict(judge(truth, summary), incidents=incidents.count(truth, summary["outliers"])[0])
