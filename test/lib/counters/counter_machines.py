#!/usr/bin/env python3
"""Four kinds of machines as sysfs shows them, below a root (NI_ROOT=ROOT), for tests.

    counter_machines.py ROOT MACHINE STEP [FAULT...]

MACHINE  dgx     NVIDIA DGX H100: eight ConnectX-7 of one port, each below a PCIe switch with a GPU, InfiniBand NDR; two ConnectX-7 of
                 two ports for storage, Ethernet, of each card one port is cabled (names, devices and GPUs:
                 NVIDIA's user guide of the DGX H100; which ports are up: imbue-ai/cluster-health#4)
         dgx-ib  the same, with storage by InfiniBand HDR
         azure   Azure ND H100 v5: eight virtual functions of ConnectX-7, each in a domain of its own without a switch in sight, and
                 accelerated networking, an Ethernet function whose interface belongs to the synthetic eth0
                 (azhpc-images#154, #213, azhpc-diagnostics#59)
         aws     AWS P5: 32 EFA, four beside each GPU, always ACTIVE and 100 Gb/sec whatever they are, link layer Unspecified, counters
                 of the port and of the device (aws/eks-charts#1144, perftest#113, NVSentinel#1750,
                 efa_verbs.c of Linux)
         cray    HPE Cray with Slingshot: four Cassini, each in a quadrant with a GPU, hsn0 to hsn3 beside a management interface; counters
                 of a real node (data/cassini)
STEP     1 before, 2 after: what a healthy job moves has moved
FAULT    down=PORT  slow=PORT:RATE  pcie=PORT:WIDTH  gone=DEVICE  init=PORT  off=PORT  PORT.COUNTER+=N  (of Cassini NIC.COUNTER+=N,
         of an RDMA device DEVICE.COUNTER+=N)
"""
import os
import sys

import counter_trees as trees
from counter_trees import link, pairs, put

EFA_DEVICE = """lifespan=12 submitted_cmds=5000 completed_cmds=5000 cmds_err no_completion_cmds keep_alive_rcvd=900 alloc_pd_err create_qp_err
create_cq_err reg_mr_err alloc_ucontext_err create_ah_err mmap_err"""


