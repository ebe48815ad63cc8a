"""net_prof_same.py BUILD TMP short|long: nccl_inspector.net_prof beside the real net_prof, each on the same
files."""
import contextlib
import gzip
import importlib
import io
import json
import os
import subprocess
import sys
import unittest
import warnings
from datetime import datetime
from unittest import mock

from nccl_inspector import net_prof as ours

BUILD, TMP, LONG = sys.argv[1], sys.argv[2], sys.argv[3] == "long"
HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.environ["NI_TEST_DATA"] + "/cassini/"
RESULTS = ("total_non_zero", "non_zero_per_iface", "top20_per_iface", "important_metrics", "collected")
sys.path.insert(0, HERE + "/../counters")
import netprof as made  # noqa: E402


def real(version):
    """The engine of that version. Its pictures are not made, so what they need is not there."""
    where = BUILD + "/netprof-" + version
    if not os.path.isdir(where): raise unittest.SkipTest("no net_prof " + version)
    for name in [n for n in sys.modules if n.split(".")[0] == "net_prof"]: del sys.modules[name]
    for name in ("matplotlib", "matplotlib.pyplot", "numpy"): sys.modules[name] = mock.MagicMock()
    sys.path.insert(0, where)
    try:
        return importlib.import_module("net_prof.engine")
    finally:
        sys.path.remove(where)


def sweep(name, *words):
    made.sweep([TMP + "/" + name, *words])
    return TMP + "/" + name


def quietly(call, *args, **words):
    with contextlib.redirect_stdout(io.StringIO()) as said: result = call(*args, **words)
    return result, said.getvalue()


def text(path):
    with open(path, encoding="utf-8") as f: return f.read()


