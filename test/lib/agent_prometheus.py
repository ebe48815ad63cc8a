"""See test/cases/agent/agent_prometheus.sh."""
import json, os, re, signal, subprocess, sys, tempfile, threading, time
sys.path.insert(0, "test/lib/counters")
import agent, counter_trees, prometheus

# Rank 2 comes late to all: the others wait for it. Time enough for rates.
JOB = """
set ranks=4 nodes=1 procs=1 rate=40 time_scale=1 straggler=2 straggler_ms=4
comm world
loop times=360
coll world func=AllReduce bytes=4194304 channels=2
coll world func=AllGather bytes=1048576 channels=2
end
"""
# A pool of two slots and small operations that are left out: losses and what was filtered. It is killed at
# the end.
LOSSY = """
set ranks=1 rate=400 inflight=16 time_scale=8
comm lossy size=8
loop times=400000
coll lossy func=AllReduce bytes=1048576 channels=2
coll lossy func=AllReduce bytes=512 channels=1
end
"""
SETTINGS = {"NCCL_INSPECTOR_POOL_GROW": "0", "NCCL_INSPECTOR_COLL_POOL_SIZE": "2",
            "NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES": "1k"}
NICS = 3
# Planted in NICs and GPUs: what each counts a second.
NIC = {"hni_sts_tx_ok_octets": 250e6, "hni_tx_paused_1": 100e6, "hni_rx_paused_std": 50e6,
       "pct_sct_timeouts": 40, "pct_retry_srb_requests": 60}
GPU = {"field.83": 431000, "field.74": 250e6, "field.138.all": 2e6, "field.139.all": 1e6}
GPUS = "* gpus 2\n* power 431000\n* util 77\n* memutil 33\n* sm 1410\n* memclock 2619\n* used 20000000000\n* total 80000000000\n* temp 55\n" \
       "* reasons 4\n* field.91 2\n"
# What there is only when something is wrong with the agent, the machine or a whole job, each has a test of
# its own; and what is recorded from recorded series, each half a minute (test/cases/agent/rules).
NOTHING = r"agent_(series_left_out|jobs_left_out|degraded)|_(restarts|lost|errors|steps|missed|lines|members|refused_requests)_total" \
          r"|Hangs|Oldest operations|rules.yml: (rank:nccl_inspector_straggler_score|nic:nccl_inspector_transmit_share)|NcclHang|NcclStuck|NcclStraggler|NcclSlowLink|NcclGpuThrottled|NcclAgent|Retries, timeouts|Other counters: |otlp"


def close(what, got, want, share):
    if got is None or abs(got - want) > share * want:
        sys.exit("FAIL: %s: Prometheus says %s, wanted %g within %g %%" % (what, got, want, 100 * share))
    print("ok: %s: %g, wanted %g" % (what, got, want))


def counted(p, what, of, rate):
    """A counter that rises by `rate` a second. The agent samples when nothing else wants the processor: on a
    busy machine that may be seconds late, so that a rate over ten seconds says little. From the first sample
    that Prometheus has to the newest the seconds are a lesser share, the longer this waits."""
    said = []

    def close_to():
        got = p.get("/api/v1/query", query=of + "[10m]")["result"]
        values = [(t, float(v)) for t, v in got[0]["values"]] if len(got) == 1 else []
        assert values == sorted(values, key=lambda x: x[1]), "%s fell: %s" % (what, values)
        new = [y for x, y in zip(values, values[1:]) if y[1] > x[1]]  # when a sample was first there
        if len(new) > 1:
            said[:] = [(new[-1][1] - new[0][1]) / (new[-1][0] - new[0][0])]
        return said and abs(said[0] - rate) < 0.1 * rate
    try:
        agent.wait_for(what, close_to)
    except SystemExit as e:
        sys.exit("%s: Prometheus says %s a second, wanted %g" % (e, said, rate))
    print("ok: %s: %g a second, wanted %g" % (what, said[0], rate))


def grow(tree, fake, stop):
    """NICs and GPUs that count at known rates."""
    files = [(os.open("%s/sys/class/cxi/cxi%d/device/telemetry/%s" % (tree, i, n), os.O_WRONLY), r)
             for i in range(NICS) for n, r in NIC.items()]
    began = time.monotonic()
    while not stop.wait(0.05):
        for file, rate in files:
            os.pwrite(file, b"%020d@%.9f\n" % ((time.monotonic() - began) * rate, time.time()), 0)
        with open(fake + ".new", "w") as f:
            f.write(GPUS + "".join("* %s %d\n" % (n, (time.monotonic() - began) * r) for n, r in GPU.items()))
        os.rename(fake + ".new", fake)


