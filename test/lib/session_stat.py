"""What `session stat` says of files of which all is known (session_files.py). session_stat.py NCCL_INSPECTOR
FOLDER"""
import json
import os
import shutil
import subprocess
import sys

from session_files import FRAMES, GPUS

tool, folder = sys.argv[1:]


def stat(*names, code=0):
    p = subprocess.run([tool, "session", "stat", "--json"] + [folder + "/" + n for n in names],
                       capture_output=True, text=True)
    assert p.returncode == code, (names, p.returncode, p.stderr)
    return json.loads(p.stdout)["files"], p.stderr


def want(figures, mean, low, p50, p95, high):
    got = [figures[k] for k in ("mean", "min", "p50", "p95", "max")]
    assert all(abs(g - w) < 1e-4 * max(1, abs(w))
               for g, w in zip(got, (mean, low, p50, p95, high))), (got, mean, low, p50, p95, high)


(a, b), _ = stat("a.json", "b.json")
assert (a["session_name"], a["frames"], a["gsprof"], a["seconds"]) == ("a", FRAMES, False, 19.5), a
want(a["gpu"][GPUS[0]]["gpu_util"], 19.5, 0, 19, 37, 39)
want(a["gpu"][GPUS[1]]["gpu_util"], 80, 80, 80, 80, 80)        # "nan" is no number
want(a["gpu"][""]["gpu_util"], (sum(range(40)) + 20 * 80) / 60, 0, 29, 80, 80)
want(a["gpu"][GPUS[1]]["utilization"], 200, 200, 200, 200, 200)
want(a["client"]["n1_2"]["client_age_s"], 0.5, 0.5, 0.5, 0.5, 0.5)
assert "nic_tx" not in a["nic"]["n0:cxi0"] and a["nic"]["n0:cxi0"]["nic_rx"]["mean"] == 12.5
want(a["job"]["n0 77"]["in_flight"], 0.5, 0, 0, 1, 1)
assert b["job"]["n0 77"]["busbw_gb_s"]["mean"] == 2 * a["job"]["n0 77"]["busbw_gb_s"]["mean"] == 200

# Two of one name are told apart, in other folders and where it is the same file.
os.makedirs(folder + "/other", exist_ok=True)
shutil.copy(folder + "/a.json", folder + "/other/a.json")
head = subprocess.run([tool, "session", "stat", "a.json", "other/a.json", "a.json", "b.json"],
                      capture_output=True, text=True, cwd=folder).stdout
head = next(l for l in head.split("\n") if l.startswith("means"))
assert head.split() == "means a.json other/a.json a.json (2) b difference of".split(), head

# order that changes, a client that leaves: by name
for name in "old.json", "new.json":
    (g,), _ = stat(name)
    assert g["gsprof"] and g["frames"] == FRAMES and g["seconds"] == FRAMES - 1, g
    want(g["gpu"][GPUS[0]]["gpu_util"], 25, 25, 25, 25, 25)
    want(g["gpu"][GPUS[1]]["gpu_util"], 75, 75, 75, 75, 75)
    want(g["gpu"][GPUS[0]]["dram_bandwidth"], 1, 1, 1, 1, 1)       # KiB/s become GB/s
    want(g["gpu"][GPUS[1]]["dram_bandwidth"], 2, 2, 2, 2, 2)
    want(g["client"]["client 1"]["disk_util"], 19.9, 19.9, 19.9, 19.9, 19.9)

(torn,), said = stat("torn.json", code=2)
assert torn["frames"] == 30 and "torn after 30 frames" in said, said
(bad,), said = stat("bad.json", code=2)
assert bad["frames"] == FRAMES - 2 and bad["damaged"] == 2 and "2 damaged frames" in said, said

# More frames than slots: percentiles of evenly spaced ones, the rest exact.
with open(folder + "/long.json", "w") as f:
    f.write('{"frames":[' + ",".join('{"frame_id":%d,"gpu_id":["g"],"gpu_util":["%f"]}' %
            (i + 1, (i % 1000) / 1000) for i in range(10000)) + "]}")
(long,), _ = stat("long.json")
v = long["gpu"]["g"]["gpu_util"]
assert abs(v["mean"] - 49.95) < 0.01 and v["min"] == 0 and abs(v["max"] - 99.9) < 0.01, v
assert abs(v["p50"] - 50) < 2 and abs(v["p95"] - 95) < 2, v
print("figures hold")
