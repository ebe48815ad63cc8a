"""gsprof 0.2.1 against our head, as its protocol is described (docs/cluster.md): messages put together here
by field numbers, no module of protoc.

Its sequence: a channel of its own for GetStatus; another one for Connect and one StreamMetrics for life.
Control commands come from elsewhere.
"""
import math
import re
import struct
import time

import grpc
import head


def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def put(number, value):
    """As proto3 has it: what is 0 or empty is not sent."""
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value) if value != 0 else b""
    if isinstance(value, int):
        return varint(number << 3) + varint(value) if value else b""
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value if value else b""


def fields(b):
    """{number: [values]}; of doubles none is in what a head says."""
    got, at = {}, 0

    def number():
        nonlocal at
        n = shift = 0
        while True:
            n |= (b[at] & 127) << shift
            at, shift = at + 1, shift + 7
            if b[at - 1] < 128:
                return n
    while at < len(b):
        key = number()
        assert key & 7 in (0, 2), key
        value = number()
        if key & 7 == 2:
            at, value = at + value, b[at:at + value].decode()
        got.setdefault(key >> 3, []).append(value)
    return got


def gpu(index, util, rx, tx):
    return put(2, put(1, index) + put(2, head.GPU) + put(3, util) + put(4, 0.25) + put(5, rx) + put(6, tx))


def update(host, n, util=0.37):
    return put(1, host) + b"".join(gpu(i, util, 1048576.0, 2048.0)
                                   for i in range(n)) + put(4, put(1, 7.25) + put(2, 19.5))


def call(channel, method, request=b""):
    return fields(channel.unary_unary(head.GSPROF + method)(request, timeout=20))


with head.Head("gsprof", "--enable-bandwidth", freq=0.5) as h:
    first = grpc.insecure_channel(h.at)
    # what is false, 0 or empty does not come
    assert call(first, "GetStatus") == {1: [500], 2: [1]}, call(first, "GetStatus")
    first.close()
    channel = grpc.insecure_channel(h.at, options=[("grpc.use_local_subchannel_pool", 1)])
    info = put(1, "n7") + b"".join(put(2, (put(1, i) or b"\x08\x00") + put(2, head.GPU)) for i in range(8))
    assert call(channel, "Connect", info) == {1: [1], 2: ["Connected successfully. Registered 8 GPUs."]}
    # eight GPUs with bandwidth, as it was seen on the wire
    assert abs(len(update("n7", 8)) - 533) < 30, len(update("n7", 8))
    stream = head.Stream(channel, head.GSPROF + "StreamMetrics")
    control = grpc.insecure_channel(h.at, options=[("grpc.use_local_subchannel_pool", 1)])
    assert call(control, "StopProfiling") == {2: ["Profiling is not active."]}
    assert call(control, "StartProfiling",
                put(1, "old")) == {1: [1], 2: ["Profiling started."], 3: ["old.json"]}
    assert call(control, "StartProfiling", put(1, "old"))[2] == ["a session of that name runs"]
    for k in range(8):
        stream.put(update("n7", 8, math.nan if k >= 6 else 0.37))
        time.sleep(0.5)
    status = call(control, "GetStatus")
    assert {n: v for n, v in status.items()
            if n not in (6, 7)} == {1: [500], 2: [1], 4: [1], 5: ["old.json"]}, status
    assert (5 <= status[6][0] <= 9 and len(status[7]) == 1 and
            re.fullmatch(r"n7_ipv4:127\.0\.0\.1:\d+", status[7][0])), status
    assert not stream.call.done()  # it is answered at its end alone
    # Empty, as the first versions say it
    assert call(control, "StopProfiling") == {1: [1], 2: ["Profiling stopped. Data saved to old.json"]}
    stream.put(None)
    assert stream.call.result(timeout=20) == b""
    channel.close()
    head.until(lambda: 7 not in call(control, "GetStatus"))
    # One that nobody has announced is a client all the same; its start without a name is named after the
    # time.
    made = call(control, "StartProfiling")
    assert made[1] == [1] and re.fullmatch(r"session_\d{8}_\d{6}\.json", made[3][0]), made
    unknown = head.Stream(control, head.GSPROF + "StreamMetrics")
    unknown.put(update("late", 1))
    head.until(lambda: h.taken("late") == 1)
    assert call(control, "StopProfiling", put(1, made[3][0][:-5]))[1] == [1]
    d = h.file("old")
    frames = [f for f in d["frames"] if f["client_state"] == ["ok"]]
    assert len(frames) >= 5 and all(len(f["gpu_id"]) == 8 for f in frames), d["frames"]
    good = [f for f in frames if f["gpu_util"][0] != "nan"]
    # Fractions and KiB/s become percent and GB/s; what it calls rx is what the GPU sends.
    for f in good:
        assert (f["gpu_util"] == ["37.00"] * 8 and f["gpu_memory"] == ["25.00"] * 8 and
                f["gpu_id"][7] == "n7:7:" + head.GPU), f
        assert (f["dram_bandwidth_tx"] == ["1.07"] * 8 and f["dram_bandwidth_rx"] == ["0.00"] * 8 and
                f["dram_util"] == ["7.25"]), f
    assert (3 <= len(good) < len(frames) and
            d["summary_by_device"]["n7:0:" + head.GPU]["avg_gpu_util"] == "37.00"), d["summary_by_device"]
    try:
        call(control, "Nothing")
        raise AssertionError("an unknown method is answered")
    except grpc.RpcError as e:
        assert e.code() == grpc.StatusCode.UNIMPLEMENTED, e
    assert call(control, "Exit") == {}
    assert h.p.wait(20) == 0