class Same(unittest.TestCase):
    maxDiff = 2000

    def same(self, mine, theirs):
        for key in theirs: self.assertEqual(mine[key], theirs[key], key)

    def cut(self, name, path, every):
        """Few counters of three NICs: net_prof looks for each of 15,120 in a list."""
        whole = json.loads(text(path))
        entries = whole["counters"] if isinstance(whole, dict) else whole
        entries = [e for i, e in enumerate(entries) if e["interface"] in (1, 2, 8) and i % every < 2 or
                   "paused" in e["counter_name"]]
        with open(TMP + "/" + name, "w") as f:
            json.dump({**whole, "counters": entries} if isinstance(whole, dict) else entries, f)
        return TMP + "/" + name

    def test_text(self):
        """Two sweeps of eight working NICs."""
        for when in ("before", "after"):
            with gzip.open(DATA + when + ".txt.gz", "rt") as f, open(TMP + "/" + when + ".txt", "w") as out:
                out.write(f.read())
        mine = ours.summarize(TMP + "/before.txt", TMP + "/after.txt")
        self.assertEqual((mine["total_non_zero"], len(mine["full_diffs"]), mine["without_number"]),
                         (1506, 15120, {}))
        for version in ("0.1.11", "0.1.6"):
            self.same(mine, real(version).summarize(TMP + "/before.txt", TMP + "/after.txt"))

    def test_json(self):
        for version, form in (("0.1.11", "dict"), ("0.1.6", "list")):
            files = [sweep("%s-%s.json" % (when, form), "--form", form, "--cassini", DATA + when + ".txt.gz")
                     for when in ("before", "after")]
            if not LONG: files = [self.cut(os.path.basename(f), f, 40) for f in files]
            mine = ours.summarize(*files)
            self.assertGreater(mine["total_non_zero"], 20)
            self.same(mine, real(version).summarize(*files))
            self.assertEqual(set(mine), {"before_meta", "after_meta", "full_diffs", "without_number",
                                         "nccl_inspector", *RESULTS})

    def test_collect(self):
        """A tree as sysfs has it: the same file but for the times of the reading."""
        root = TMP + "/root"
        subprocess.run([sys.executable, HERE + "/../counters/counter_trees.py", root, "cxi", "before", "2"],
                       check=True)
        for source in (root + "/sys/class/cxi", root + "/sys/class/cxi/cxi1/device/telemetry"):
            _, said = quietly(ours.collect, source, TMP + "/mine.json")
            quietly(real("0.1.11").collect, source, TMP + "/theirs.json")
            mine, theirs = json.loads(text(TMP + "/mine.json")), json.loads(text(TMP + "/theirs.json"))
            for entry in mine["counters"] + theirs["counters"]:
                entry["descriptions"] = len(entry["descriptions"])  # in other words
                iso = datetime.fromisoformat(entry.pop("timestamp_ISO_8601"))  # of ours, from the nanoseconds
                self.assertLess(abs(iso.timestamp() - entry["timestamp"]), 2e-6)
            self.assertEqual(mine["counters"], theirs["counters"])
            self.assertEqual((set(mine["meta"]), mine["meta"]["input_path"]),
                             (set(theirs["meta"]), theirs["meta"]["input_path"]))
            self.assertRegex(said, r"^Collected (3780|1890) counters in [0-9.]+s → .*/mine.json\n$")
        for wrong in (TMP, TMP + "/none", root + "/sys/class/cxi/cxi1"):
            for collect in (ours.collect, real("0.1.11").collect):
                with self.assertRaises(ValueError): quietly(collect, wrong, TMP + "/no.json")
        os.unlink(root + "/sys/class/cxi/cxi0/device/telemetry/hni_tx_paused_1")
        os.mkdir(root + "/sys/class/cxi/cxi0/device/telemetry/hni_tx_paused_1")
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            quietly(ours.collect, root + "/sys/class/cxi", TMP + "/mine.json")
        self.assertIn("hni_tx_paused_1", " ".join(str(w.message) for w in found))

    def test_dump(self):
        files = self.example()
        mine = ours.summarize(*files)
        self.assertEqual((mine["top20_per_iface"][1][0], len(mine["top20_per_iface"][1])),
                         ({"iface": 1, "metric_id": 614, "metric_name": "hni_tx_paused_1",
                           "diff": 2500000000}, 20))
        self.assertEqual(mine["important_metrics"][614]["diffs"],
                         {1: 2500000000, **{i: 0 for i in range(2, 9)}})
        _, said = quietly(ours.dump, mine)
        self.assertIn("hni_tx_paused_1                 2500000000", said)
        self.assertIn("not shown in Interface 2: 0", said)
        try:
            theirs, other = real("0.1.11").summarize(*files), quietly(real("0.1.11").dump, mine)[1]
        except unittest.SkipTest:
            return
        self.same(mine, theirs)
        # Its lines are ours, but for the findings and what it counts as not shown of an idle NIC.
        self.assertEqual([line for line in other.splitlines() if line not in said.splitlines() and
                          "not shown" not in line], [])

    def example(self):
        """The worked example: one counter of one NIC, 25 % of the time paused."""
        out = []
        for when, value, stamp in (("a", 1000, 1767225600.25), ("b", 2500001000, 1767225610.25)):
            out.append("%s/%s.json" % (TMP, when))
            entry = {"id": 1, "interface": 1, "counter_name": "hni_tx_paused_1", "value": value,
                     "timestamp": stamp, "timestamp_ISO_8601": "", "groups": ["CxiPerfStats"],
                     "descriptions": [""], "units": ["cycles"]}
            meta = {"input_path": "/sys/class/cxi", "started_at": "2026-01-01T00:00:00+00:00",
                    "finished_at": "2026-01-01T00:00:01+00:00", "duration_s": 1.0}
            with open(out[-1], "w") as f: json.dump({"meta": meta, "counters": [entry]}, f)
        return out

    def test_what_is_wrong_there(self):
        """Wraps, resets, what is gone, NICs beyond the eighth: net_prof's figures are wrong, ours are not."""
        before = sweep("w1.json", "--nics", "0,1,9", "--set", "cxi0:hni_tx_paused_1=%d" % (2**56 - 100),
                       "--set", "cxi1:hni_rx_paused_0=900000000000000")
        after = sweep("w2.json", "--nics", "0,1,9", "--seconds", "10", "--set", "cxi0:hni_tx_paused_1=200",
                      "--set", "cxi0:hni_rx_paused_0=gone",
                      "--set", "cxi1:hni_rx_paused_0=5", "--set", "cxi9:hni_tx_paused_0=+77")
        mine = ours.summarize(before, after)
        self.assertEqual(mine["without_number"], {(1, 564): "gone", (2, 564): "reset"})
        self.assertEqual({k: d for k, d in mine["full_diffs"].items() if d}, {(1, 614): 300, (10, 613): 77})
        self.assertNotIn((1, 564), mine["full_diffs"])
        self.assertEqual(mine["non_zero_per_iface"], {1: 1, **{i: 0 for i in range(2, 10)}, 10: 1})
        self.assertEqual(mine["important_metrics"][564]["diffs"], {i: 0 for i in range(3, 11)})
        said = quietly(ours.dump, mine)[1]
        self.assertRegex(said, r"564 +hni_rx_paused_0 +gone +reset +0")
        self.assertIn("reset: interface 2 metric 564", said)
        # Against itself without the trouble: what has no number in one of the two is left out.
        same = ours.summarize(before, before)
        compared = quietly(ours.compare, mine, same, TMP + "/c.html")[0]
        self.assertEqual(compared["changed_metrics"],
                         {(10, 613): {"old": 77, "new": 0, "delta": -77},
                          (1, 614): {"old": 300, "new": 0, "delta": -300}}
                         if not same["without_number"] else {})

    def test_compare(self):
        files = [sweep("c%d.txt" % i, "--form", "text", "--seconds", str(10 * i), *words)
                 for i, words in enumerate(
            ([], ["--set", "cxi0:hni_tx_paused_1=+30"],
             ["--set", "cxi0:hni_tx_paused_1=+90", "--set", "cxi7:lpe_rndzv_puts_0=+5"]))]
        a, b = ours.summarize(files[0], files[1]), ours.summarize(files[0], files[2])
        mine = quietly(ours.compare, a, b, TMP + "/mine.html", label_a="<good>", label_b="bad", min_diff=2)[0]
        self.assertEqual(mine["delta_non_zero_per_iface"], {**{i: 0 for i in range(1, 8)}, 8: 1})
        page = text(TMP + "/mine.html")
        self.assertIn("&lt;good&gt;", page)
        self.assertIn("<td>Iface 1</td><td>614</td><td>hni_tx_paused_1</td><td>30</td><td>90</td><td>+60</td>", page)
        with self.assertRaises(ValueError): ours.compare({}, b, TMP + "/no.html")
        theirs = quietly(real("0.1.11").compare, a, b, TMP + "/theirs.html", min_diff=2)[0]
        self.assertEqual(mine["changed_metrics"], theirs["changed_metrics"])

    def test_html(self):
        _, said = quietly(ours.dump_html, ours.summarize(*self.example()), TMP + "/page.html")
        self.assertIn("hni_tx_paused_1", text(TMP + "/page.html"))
        self.assertEqual(said, "HTML report saved to: %s/page.html\n" % TMP)
        with self.assertRaises(ValueError): ours.dump_html({}, TMP + "/no.html")

    def test_refused(self):
        with self.assertRaises(FileNotFoundError): ours.summarize(TMP + "/none.json", TMP + "/none.json")
        with open(TMP + "/bad.json", "w") as f: f.write("{")
        with self.assertRaisesRegex(ValueError, "bad.json: no JSON"):
            ours.summarize(TMP + "/bad.json", TMP + "/bad.json")
        with open(TMP + "/bad.txt", "w") as f: f.write("x")
        with self.assertRaisesRegex(ValueError, "bad.txt"): ours.summarize(TMP + "/bad.txt", TMP + "/bad.txt")

    def test_other_list(self):
        with open(TMP + "/list.txt", "w") as f: f.write("1 hni_rx_paused_1\n2 hni_tx_paused_1\n")
        files = self.example()
        mine = ours.summarize(*files, metrics_path=TMP + "/list.txt")
        self.assertEqual({k: d for k, d in mine["full_diffs"].items() if d}, {(1, 2): 2500000000})
        self.same(mine, real("0.1.11").summarize(*files, metrics_path=TMP + "/list.txt"))


unittest.main(argv=["net_prof_same", "-q"], warnings="ignore")
