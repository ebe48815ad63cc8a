"""PCIe's rates in a head's samples with --enable-bandwidth: of a GPU that counts PCIe's bytes, and of one
that can only be asked for its throughput."""
import os
import tempfile

import agent
import head

with open("test/fake_nvml/healthy.txt", encoding="utf-8") as healthy:
    PLANTED = healthy.read() + "* gpus 2\n* pcietx 500000\n* pcierx 2000000\n1 ret.field.197 3\n1 ret.field.198 3\n"

with tempfile.TemporaryDirectory() as d, head.Head("pcie", "--enable-bandwidth",
                                                   freq=0.5) as h, agent.Place(d) as place:
    planted = d + "/nvml"
    with open(planted, "w", encoding="utf-8") as f:
        f.write(PLANTED)
    fake = {"LD_LIBRARY_PATH": os.path.abspath(agent.BUILD + "/test/nvml"), "NI_FAKE_NVML": planted,
            "NI_FAKE_NVML_STILL": "1"}
    a = agent.Agent(place, "--head", h.at, "--node", "n1", env=fake).wait()

    def rates():
        """of each GPU: what it gets and sends, GB/s; None: it is not known"""
        for client in h.get("/metrics/latest")["client_data"].values():
            return [(g["dram_bw_gbps_rx"], g["dram_bw_gbps_tx"]) for g in client["gpus_metrics"]]
        return []

    # The first GPU's bytes stand still, which is a rate of 0 from the second sample on.
    head.until(lambda: rates() == [(0, 0), (2.0, 0.5)], 60)
    a.kill()
print("PCIe's throughput stands in for its bytes where a head wants rates")