class Machine:
    def __init__(self, root, step, faults):
        self.root, self.step, self.faults = root, step, faults

    def fault(self, kind, name):
        """What stands behind the '=' of a fault of that kind and port; None: it has none."""
        for f in self.faults:
            if f == "%s=%s" % (kind, name):
                return ""
            if f.startswith("%s=%s:" % (kind, name)):
                return f.split(":")[-1]
        return None

    def more(self, name, counter):
        for f in self.faults:
            if f.startswith("%s.%s+=" % (name, counter)):
                return int(f.split("+=")[1])
        return 0

    def put(self, path, text):
        put(self.root, path, str(text))

    def device(self, path, numa, vendor, number, kind="0x020700", speed="32.0 GT/s PCIe"):
        folder = trees.device(self.root, path, numa, vendor, kind)
        self.put(folder + "/device", number)
        for f in ("current", "max"):
            self.put(folder + "/%s_link_speed" % f, speed)
        return folder

    def counters(self, at, name, usual, moving):
        """Files with their usual values; what moves has gone on by STEP - 1 times its amount, and by what is
        planted."""
        for n, v in pairs(usual.split()):
            v = int(v) + moving.get(n, 0) * (self.step - 1)
            self.put("%s/%s" % (at, n), v + (self.more(name, n) if self.step == 2 else 0))

    def port(self, name, path, numa, vendor, number, layer, rate, netdev=None, up=True, hw="mlx5",
             flags="0x1003"):
        """An RDMA device of one port. netdev: its interface; up: has it a link."""
        if self.fault("gone", name) is not None and self.step == 2:
            return
        folder = self.device(path, numa, vendor, number)
        port = name + ":1"
        if self.fault("pcie", port):
            self.put(folder + "/current_link_width", self.fault("pcie", port))
        device = folder + "/infiniband/" + name
        link(self.root, "sys/class/infiniband/" + name, device)
        os.makedirs(os.path.join(self.root, device), exist_ok=True)
        link(self.root, device + "/device", folder)
        off = self.fault("off", port) is not None
        up = up and not off and self.fault("down", port) is None
        state = "4: ACTIVE" if up else "1: DOWN"
        if self.fault("init", port) is not None:
            state = "2: INIT"
        at = device + "/ports/1"
        self.put(at + "/state", state)
        self.put(at + "/phys_state", "5: LinkUp" if up else "2: Polling" if layer == "InfiniBand"
                 else "3: Disabled")
        self.put(at + "/rate", self.fault("slow", port) or
                 (rate if up else "10 Gb/sec (4X SDR)" if layer == "InfiniBand" else "40 Gb/sec (4X QDR)"))
        self.put(at + "/link_layer", layer)
        if netdev:
            self.put(folder + "/net/%s/flags" % netdev, "0x1002" if off else flags)
            link(self.root, "sys/class/net/" + netdev, folder + "/net/" + netdev)
        if hw == "efa":
            moving = {"tx_bytes": 10**9, "rx_bytes": 10**9, "tx_pkts": 2 * 10**5, "rx_pkts": 2 * 10**5,
                      "send_bytes": 10**6, "recv_bytes": 10**6,
                      "rdma_write_bytes": 10**9, "retrans_pkts": 20, "retrans_bytes": 180000}
            self.counters(at + "/hw_counters", port, trees.HW["efa"], moving)
            self.counters(device + "/hw_counters", name, EFA_DEVICE,
                          {"keep_alive_rcvd": 3, "submitted_cmds": 9, "completed_cmds": 9})
            return
        moving = {"port_xmit_data": 2 * 10**8, "port_rcv_data": 2 * 10**8, "port_xmit_packets": 2 * 10**5,
                  "port_rcv_packets": 2 * 10**5,
                  "port_xmit_wait": 5000, "rx_write_requests": 10**4, "out_of_sequence": 0}
        self.counters(at + "/counters", port, " ".join(trees.PMA), moving if up else {})
        self.counters(at + "/hw_counters", port, trees.HW["mlx5"], moving if up else {})

    def interface(self, name, path, numa, vendor, speed, kind="0x020000", **files):
        """An Ethernet interface without RDMA. speed: Mb/s; None: the driver does not say."""
        folder = self.device(path, numa, vendor, "0x1533", kind) + "/net/" + name
        link(self.root, "sys/class/net/" + name, folder)
        link(self.root, folder + "/device", os.path.dirname(os.path.dirname(folder)))
        self.statistics(folder, speed, **files)

    def statistics(self, folder, speed, **files):
        for f, v in pairs(trees.ETH):
            self.put(folder + "/statistics/" + f, v)
        self.put(folder + "/speed", speed if speed else -1)
        for f, v in {"operstate": "up", "carrier_changes": "2", "flags": "0x1003", "mtu": "1500",
                     **files}.items():
            self.put(folder + "/" + f, v)

    def gpu(self, path, numa):
        self.device(path, numa, "0x10de", "0x2330", "0x030200")

    def routes(self, interface):
        self.put("proc/net/route", "Iface\tDestination\tGateway\tFlags\n%s\t00000000\t0100000A\t0003\n%s\t0000000A\t00000000\t0001" % (interface, interface))


def dgx(m, storage="Ethernet"):
    """mlx5_0 is ibp24s0 at bus 0x18, and so on; a GPU is three buses on, below the same switch."""
    for name, bus, numa in (("mlx5_0", 0x18, 0), ("mlx5_3", 0x40, 0), ("mlx5_4", 0x4f, 0),
                            ("mlx5_5", 0x5e, 0),
                            ("mlx5_6", 0x9a, 1), ("mlx5_9", 0xc0, 1), ("mlx5_10", 0xce, 1),
                            ("mlx5_11", 0xdc, 1)):
        switch = "pci0000:%02x/0000:%02x:01.0/0000:%02x:00.0" % (bus - 3, bus - 3, bus - 2)
        # The interface of IP over InfiniBand is not set up, and need not be.
        m.port(name, "%s/0000:%02x:00.0/0000:%02x:00.0" % (switch, bus - 1, bus), numa, "0x15b3", "0x1021",
               "InfiniBand", "400 Gb/sec (4X NDR)",
               "ibp%ds0" % bus, flags="0x1002")
        m.gpu("%s/0000:%02x:02.0/0000:%02x:00.0" % (switch, bus - 1, bus + 3), numa)
    for bus, numa, names in ((0x29, 0, ("mlx5_1", "mlx5_2")), (0xaa, 1, ("mlx5_7", "mlx5_8"))):
        for i, name in enumerate(names):
            rate = "200 Gb/sec (4X HDR)" if storage == "InfiniBand" else "200 Gb/sec (2X NDR)"
            m.port(name, "pci0000:%02x/0000:%02x:01.0/0000:%02x:00.%d" % (bus - 2, bus - 2, bus, i), numa,
                   "0x15b3", "0x1021", storage, rate, "enp%ds0f%dnp%d" % (bus, i, i), up=i == 0,
                   flags="0x1003" if i == 0 else "0x1002")
    m.interface("eno3", "pci0000:00/0000:00:1c.0/0000:06:00.0", 0, "0x8086", 10000)
    m.routes("eno3")


