"""Sessions' files in all forms for tests of `session stat`: ours, gsprof 0.2.1's and 0.4's, with what they
hold known.

  session_files.py FOLDER

a.json, b.json: ours, 40 frames of 2 GPUs, a NIC and a job; b has twice the bus bandwidth. old.json, new.json:
gsprof's, in which GPUs change their order and one leaves; a gap as "nan". torn.json: a without its end.
bad.json: a with two damaged frames.
"""
import json
import sys

FRAMES = 40
GPUS = ["n0:0:NVIDIA H100 80GB HBM3", "n1:0:NVIDIA H100 80GB HBM3"]


def ours(path, bus):
    lines = []
    for i in range(FRAMES):
        lines.append(json.dumps({
            "frame_id": i + 1, "time": "2026-11-23T10:00:%02d.%06dZ" % (i // 2, i % 2 * 500000),
            "gpu_id": GPUS, "gpu_util": ["%.2f" % i, "nan" if i < 20 else "80.00"],
            "gpu_memory": ["50.00", "25.00"], "dram_bandwidth": ["1.00", "3.00"],
            "gpu_bandwidth": [{"id1": GPUS[1], "id2": "NVLink", "utilization": 200, "rx": 100, "tx": 100}],
            "client_id": ["n0_1", "n1_2"], "client_age_s": [0.1, None if i < 20 else 0.5],
            "dram_util": ["10.00", "20.00"],
            "nic_id": ["n0:cxi0"], "nic_rx": [12.5], "nic_tx": [None],
            "jobs": [{"host": "n0", "job_id": "77", "busbw_gb_s": bus, "in_flight": i % 2, "oldest_s": 0.5}]},
            separators=(",", ":")))
    head = json.dumps({"schema": "nccl-inspector-session-1", "session_id": "x",
                       "session_name": path.rsplit("/", 1)[1][:-5],
                       "units": {"gpu_util": "percent", "odd": "a ] } \\ in a text"}})[:-1] + ',"frames":[\n'
    with open(path, "w") as f:
        f.write(head + ",\n".join(lines) +
                '\n],"end_time":"2026-11-23T10:00:20.000000Z","summary_by_device":{}}\n')


def gsprof(path, new):
    frames = []
    for i in range(FRAMES):
        order = [0, 1] if i % 2 else [1, 0]
        if i >= 30:
            order = [1]                      # the other client is gone: arrays shift
        frames.append({"frame_id": i + 1, "time": "2026-11-23T10:00:%02d.000000" % i,
                       "gpu_id": [GPUS[k] for k in order],
                       "gpu_util": [("0.25", "nan" if i == 5 else "0.75")[k] for k in order],
                       "gpu_memory": [("0.10", "0.20")[k] for k in order], "dram_util": ["7.20"],
                       "disk_util": ["19.90"],
                       "dram_bandwidth": [("976562.5", "1953125.0")[k] for k in order]})
    summary = {"summary_by_device": {g: {"avg_gpu_util": "0.25"} for g in GPUS},
               "summary_by_client": {"frames": {"avg_dram_util": "7.20"}}}
    doc = {**summary, "request_time_info": [{"frames": []}],
           "frames": frames} if new else {"frames": frames, **summary}
    with open(path, "w") as f:
        json.dump(doc, f, indent=2)


if __name__ == "__main__":
    folder = sys.argv[1]
    ours(folder + "/a.json", 100)
    ours(folder + "/b.json", 200)
    gsprof(folder + "/old.json", False)
    gsprof(folder + "/new.json", True)
    text = open(folder + "/a.json").read()
    open(folder + "/torn.json", "w").write(text[:text.index('{"frame_id":31')] + '{"frame_id":31,"ti')
    open(folder + "/bad.json", "w").write(text.replace('{"frame_id":7,',
         '{"frame_id":7 ').replace('{"frame_id":9,', '{"frame_no":9,'))