def nothing(p):
    """Expressions of dashboards and rules that return nothing, and should not."""
    asked = subprocess.run([sys.executable, "test/lib/dashboards.py", "ask", p.url], capture_output=True,
                           text=True)
    print(asked.stdout.strip().split("\n")[-1])
    if asked.returncode:
        sys.exit("FAIL: %s\n%s" % (asked.stdout, asked.stderr))
    return {l for l in asked.stdout.split("\n") if l.startswith("nothing:") and not re.search(NOTHING, l)}


def run(place, folder):
    tree, fake, stop = folder + "/tree", folder + "/gpus", threading.Event()
    if not os.path.isdir(counter_trees.DATA + "/cassini"):
        agent.skip("no recorded counters in " + counter_trees.DATA)
    counter_trees.cxi(tree, "before", str(NICS))
    counter_trees.host(tree)
    open(fake, "w").write(GPUS + "".join("* %s 0\n" % n for n in GPU))
    threading.Thread(target=grow, args=(tree, fake, stop), daemon=True).start()
    a = agent.Agent(place, env={"NI_ROOT": tree, "NI_FAKE_NVML": fake,
                                "LD_LIBRARY_PATH": agent.BUILD + "/test/nvml"}).wait()
    p = prometheus.Prometheus(place, [a.url[7:]],
                              ["contrib/prometheus/nccl-inspector-rules.yml",
                               "contrib/prometheus/nccl-inspector-alerts.yml"])
    lossy = place.job(LOSSY, SETTINGS, logs=folder + "/lossy")
    job, began = place.job(JOB), time.time()
    agent.wait_for("the job's first series", lambda: p.query("nccl_inspector_operations_total"))
    agent.wait_for("rates of both jobs",
                   lambda: (p.one('min(rate(nccl_inspector_operations_total{job_id="4242"}[10s]))') or
                            0) > 10)
    time.sleep(8)
    silent = nothing(p)
    while job.poll() is None:
        time.sleep(0.5)
    for pid in subprocess.run(["pgrep", "-P", str(lossy.pid)], capture_output=True,
                              text=True).stdout.split() + [lossy.pid]:
        os.kill(int(pid), signal.SIGKILL)
    truth = agent.truth(place.logs)
    want = sum(v["n"] for v in truth.values())
    agent.wait_for("all operations",
                   lambda: p.one('sum(nccl_inspector_operations_total{job_id="4242"})') == want)
    agent.wait_for("the killed process", lambda: p.query('nccl_inspector_process_up{job_id="lossy"} == 0'))
    summary = folder + "/summary"
    subprocess.run([agent.BIN, "summary", "--quiet", "--no-plots", "--no-html", "--no-parquet", "--no-csv",
                    "--output-dir", summary,
                    place.logs], check=True, stdout=subprocess.DEVNULL)
    for g in json.load(open(summary + "/summary/summary.json"))["groups"]:
        f, only = g["func"], 'job_id="4242", function="%s"' % g["func"]
        close("mean bus bandwidth of " + f, p.one(
            "sum(nccl_inspector_operation_bus_bandwidth_bytes_per_second_sum{%s})"
            " / sum(nccl_inspector_operation_bus_bandwidth_bytes_per_second_count{%s})" % (only, only)),
            g["busbw_gbs"]["mean"] * 1e9, 0.01)
        close("bus bandwidth in time of " + f, p.one(
            "sum(nccl_inspector_bus_bytes_total{%s}) / sum(nccl_inspector_bus_seconds_total{%s})" % (only, only)),
            g["msg_size_bytes"] * (2 * 3 / 4 if f == "AllReduce"
                                   else 4 * 3 / 4) / (g["exec_time_us"]["mean"] * 1e-6), 0.01)
    lost = agent.total(a.metrics(), "lost_operations_total", (), job_id="lossy")[()]
    close("lost operations", p.one('sum(nccl_inspector_lost_operations_total{job_id="lossy"})'), lost, 0)
    counted(p, "bytes of a NIC", 'nccl_inspector_nic_transmit_bytes_total{nic="cxi1"}',
            NIC["hni_sts_tx_ok_octets"])
    counted(p, "time in which it was held", 'nccl_inspector_nic_unified_total{nic="cxi0", name="tx_held"}',
            NIC["hni_tx_paused_1"])
    counted(p, "NVLink", 'nccl_inspector_gpu_nvlink_transmit_bytes_total{gpu="1"}',
            GPU["field.138.all"] * 1024)
    counted(p, "energy", 'nccl_inspector_gpu_energy_joules_total{gpu="1"}', GPU["field.83"] / 1e3)
    counted(p, "throttled", 'nccl_inspector_gpu_throttled_seconds_total{gpu="1", cause="power"}',
            GPU["field.74"] / 1e9)
    close("power", p.one('nccl_inspector_gpu_power_watts{gpu="1"}'), 431, 0.001)
    close("clock", p.one('nccl_inspector_gpu_sm_clock_hertz{gpu="0"}'), 1.41e9, 0.001)
    late = p.query('topk(1, sum by (rank) (nccl_inspector_late_seconds_total{job_id="4242"}))')
    waits = p.query('bottomk(1, sum by (rank) (nccl_inspector_in_flight_seconds_total{job_id="4242"}))')
    if late[0][0]["rank"] != "2" or waits[0][0]["rank"] != "2":
        sys.exit("FAIL: rank 2 is late; Prometheus says %s, and %s waits least" % (late, waits))
    print("ok: rank 2 is late, and waits least")
    session(p, folder, began)
    silent &= nothing(p)
    stop.set()
    if silent:
        sys.exit("FAIL: these return nothing, while the jobs run and when they have ended:\n" +
                 "\n".join(sorted(silent)))


