#!/usr/bin/env python3
"""Fake trees of counters for tests: what NIC drivers show in /sys, /run and /proc, below a root
(NI_ROOT=ROOT).

    counter_trees.py ROOT cxi [WHEN] [NICS]     Cassini NICs cxi0.. of a real node (data/cassini), as sysfs has them: telemetry,
                                                link, properties, link_restarts, PCI. WHEN: before (default),
                                                after, cassini2 (before, with the names that only Cassini 2
                                                has, and its link files).
    counter_trees.py ROOT rh NIC [NAME=VALUE..] its retry handler's files in /run/cxi
    counter_trees.py ROOT mlx5|bnxt|efa|hfi1|ionic NAME [FILE=VALUE..]   a port of InfiniBand or RoCE, with usual values
    counter_trees.py ROOT eth NAME [FILE=VALUE..]             an interface with a device in /sys/class/net
    counter_trees.py ROOT host                  /proc files of TCP and the host
    counter_trees.py ROOT gpu ADDRESS [PARENT]  a GPU in /sys/bus/pci, below a bridge or root ("pci0000:00/0000:00:01.0")
    counter_trees.py ROOT pci CLASS NAME PATH   moves a NIC's device: PATH "pci0000:00/0000:00:01.0/0000:01:00.0", CLASS cxi,
                                                infiniband or net
    counter_trees.py ROOT put FILE TEXT         any file ("\\n" is added)
    counter_trees.py ROOT tick SECONDS NIC [NAME+=N..|NAME=N..]   all telemetry of a NIC (or "all") is SECONDS younger, and these counters rose by N
    counter_trees.py ROOT fault NIC FILE KIND   a counter of Cassini that cannot be read: eio (a folder), empty, noat, gone,
                                                text, binary (ALL-in-binary)

Commands may follow one another, "--" between them. NICs and GPUs lie on PCI as on a node of four sockets: NIC
i below host bridge pci0000:i0, numa node i/2. NI_TEST_DATA names the folder with cassini/ in it.
"""
import gzip
import os
import shutil
import sys

DATA = os.environ.get("NI_TEST_DATA", os.path.join(os.path.dirname(__file__), "../../../../shared/data"))

