"""net_prof's functions, by ``nccl-inspector counters``: change ``import net_prof`` to ``from nccl_inspector import net_prof``.

Names, arguments and results are those of net_prof 0.1.11; files of 0.1.6 are read, too. What is other, and better, says
docs/python.md: a counter that wrapped or was reset, NICs from the ninth on, a difference that is no number.
"""

from __future__ import annotations

import csv
import html
import json
import os
import tempfile
import warnings
from typing import Any, Dict, List, Mapping, Optional, Tuple

from ._programs import InspectorError, Path, run_command

__all__ = ["NetProfError", "collect", "compare", "dump", "dump_html", "summarize"]

Key = Tuple[int, int]  # (interface from 1, metric id from 1)

NIC_COUNT = 8  # net_prof's: so many there always are in its results
TOP = 20
IMPORTANT = (17, 18, 22, 564, 565, 613, 614, 835, 839, 869, 873, 1597, 1598, 1599, 1600, 1724)
#: States of a counter in which its difference is a number (docs/counters.md).
NUMBERS = ("none", "changed", "level")


class NetProfError(InspectorError, ValueError):
    """What net_prof raises ValueError for. The text is the command's message."""


def _run(words: List[str]) -> str:
    """Runs a counters command. Its messages about what is incomplete are warnings."""
    try:
        out, said = run_command(["counters"] + words, (0, 2))
    except InspectorError as e:
        raise NetProfError(str(e), e.returncode) from None
    for line in said.splitlines():
        if "not read" in line:
            warnings.warn(line, RuntimeWarning, stacklevel=3)
    return out


def collect(input_path: Path, output_file: Path) -> None:
    """Reads all counters of one ``.../cxiN/device/telemetry`` or of a folder of ``cxiN`` once, into a JSON file.

    What cannot be read is a warning. Raises NetProfError, a ValueError, when there is nothing to read.
    """
    source, out = os.fspath(input_path), os.fspath(output_file)
    if not os.path.isdir(source):
        raise NetProfError("Path %r does not exist or is not a directory." % source)
    _run(["collect", "--quiet", "--from=" + source, "--", out if os.path.dirname(out) else os.path.join(".", out)])
    with open(out, encoding="utf-8") as f:
        written = json.load(f)
    print("Collected %d counters in %.2fs → %s" % (len(written["counters"]), written["meta"]["duration_s"], out))


def summarize(before_path: Path, after_path: Path, metrics_path: Optional[Path] = None) -> Dict[str, Any]:
    """What every counter did between two files of collect(), or two text files.

    metrics_path: another list of counters than net_prof's own, a name a line; ids are places in it. For JSON files alone.

    Beside net_prof's keys: ``without_number`` {(interface, id): state}, counters that have no difference and are left out of
    ``full_diffs``; and ``nccl_inspector``, all that ``counters summarize --json`` says: findings, rates, other fabrics.
    """
    before, after = os.fspath(before_path), os.fspath(after_path)
    sweeps = [_load(path) for path in (before, after)]
    with tempfile.TemporaryDirectory(prefix="nccl-inspector-") as folder:
        table = os.path.join(folder, "counters.csv")
        said = json.loads(_run(["summarize", "--json", "--csv=" + table, "--", os.path.abspath(before), os.path.abspath(after)]))
        with open(table, encoding="utf-8", newline="") as f:
            rows = [row for row in csv.DictReader(f) if row["source"] == "cxi"]
    names = _names(rows) if metrics_path is None else _names_in(metrics_path, None in sweeps)
    ids = {name: i for i, name in enumerate(names, 1)}

    last = max([NIC_COUNT] + [int(row["interface"]) for row in rows])
    full: Dict[Key, int] = {(iface, i): 0 for i in range(1, len(names) + 1) for iface in range(1, last + 1)}
    without: Dict[Key, str] = {}
    for row in rows:
        if row["counter"] not in ids:
            continue  # of a later Cassini than the list
        key = int(row["interface"]), ids[row["counter"]]
        if row["state"] == "stale" and row["before"] and row["after"]:
            full[key] = int(row["after"]) - int(row["before"])
        elif row["state"] in NUMBERS:
            full[key] = int(row["diff"] or 0)
        else:
            del full[key]
        if row["state"] not in NUMBERS:
            without[key] = row["state"]

    by_iface: Dict[int, List[Dict[str, Any]]] = {iface: [] for iface in range(1, last + 1)}
    for (iface, i), diff in full.items():
        by_iface[iface].append({"iface": iface, "metric_id": i, "metric_name": names[i - 1], "diff": diff})
    important = [i for i in range(1, len(names) + 1) if i in IMPORTANT]
    return {
        "before_meta": sweeps[0]["meta"] if sweeps[0] else {},
        "after_meta": sweeps[1]["meta"] if sweeps[1] else {},
        "total_non_zero": sum(diff != 0 for diff in full.values()),
        "non_zero_per_iface": {iface: sum(r["diff"] != 0 for r in found) for iface, found in by_iface.items()},
        "top20_per_iface": {iface: sorted(found, key=lambda r: -abs(r["diff"]))[:TOP] for iface, found in by_iface.items()},
        "important_metrics": {i: {"metric_name": names[i - 1], "diffs": {iface: full[iface, i] for iface in by_iface if (iface, i) in full}}
                              for i in important},
        "collected": sweeps[0]["counters"] if sweeps[0] else [],
        "full_diffs": full,
        "without_number": without,
        "nccl_inspector": said,
    }