def about(what, values, planted):
    """The mean is a third to three times of what was planted."""
    mean = sum(values) / max(1, len(values))
    if not planted / 3 < mean < 3 * planted:
        sys.exit("FAIL: %s: the mean is %g, wanted about %g, of %s" % (what, mean, planted, values))
    print("ok: %s: %g, wanted about %g" % (what, mean, planted))


def session(p, folder, began):
    """A session's file of what Prometheus has: the planted values stand in its frames, in the units of a
    head's."""
    path = folder + "/from.json"
    subprocess.run([agent.BIN, "session", "export", "from", "--from-prometheus", p.url, "--since",
                    "%.0f" % began, "--every", "1s", "--out", path],
                   check=True)
    doc = json.load(open(path))
    assert doc["schema"] == "nccl-inspector-session-1" and doc["period_s"] == 1
    assert [f["frame_id"] for f in doc["frames"]] == list(range(1, len(doc["frames"]) + 1))
    with_numbers = [f for f in doc["frames"] if f["client_state"] == ["ok"]]
    if len(with_numbers) < 10:
        sys.exit("FAIL: a session of %d frames, of which %d hold something" %
                 (len(doc["frames"]), len(with_numbers)))
    last = with_numbers[-1]
    assert (len(last["gpu_id"]) == 2 and len(last["nic_id"]) == NICS and
            last["gpu_util"] == ["77.00", "77.00"]), last
    close("clock in a session", last["gpu_sm_mhz"][0], 1410, 0.001)
    close("power in a session", last["gpu_power_w"][1], 431, 0.001)
    # Of all frames: one that was sampled late has the share of several, those before it have none. This is
    # about units.
    nic = [f["nic_tx"][1] for f in with_numbers if len(f["nic_tx"]) == NICS and f["nic_tx"][1] is not None]
    about("a NIC in a session", nic, NIC["hni_sts_tx_ok_octets"] / 1e9)
    nvlink = [f["gpu_bandwidth"][0]["tx"] for f in with_numbers if len(f["gpu_bandwidth"]) == 2 and
              f["gpu_bandwidth"][0]["tx"] is not None]
    about("NVLink in a session", nvlink, GPU["field.138.all"] * 1024 / 1e9)
    # Of all frames together, not a mean of theirs: a busy machine takes longer for some operations, and those
    # frames hold fewer. All sizes have the same share of the job at any time, so message bytes stand for bus
    # bytes.
    both = [(j["message_gb_s"], j["busbw_gb_s"]) for f in with_numbers for j in f["jobs"]
            if j["job_id"] == "4242" and j["busbw_gb_s"] and j["message_gb_s"]]
    rates = [j["operations_s"] for f in with_numbers for j in f["jobs"] if j["job_id"] == "4242" and
             j["operations_s"]]
    want = p.one('sum(nccl_inspector_bus_bytes_total{job_id="4242"}) / sum(nccl_inspector_bus_seconds_total{job_id="4242"})') / 1e9
    close("bus bandwidth in a session", sum(m for m, _ in both) / sum(m / bus for m, bus in both), want, 0.3)
    # The first frame of a job has no rate.
    close("operations of a job in a session", sum(rates),
          p.one('sum(nccl_inspector_operations_total{job_id="4242"})'), 0.7)


with tempfile.TemporaryDirectory() as folder, agent.Place(folder) as place:
    run(place, folder)
