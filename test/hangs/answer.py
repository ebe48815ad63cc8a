"""Reads an answer of `nccl-inspector hang` and holds it against the truth of a case."""

import json
import os
import re
import subprocess
import time

import box

EXIT = {"hang": 3, "not_yet": 0, "no_hang": 0, "cannot_tell": 2, "dead": 4, "ended": 0, "no_data": 1}
BEGINS = [
    ("HANG (certain)", "hang"),
    ("HANG (likely)", "hang"),
    ("not yet a hang", "not_yet"),
    ("no hang", "no_hang"),
    ("CANNOT TELL", "cannot_tell"),
    ("DEAD", "dead"),
    ("ENDED", "ended"),
]
VERDICT = {
    "hang": ("likely", "certain"),
    "not_yet": ("no_hang",),
    "no_hang": ("no_hang",),
    "cannot_tell": ("cannot_tell",),
    "dead": ("no_hang",),
    "ended": ("no_hang",),
    "no_data": ("no_data",),
}
TORCH = {
    "_all_gather_base": "AllGather",
    "_reduce_scatter_base": "ReduceScatter",
    "all_reduce": "AllReduce",
    "broadcast": "Broadcast",
    "send": "Send",
    "recv": "Recv",
}


class Answer:
    """answer, sentence, exit code, and the cause: comm, func, sn, ranks (global); seconds it took."""

    def __init__(self, code, text, seconds, errors=""):
        self.code, self.seconds, self.errors = code, seconds, errors
        self.d = {}
        try:
            self.d = json.loads(text)
        except ValueError:
            self.errors += " (no JSON document: %r)" % text[:100]
        self.sentence = self.d.get("sentence") or ""
        said = [a for b, a in BEGINS if self.sentence.startswith(b)]
        self.said = said[0] if said else "no_data"
        self.answer = (self.d.get("answer") or self.said).replace("_certain", "").replace("_likely", "")
        cause = self.d.get("cause") if "cause" in self.d else self.first_wait()
        self.comm = self.func = self.sn = self.hash = None
        self.ranks, self.text = set(), ""
        if cause:
            op = cause.get("operation") or {}
            self.comm, self.hash = cause.get("comm_name"), int(cause.get("hash") or "0", 16)
            self.func, self.sn = op.get("func"), op.get("sn")
            self.ranks = {r["global_rank"] for r in cause.get("ranks", [])}
            self.text = cause.get("text", "")

    def first_wait(self):
        """Of releases that have no `cause` in the document."""
        for w in self.d.get("waits", [])[:1]:
            away = ("never_called", "other_call", "gone", "left", "called")
            return dict(w, ranks=[r for r in w["ranks"] if r["where"] in away])
        return None

    def agrees(self):
        """Do sentence, document and exit code say the same?"""
        state = self.d.get("job", {}).get("state")
        fits = {"dead": state == "dead", "ended": state == "ended"}.get(self.answer, state not in ("ended",))
        return (
            self.said == self.answer
            and self.code == EXIT[self.answer]
            and self.d.get("verdict") in VERDICT[self.answer]
            and fits
        )


def ask(program, paths, boxes, now, folder, look=()):
    """now: Unix ns that the answer is given for, None: the time that it is."""
    env = dict(os.environ) if now is None else dict(os.environ, NI_NOW_NS=str(now))
    begun = time.monotonic()
    p = subprocess.run(
        [program, "hang", *paths, "--box-dir", boxes, "--json", "--no-index", *look],
        env=env,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        timeout=60,
    )
    return Answer(
        p.returncode,
        p.stdout.decode("utf-8", "replace"),
        time.monotonic() - begun,
        p.stderr.decode("utf-8", "replace"),
    )


def same_name(comm, asked):
    comm = re.sub(r" \(process group .*", "", comm or "")  # as the answer names the groups of dumps
    return comm == asked or (comm == "default_pg" and asked == "world")


def same_operation(case, a, cause):
    named = same_name(a.comm, cause.comm)
    if box.unnamed() and a.comm is None:  # no communicator has a name there
        named = any(c.hash == a.hash for n, c in case.job.sim.comms.items() if same_name(n, cause.comm))
    if not named:
        return False
    if case.source == "dumps":
        func = TORCH.get(re.split(r"[ :]", a.func or "")[0], a.func)
        return (
            any(func == f for f, _ in cause.ops)
            if func in ("Send", "Recv")
            else (func, a.sn) in case.torch_ops(cause)
        )
    if a.func in (
        "Send",
        "Recv",
    ):  # of a communicator they are judged together: whose they are says who is to blame
        return any(f in ("Send", "Recv") for f, _ in cause.ops)
    return (a.func, a.sn) in cause.ops


def score(case, a):
    """verdict, operation, ranks, agree: True, False, or None where nothing is asked."""
    verdict = a.answer in case.answers
    operation = ranks = None
    if case.causes:
        fit = [c for c in case.causes if same_operation(case, a, c)]
        operation = bool(fit) or (case.faint and a.answer == "cannot_tell")
        if case.any_of_ranks:
            ranks = any((a.ranks or not c.ranks) and a.ranks <= c.ranks for c in fit or case.causes)
        elif case.must_name is not None and case.must_name in a.ranks:
            ranks = True
        elif case.faint:
            ranks = any(a.ranks <= c.ranks | case.blamed for c in fit or case.causes)
        else:
            ranks = any(c.ranks == a.ranks or c.ranks <= a.ranks <= case.blamed for c in fit or case.causes)
    words = all(w in a.sentence for w in case.words) and not any(w in a.sentence for w in case.not_words)
    return {"verdict": verdict and words, "operation": operation, "ranks": ranks, "agree": a.agrees()}