def _load(path: str) -> Optional[Dict[str, Any]]:
    """A JSON file of either version; None: it is another kind, which the command tells by what is in it."""
    with open(path, "rb") as f:
        if not path.lower().endswith(".json"):
            return None
        try:
            found = json.load(f)
        except ValueError as e:
            raise NetProfError("%s: no JSON: %s" % (path, e)) from None
    if isinstance(found, list):
        return {"meta": {}, "counters": found}
    if not isinstance(found, dict) or not isinstance(found.get("counters"), list):
        raise NetProfError("%s: no file of collect()" % path)
    return {"meta": found.get("meta") or {}, "counters": found["counters"]}


def _names(rows: List[Dict[str, str]]) -> List[str]:
    """net_prof's list of counters: of what one NIC has, or else of what the command knows."""
    found = {int(row["metric_id"]): row["counter"] for row in rows if row["metric_id"]}
    if len(found) < 1890:
        with tempfile.TemporaryDirectory(prefix="nccl-inspector-") as folder:
            text, table = os.path.join(folder, "names.txt"), os.path.join(folder, "names.csv")
            with open(text, "w", encoding="utf-8") as f:
                f.write("0@1.0\n" * 1890)  # a text file names no counter: all of the list, in its order
            _run(["summarize", "--json", "--csv=" + table, text, text])
            with open(table, encoding="utf-8", newline="") as f:
                found = {int(row["metric_id"]): row["counter"] for row in csv.DictReader(f)}
    return [found[i] for i in sorted(found)]


def _names_in(path: Path, text: bool) -> List[str]:
    if text:
        raise NetProfError("metrics_path: text files have the counters of net_prof's own list; collect() writes JSON, which has names")
    with open(path, encoding="utf-8") as f:
        return [line.split()[-1] for line in f if line.strip()]


def dump(summary: Mapping[str, Any]) -> None:
    """Prints a summary as net_prof does. Where a counter has no difference it says why instead of a number."""
    without: Mapping[Key, str] = summary.get("without_number", {})
    print("\nTotal non-zero diffs: %d\n" % summary["total_non_zero"])
    for finding in summary.get("nccl_inspector", {}).get("findings", []):
        print("%s: %s %s" % (finding["level"], finding["text"], finding["advice"]))
    print("Non-zero diffs by interface:")
    for iface, count in summary["non_zero_per_iface"].items():
        print(f"  Interface {iface:<2}: {count}\n")
    for iface, entries in summary["top20_per_iface"].items():
        print(f"Top 20 diffs for Interface {iface}:")
        print(f"{'Rank':<6}{'Metric ID':<12}{'Metric Name':<30}{'Difference':>12}")
        print("-" * 60)
        for rank, entry in enumerate(entries, start=1):
            print(f"{rank:<6}{entry['metric_id']:<12}{entry['metric_name']:<30}{entry['diff']:>12}")
        shown = sum(entry["diff"] != 0 for entry in entries)
        print(f"Total non-zero diffs not shown in Interface {iface}: {summary['non_zero_per_iface'][iface] - shown}\n")
    print("Important Metrics (diffs by interface):")
    ifaces = list(summary["non_zero_per_iface"])
    header = f"{'Metric ID':<15} {'Metric Name':<40}" + "".join(f" {'Iface' + str(i):<15}" for i in ifaces)
    print(header)
    print("-" * len(header))
    for mid, data in summary["important_metrics"].items():
        print(f"{mid:<15} {data['metric_name']:<40}" + "".join(f" {data['diffs'].get(i, without.get((i, mid), 0)):<15}" for i in ifaces))
    if without:
        print("\nWithout a difference:")
    for state in sorted(set(without.values())):
        found = [key for key, s in without.items() if s == state]
        print("  %s: %s%s" % (state, ", ".join("interface %d metric %d" % key for key in found[:10]), " and %d more" % (len(found) - 10) if len(found) > 10 else ""))