RH = """spt_timeouts spt_timeouts_u spt_timeouts_o sct_timeouts tct_timeouts nacks nack_no_target_trs nack_no_target_mst
nack_no_target_conn nack_no_matching_conn nack_resource_busy nack_trs_pend_rsp nack_sequence_error pkts_cancelled_u
pkts_cancelled_o connections_cancelled cancel_no_matching_conn cancel_resource_busy cancel_trs_pend_rsp cancel_tct_closed
accel_close_complete ignored_sct_timeouts rh_sct_status_change srb_in_use spt_in_use smt_in_use sct_in_use trs_in_use mst_in_use
tct_in_use nid_value nid_tree_count max_nid_tree_count switch_tree_count max_switch_tree_count parked_nids max_parked_nids
parked_switches max_parked_switches""".split()
CASSINI2 = (["hni_pcs_corrected_cw_bin_%d" % i for i in range(15)] +
            ["hni_pcs_fecl_errors_%d" % i for i in range(8, 16)] +
            """hni_llr_rx_ack_nack_error hni_llr_tx_bad_lossless hni_llr_tx_bad_lossless_rpt hni_llr_tx_bad_lossy hni_llr_tx_llr_blocked
hni_llr_tx_llr_unblocked hni_mac_tx_ifg_adjustment_sync oxe_smt_cdt_errs oxe_spt_cdt_errs""".split())
PMA = """port_xmit_data port_rcv_data port_xmit_packets port_rcv_packets unicast_xmit_packets unicast_rcv_packets
multicast_xmit_packets multicast_rcv_packets port_xmit_wait symbol_error port_rcv_errors port_rcv_remote_physical_errors
port_rcv_switch_relay_errors port_xmit_discards VL15_dropped link_downed link_error_recovery port_xmit_constraint_errors
port_rcv_constraint_errors local_link_integrity_errors excessive_buffer_overrun_errors""".split()
HW = {
    "mlx5": """lifespan=10 np_cnp_sent np_ecn_marked_roce_packets rp_cnp_handled rp_cnp_ignored out_of_sequence packet_seq_err
local_ack_timeout_err roce_adp_retrans roce_adp_retrans_to roce_slow_restart roce_slow_restart_cnps roce_slow_restart_trans
rnr_nak_retry_err out_of_buffer implied_nak_seq_err duplicate_request req_transport_retries_exceeded req_rnr_retries_exceeded
req_cqe_error req_cqe_flush_error resp_cqe_error resp_cqe_flush_error rx_icrc_encapsulated rx_write_requests rx_read_requests
rx_atomic_requests""",
    "bnxt": """lifespan=10 rx_bytes tx_bytes rx_pkts tx_pkts to_retransmits seq_err_naks_rcvd max_retry_exceeded rnr_naks_rcvd
oos_drop_count dup_req rx_out_of_buffer tx_cnp_pkts rx_cnp_pkts rx_ecn_marked_pkts res_oos_drop_count pacing_alerts active_qps=7
active_mrs=9 recoverable_errors=12345""",
    "efa": """lifespan=12 tx_bytes rx_bytes tx_pkts rx_pkts rx_drops send_bytes recv_bytes send_wrs recv_wrs rdma_read_wrs rdma_read_bytes
rdma_read_wr_err rdma_read_resp_bytes rdma_write_wrs rdma_write_bytes rdma_write_wr_err rdma_write_recv_bytes retrans_bytes
retrans_pkts retrans_timeout_events unresponsive_remote_events impaired_remote_conn_events""",
    "hfi1": """lifespan=10 TxPkt=500000 RxPkt=500000 TxFlitVL0,32=99 RcAcks=400000 RcResend=2 RcSeqNak RcTimeOut PktDrop RcDelayComp=7 RcvHdrOvr0
SwLinkUp,32=1""",
    "ionic": """lifespan=10 tx_rdma_ucast_bytes=1000 rx_rdma_ucast_bytes=1000 tx_rdma_mcast_bytes rx_rdma_mcast_bytes tx_rdma_ucast_pkts=1000
rx_rdma_ucast_pkts=1000 tx_rdma_cnp_pkts rx_rdma_cnp_pkts rx_rdma_ecn_pkts rx_rdma_mtu_discard_pkts tx_rdma_retx_bytes tx_rdma_retx_pkts
tx_rdma_ack_timeout req_rx_pkt_seq_err req_tx_retry_excd_err resp_rx_outof_seq resp_rx_outof_buf""",
}
# What hfi1 counts of the device beside its port (node_exporter#2023).
DEVICE = {"hfi1": "lifespan=10 DcFltCrdts=7 SDEDscFdCn10,32=3 CcePciCrSt,32=5 RxTIDFullErr TxSbHdrUncErr RxRbufDescPart2CorErr"}
ETH = """rx_bytes=1000 tx_bytes=2000 rx_packets=10 tx_packets=20 rx_errors tx_errors rx_dropped tx_dropped rx_crc_errors rx_fifo_errors
rx_missed_errors rx_length_errors rx_over_errors rx_frame_errors tx_carrier_errors tx_fifo_errors tx_aborted_errors rx_nohandler multicast
collisions""".split()


def put(root, path, text):
    path = os.path.join(root, path.lstrip("/"))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text + "\n")