def azure(m):
    for i in range(8):
        m.port("mlx5_ib%d" % i, "pci%04x:00/%04x:00:00.0" % (0x101 + i, 0x101 + i), i // 4, "0x15b3",
               "0x101e", "InfiniBand", "400 Gb/sec (4X NDR)", "ib%d" % i)
        m.gpu("pci%04x:00/%04x:00:00.0" % (i + 1, i + 1), i // 4)
    m.port("mlx5_an0", "pcieb97:00/eb97:00:02.0", 0, "0x15b3", "0x101a", "Ethernet", "100 Gb/sec (4X EDR)",
           "enP60311s1")
    m.statistics("sys/devices/virtual/net/eth0", 100000)
    link(m.root, "sys/class/net/eth0", "sys/devices/virtual/net/eth0")
    link(m.root, "sys/devices/pcieb97:00/eb97:00:02.0/net/enP60311s1/master", "sys/devices/virtual/net/eth0")
    m.routes("eth0")


def aws(m):
    for g, first in enumerate((79, 96, 113, 130, 147, 164, 181, 198)):
        switch = "pci0000:%02x/0000:%02x:01.0/0000:%02x:00.0" % (first - 12, first - 12, first - 11)
        for k in range(4):
            m.port("rdmap%ds0" % (first + k),
                   "%s/0000:%02x:%02x.0/0000:%02x:00.0" % (switch, first - 10, k, first + k), g // 4,
                   "0x1d0f", "0xefa2",
                   "Unspecified", "100 Gb/sec (4X EDR)", hw="efa")
        m.gpu("%s/0000:%02x:%02x.0/0000:%02x:00.0" % (switch, first - 10, 4, first + 4), g // 4)
    m.interface("ens32", "pci0000:27/0000:27:00.0", 0, "0x1d0f", None)
    m.routes("ens32")


def cray(m):
    trees.cxi(m.root, "before" if m.step == 1 else "after", "4")
    for i in range(4):
        nic, folder = "cxi%d" % i, "sys/class/cxi/cxi%d/device" % i
        m.interface("hsn%d" % i, trees.place(i), i // 2, "0x17db", 200000)
        m.put(folder + "/device", "0x0501")
        m.put(folder + "/current_link_width", m.fault("pcie", nic) or 16)
        m.put(folder + "/port/link", "up" if m.fault("down", nic) is None else "down")
        m.put(folder + "/port/speed", m.fault("slow", nic) or "BS_200G")
        m.gpu("pci0000:%d0/0000:%d0:03.0/0000:%d3:00.0" % (i, i, i), i)
        for f in m.faults:
            if m.step == 2 and f.startswith(nic + ".") and "+=" in f:
                name, n = f[len(nic) + 1:].split("+=")
                value, when = trees.take(m.root, "%s/telemetry/%s" % (folder, name)).split("@")
                m.put("%s/telemetry/%s" % (folder, name), "%d@%s" % (int(value) + int(n), when))
    m.interface("nmn0", "pci0000:00/0000:00:1c.0/0000:c2:00.0", 0, "0x8086", 1000)
    m.routes("nmn0")


MACHINES = {"dgx": dgx, "dgx-ib": lambda m: dgx(m, "InfiniBand"), "azure": azure, "aws": aws, "cray": cray}


def main(words):
    m = Machine(words[0], int(words[2]), words[3:])
    trees.host(m.root)
    MACHINES[words[1]](m)


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(sys.argv[1:])
