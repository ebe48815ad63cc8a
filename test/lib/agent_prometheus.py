"""See test/cases/agent/agent_prometheus.sh."""
import json, os, subprocess, sys, tempfile, threading, time
import agent, prometheus

JOB = """
set ranks=4 nodes=1 procs=1 rate=60 time_scale=1
comm world
loop times=450
coll world func=AllReduce bytes=4194304 channels=2
coll world func=AllGather bytes=1048576 channels=2
end
"""
NIC_BYTES_S, GPU_W = 250e6, 431
GPUS = "* gpus 2\n* power %d000\n* util 77\n* sm 1410\n* used 20000000000\n* total 80000000000\n* temp 55\n* reasons 4\n" % GPU_W


def close(what, got, want, share):
    if got is None or abs(got - want) > share * want:
        sys.exit("FAIL: %s: Prometheus says %s, wanted %s within %g %%" % (what, got, want, 100 * share))
    print("ok: %s: %g, wanted %g" % (what, got, want))


def tick(tree, stop):
    """A NIC that sends at a known rate."""
    path, began = tree + "/sys/class/net/eth7/statistics/tx_bytes", time.monotonic()
    while not stop.wait(0.05):
        with open(path + ".new", "w") as f:
            f.write("%d\n" % ((time.monotonic() - began) * NIC_BYTES_S))
        os.rename(path + ".new", path)


with tempfile.TemporaryDirectory() as folder, agent.Place(folder) as place:
    tree, fake = folder + "/tree", folder + "/gpus"
    for words in (["eth", "eth7"], ["host"]):
        subprocess.run([sys.executable, "test/lib/counters/counter_trees.py", tree, *words], check=True)
    open(fake, "w").write(GPUS)
    a = agent.Agent(place, env={"NI_ROOT": tree, "NI_FAKE_NVML": fake, "LD_LIBRARY_PATH": agent.BUILD + "/test/nvml"}).wait()
    stop = threading.Event()
    threading.Thread(target=tick, args=(tree, stop), daemon=True).start()
    p = prometheus.Prometheus(place, [a.url[7:]], ["contrib/prometheus/nccl-inspector-rules.yml", "contrib/prometheus/nccl-inspector-alerts.yml"])
    job = place.job(JOB)
    agent.wait_for("the job's first series", lambda: p.query("nccl_inspector_operations_total"))
    while job.poll() is None:
        time.sleep(0.5)
    want = sum(v["n"] for v in agent.truth(place.logs).values())
    agent.wait_for("all operations", lambda: p.one("sum(nccl_inspector_operations_total)") == want)
    summary = folder + "/summary"
    subprocess.run([agent.BIN, "summary", "--quiet", "--no-plots", "--no-html", "--no-parquet", "--no-csv", "--output-dir", summary,
                    place.logs], check=True, stdout=subprocess.DEVNULL)
    for g in json.load(open(summary + "/summary/summary.json"))["groups"]:
        f, n = g["func"], g["records"]
        if g["timing_source"] != "kernel_gpu":
            continue
        close("mean bus bandwidth of " + f, p.one(
            'sum(nccl_inspector_operation_bus_bandwidth_bytes_per_second_sum{function="%s"})'
            ' / sum(nccl_inspector_operation_bus_bandwidth_bytes_per_second_count{function="%s"})' % (f, f)),
            g["busbw_gbs"]["mean"] * 1e9, 0.01)
        close("bus bandwidth in time of " + f, p.one(
            'sum(nccl_inspector_bus_bytes_total{function="%s"}) / sum(nccl_inspector_bus_seconds_total{function="%s"})' % (f, f)),
            g["msg_size_bytes"] * (2 * 3 / 4 if f == "AllReduce" else 4 * 3 / 4) / (g["exec_time_us"]["mean"] * 1e-6), 0.01)
        # Over the time in which it ran, as a dashboard asks: the rates of both are wrong alike.
        close("rate of the same of " + f, p.one(
            'sum(increase(nccl_inspector_bus_bytes_total{function="%s"}[10m])) / sum(increase(nccl_inspector_bus_seconds_total{function="%s"}[10m]))'
            % (f, f)), g["msg_size_bytes"] * (2 * 3 / 4 if f == "AllReduce" else 4 * 3 / 4) / (g["exec_time_us"]["mean"] * 1e-6), 0.05)
    close("bytes a second of the NIC", p.one('rate(nccl_inspector_nic_transmit_bytes_total{nic="eth7"}[10s])'), NIC_BYTES_S, 0.1)
    close("power of GPU 1", p.one('nccl_inspector_gpu_power_watts{gpu="1"}'), GPU_W, 0.001)
    close("clock of GPU 0", p.one('nccl_inspector_gpu_sm_clock_hertz{gpu="0"}'), 1.41e9, 0.001)
    dashboards = subprocess.run([sys.executable, "test/lib/dashboards.py", "--url", p.url], capture_output=True, text=True)
    print(dashboards.stdout[-3000:], dashboards.stderr[-2000:])
    stop.set()
    sys.exit(dashboards.returncode)