def take(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as f:
        return f.read().strip()


def pairs(words):
    return [(w.split("=", 1) + ["0"])[:2] for w in words]


def link(root, at, to):
    at, to = os.path.join(root, at), os.path.join(root, to)
    os.makedirs(os.path.dirname(at), exist_ok=True)
    if os.path.lexists(at):
        os.remove(at)
    os.symlink(os.path.relpath(to, os.path.dirname(at)), at)


def device(root, path, numa, vendor="0x17db", kind="0x020000"):
    """A device of PCI; path from its host bridge on. Returns its folder."""
    folder = "sys/devices/" + path
    for f, v in (("vendor", vendor), ("class", kind), ("numa_node", numa), ("current_link_width", 16),
                 ("max_link_width", 16),
                 ("current_link_speed", "16.0 GT/s PCIe"), ("max_link_speed", "16.0 GT/s PCIe")):
        put(root, folder + "/" + f, str(v))
    link(root, "sys/bus/pci/devices/" + path.rsplit("/", 1)[1], folder)
    return folder


def place(i):
    return "pci0000:%d0/0000:%d0:01.0/0000:%d1:00.0" % (i, i, i)


def cxi(root, when="before", nics="8"):
    second = when == "cassini2"
    names = open(os.path.join(DATA, "cassini/counter-names.txt"), encoding="utf-8").read().split()
    with gzip.open(os.path.join(DATA, "cassini", ("before" if second else when) + ".txt.gz"), "rt") as f:
        lines = f.read().split()
    for i in range(int(nics)):
        folder = device(root, place(i), i // 2)
        link(root, "sys/class/cxi/cxi%d/device" % i, folder)
        os.makedirs(os.path.join(root, folder, "telemetry"), exist_ok=True)
        its = dict(zip(names, lines[i % 8 * len(names):]))
        for n in CASSINI2 if second else []:
            its[n] = "0@" + lines[0].split("@")[1]
        for n, v in its.items():
            if os.path.isdir(os.path.join(root, folder, "telemetry", n)):  # a fault that was planted
                os.rmdir(os.path.join(root, folder, "telemetry", n))
            with open(os.path.join(root, folder, "telemetry", n), "w", encoding="utf-8") as f:
                f.write(v + "\n")
        port = "/port/0/link/" if second else "/port/"
        put(root, folder + port + "speed", "bs400G" if second else "BS_200G")
        put(root, folder + port + ("state" if second else "link"), "up")
        for n, v in (("speed", "bs400G" if second else "BS_200G"), ("link", "up"), ("nid", "0x%x" % (i + 64)),
                     ("pcie_corr_err", "3"),
                     ("pcie_uncorr_err", "0")):
            put(root, folder + "/properties/" + n, v)
        for n in range(10):
            put(root, folder + "/link_restarts/time_%d" % n, str(1746200000 if n == 0 else 0))


def rh(root, nic, *values):
    v = dict(pairs(RH))
    v.update(pairs(values))
    for n, x in v.items():
        put(root, "run/cxi/%s/%s" % (nic, n), x)
    put(root, "run/cxi/%s/reset_counters" % nic, "0")
    put(root, "run/cxi/%s/config/max_retries" % nic, "5")


def port(kind, root, name, *values):
    n = sum(c * 7 for c in name.encode()) % 9
    put(root, "sys/class/infiniband/%s/node_type" % name, "1: CA")
    link(root, "sys/class/infiniband/%s/device" % name,
         device(root, "pci0000:%d0/0000:%d0:02.0/0000:%d2:00.0" % (n, n, n), n // 2,
                {"efa": "0x1d0f"}.get(kind, "0x15b3")))
    at = "sys/class/infiniband/%s/ports/1/" % name
    for f, v in (("state", "4: ACTIVE"), ("phys_state", "5: LinkUp"),
                 ("link_layer", "Ethernet" if kind in ("bnxt", "ionic") else "InfiniBand"),
                 ("rate", "100 Gb/sec (4X EDR)" if kind == "efa" else "400 Gb/sec (4X NDR)")):
        put(root, at + f, v)
    files = {"hw_counters/" + f: v for f, v in pairs(HW[kind].split())}
    if kind not in ("efa", "ionic"):
        files.update({"counters/" + f: "0" for f in PMA})
    for f, v in files.items():
        put(root, at + f, v)
    for f, v in pairs(values):
        known = [k for k in files if k.endswith("/" + f)]
        if f not in DEVICE.get(kind, ""):
            put(root, at + (known[0] if known else f), v)
    for f, v in pairs(DEVICE.get(kind, "").split()):
        put(root, "sys/class/infiniband/%s/hw_counters/%s" % (name, f), dict(pairs(values)).get(f, v))
    if kind == "mlx5":  # also at the device, which is no second port
        for f in ("out_of_buffer", "lifespan"):
            put(root, "sys/class/infiniband/%s/hw_counters/%s" % (name, f), "10")


def eth(root, name, *values):
    n = sum(c * 5 for c in name.encode()) % 9
    link(root, "sys/class/net/%s/device" % name,
         device(root, "pci0000:%d0/0000:%d0:03.0/0000:%d3:00.0" % (n, n, n), n // 2, "0x8086"))
    files = {"statistics/" + f: v for f, v in pairs(ETH)}
    files.update({"speed": "25000", "operstate": "up", "carrier_changes": "2", "flags": "0x1003",
                  "mtu": "1500"})
    for f, v in pairs(values):
        files[f if f in files or "statistics/" + f not in files else "statistics/" + f] = v
    for f, v in files.items():
        put(root, "sys/class/net/%s/%s" % (name, f), v)


def host(root):
    put(root, "proc/net/snmp", "Ip: Forwarding DefaultTTL\nIp: 1 64\n"
        "Tcp: RtoAlgorithm ActiveOpens InSegs OutSegs RetransSegs InErrs OutRsts\nTcp: 1 5 1000 2000 3 0 1")
    put(root, "proc/net/netstat", "TcpExt: SyncookiesSent TCPFastRetrans TCPLostRetransmit TCPTimeouts TCPSynRetrans TCPRcvQDrop\n"
        "TcpExt: 0 4 5 6 7 8\nIpExt: InNoRoutes\nIpExt: 0")
    put(root, "proc/stat", "cpu  100 20 300 4000 50 6 7 8 0 0\ncpu0 100 20 300 4000 50 6 7 8 0 0\nintr 5 1 2 3\nctxt 77777\nbtime 1\n"
        "processes 9\nprocs_running 3\nprocs_blocked 1")
    put(root, "proc/softirqs", "                    CPU0       CPU1\n          HI:          1          2\n      NET_TX:         10         20\n"
        "      NET_RX:        100        200")
    put(root, "proc/meminfo", "MemTotal:       16000000 kB\nMemFree:         1000000 kB\nMemAvailable:    8000000 kB")
    for n in ("cpu", "memory", "io"):
        put(root, "proc/pressure/" + n, "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234\n"
            "full avg10=0.00 avg60=0.00 avg300=0.00 total=567")


def gpu(root, address, parent="pci0000:00/0000:00:01.0"):
    device(root, parent + "/" + address, int(parent[8:9]) // 2 if parent[8:9].isdigit() else -1, "0x10de",
           "0x030200")


def pci(root, kind, name, path):
    at = os.path.join(root, "sys/class", kind, name, "device")
    old, new = os.path.realpath(at), os.path.join(root, "sys/devices", path)
    os.makedirs(os.path.dirname(new), exist_ok=True)
    shutil.move(old, new)
    os.remove(os.path.join(root, "sys/bus/pci/devices", os.path.basename(old)))
    link(root, "sys/bus/pci/devices/" + path.rsplit("/", 1)[1], "sys/devices/" + path)
    link(root, os.path.join("sys/class", kind, name, "device"), "sys/devices/" + path)


def tick(root, seconds, nic, *values):
    more = {w.replace("+=", "=").split("=")[0]: w for w in values}
    for name in sorted(os.listdir(os.path.join(root, "sys/class/cxi"))) if nic == "all" else [nic]:
        folder = "sys/class/cxi/%s/device/telemetry/" % name
        for n in os.listdir(os.path.join(root, folder)):
            if n == "ALL-in-binary" or os.path.isdir(os.path.join(root, folder, n)):
                continue
            text = take(root, folder + n)
            if "@" not in text:
                continue
            value, when = text.split("@")
            ns = int(when.split(".")[0]) * 10**9 + int(when.split(".")[1]) + int(float(seconds) * 1e9)
            word = more.get(n, "+=0")
            rise = int(word.split("=")[1])
            value = (int(value) + rise) % 2**56 if "+=" in word else rise
            put(root, folder + n, "%d@%d.%09d" % (value, ns // 10**9, ns % 10**9))


def fault(root, nic, name, kind):
    at = os.path.join(root, "sys/class/cxi", nic, "device/telemetry",
                      "ALL-in-binary" if kind == "binary" else name)
    if os.path.exists(at) and kind != "binary":
        os.remove(at)
    if kind == "eio":
        os.mkdir(at)
    elif kind != "gone":
        with open(at, "wb") as f:
            f.write({"empty": b"", "noat": b"12\n", "text": b"none@1.000000000\n",
                     "binary": bytes(range(256)) * 60}[kind])


COMMANDS = {"cxi": cxi, "rh": rh, "eth": eth, "host": host, "gpu": gpu, "pci": pci, "put": put, "tick": tick,
            "fault": fault}
for k in HW:
    COMMANDS[k] = (lambda k: lambda root, *w: port(k, root, *w))(k)


def main(words):
    root, rest = words[0], words[1:]
    while rest:
        end = rest.index("--") if "--" in rest else len(rest)
        COMMANDS[rest[0]](root, *rest[1:end])
        rest = rest[end + 1:]


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(sys.argv[1:])