def dump_html(summary: Mapping[str, Any], output_file: Path) -> None:
    """Writes the page of ``counters summarize --html``: one file, which loads nothing."""
    if "nccl_inspector" not in summary:
        raise NetProfError("dump_html(): no summary of this module's summarize()")
    with tempfile.TemporaryDirectory(prefix="nccl-inspector-") as folder:
        path = os.path.join(folder, "summary.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(summary["nccl_inspector"], f)
        _run(["summarize", "--html=" + os.path.abspath(os.fspath(output_file)), "--json", path])
    print("HTML report saved to: %s" % os.fspath(output_file))


def compare(summary_a: Mapping[str, Any], summary_b: Mapping[str, Any], output_file: Path, *, label_a: str = "Test A",
            label_b: str = "Test B", min_diff: int = 1) -> Dict[str, Any]:
    """What differs between two results of summarize(): the same as net_prof's result, and a page.

    Counters that have a difference in one of the two alone are left out, and counted in ``without_number``. Rates and findings of
    two runs of different length are what ``nccl-inspector counters diff`` is for; the page has the findings.
    """
    for name in ("full_diffs", "non_zero_per_iface"):
        if name not in summary_a or name not in summary_b:
            raise NetProfError("compare(): missing key %r; are these summarize() outputs?" % name)
    a: Dict[Key, int] = summary_a["full_diffs"]
    b: Dict[Key, int] = summary_b["full_diffs"]
    unknown = set(summary_a.get("without_number", ())) | set(summary_b.get("without_number", ()))
    changed: Dict[Key, Dict[str, int]] = {}
    for key in sorted((a.keys() | b.keys()) - unknown):
        old, new = a.get(key, 0), b.get(key, 0)
        if abs(new - old) >= min_diff:
            changed[key] = {"old": old, "new": new, "delta": new - old}
    counts_a, counts_b = summary_a["non_zero_per_iface"], summary_b["non_zero_per_iface"]
    delta = {i: counts_b.get(i, 0) - counts_a.get(i, 0) for i in sorted(counts_a.keys() | counts_b.keys())}
    names = {r["metric_id"]: r["metric_name"] for s in (summary_a, summary_b) for found in s["top20_per_iface"].values() for r in found}
    if not names.keys() >= {i for _, i in changed}:
        names = dict(enumerate(_names([]), 1))

    page = ["<!DOCTYPE html><html><head><meta charset='utf-8'><title>Compare Report</title><style>body{font-family:sans-serif;margin:2rem}"
            "table{border-collapse:collapse}th,td{border:1px solid #ccc;padding:.3rem;text-align:left}</style></head><body>",
            "<h1>Compare Report</h1><h2>%s ↔ %s</h2>" % (html.escape(label_a), html.escape(label_b))]
    for label, s in ((label_a, summary_a), (label_b, summary_b)):
        said = s.get("nccl_inspector", {})
        page.append("<h3>%s: %s</h3><ul>" % (html.escape(label), html.escape(str(said.get("verdict", "")))))
        page += ["<li>%s: %s %s</li>" % tuple(html.escape(f[k]) for k in ("level", "text", "advice")) for f in said.get("findings", [])]
        page.append("</ul>")
    heads = [label_a, label_b, "Δ"]
    page += _table("Δ Non-zero counter diffs per interface", ["Interface"] + heads,
                   [["Iface %d" % i, counts_a.get(i, 0), counts_b.get(i, 0), "%+d" % d] for i, d in delta.items()])
    page += _table("Metrics with changed diffs (|Δ| ≥ %d), the largest first; %d without a number are left out" % (min_diff, len(unknown)),
                   ["Interface", "Metric ID", "Metric Name"] + heads,
                   [["Iface %d" % k[0], k[1], names.get(k[1], "Metric %d" % k[1]), v["old"], v["new"], "%+d" % v["delta"]]
                    for k, v in sorted(changed.items(), key=lambda kv: -abs(kv[1]["delta"]))])
    with open(output_file, "w", encoding="utf-8") as f:
        f.write("\n".join(page + ["</body></html>\n"]))
    print("Compare report saved to: %s" % os.fspath(output_file))
    return {"delta_non_zero_per_iface": delta, "changed_metrics": changed, "without_number": len(unknown)}


def _table(title: str, heads: List[str], rows: List[List[Any]]) -> List[str]:
    def row(cells: List[Any], tag: str) -> str:
        return "<tr>%s</tr>" % "".join("<%s>%s</%s>" % (tag, html.escape(str(c)), tag) for c in cells)

    return ["<h3>%s</h3><table>" % html.escape(title), row(heads, "th")] + [row(r, "td") for r in rows] + ["</table>"]
