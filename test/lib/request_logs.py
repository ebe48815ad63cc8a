"""Logs of two engines that serve requests, no step like another: request_logs.py DIR CAUSE

8 ranks, four on each of two hosts, which have nothing in common. The first rank of an engine waits for a
request at times, and tells the others by a Broadcast. Each layer computes twice, by the number of tokens,
with an AllReduce behind. CAUSE:
`none`; `gpu`: rank 5 computes a tenth longer; `gc`: rank 6 stops for 60 ms now and then; `nvlink`: transfers
of the second engine take three times as long; `hot`: all GPUs of node-1 compute a fifth longer; `contexts`:
they take 1.3 times as long to decode, and as long as ever for prompts.
"""
import pathlib
import random
import sys

import logs

out, cause = pathlib.Path(sys.argv[1]), sys.argv[2]
out.mkdir(parents=True, exist_ok=True)
LAYERS, STEPS = 6, 150
log = [logs.Log(r, 8, f"node-{r // 4}", 4000 + r, spaced=True) for r in range(8)]
free, number = [logs.T0] * 8, {}
comm = lambda r: (f"0x77aa00000000100{r // 4}", f"tp{r // 4}", 4, 1)


def add(rank, header, kind, body):
    log[rank].add(free[rank] // 1000 + 1000, kind, body, logs.header(*header))


def collective(ranks, function, size, transfer):
    end = max(free[r] for r in ranks) + transfer
    for member, r in enumerate(ranks):
        ident, name, n, nodes = comm(r)
        ns, sn = end - free[r], number.setdefault((function, r), 0)
        if function == "Broadcast" and member == 0:
            ns = transfer  # it has sent, and waits for nobody
        add(r, (ident, member, n, nodes, name), "coll_perf", logs.perf(
            "coll", function, sn=sn, msg_size_bytes=size, exec_time_us=ns // 1000, timing_source="kernel_gpu",
            algobw_gbs=round(size / ns, 6), busbw_gbs=round(size / ns, 6), exec_time_ns=ns,
            enqueue_ns=free[r] - 10000, gpu_start_delta_ns=10000, rec_sn=number.setdefault(r, 0)))
        number[function, r] += 1
        number[r] += 1
        free[r] += ns


for r in range(8):
    add(r, ("0x0", r, 8, 0, ""), "process", logs.process(logs.T0 - 10**9, r, 8, "b", local_rank=r % 4))
for engine in range(2):
    draw, ranks = random.Random(5 + engine), range(4 * engine, 4 * engine + 4)
    slow = 3 if cause == "nvlink" and engine else 1
    for step in range(STEPS):
        prompt = draw.random() < 0.15
        tokens = draw.randrange(500, 8000) if prompt else int(8 * 32 ** draw.random())
        free[ranks[0]] += int(3e7 * draw.random() if draw.random() < 0.05 else 1e6 * draw.random())
        collective(ranks, "Broadcast", 4096, 5000)
        for layer in range(2 * LAYERS):
            for r in ranks:
                longer = 1.1 if cause == "gpu" and r == 5 else 1.2 if cause == "hot" and engine else 1
                longer = 1.3 if cause == "contexts" and engine and not prompt else longer
                free[r] += int((3e5 + 100 * tokens) * draw.gauss(1, 0.01) * longer)
                if cause == "gc" and r == 6 and step % 15 == 7 and layer == 3:
                    free[r] += int(6e7)
            collective(ranks, "AllReduce", 16384 * tokens,
                       int((8000 + 16384 * tokens / 200) * draw.gauss(1, 0.01) * slow))
        collective(ranks, "AllGather", 8000 * min(tokens, 256), int(2e4 * draw.gauss(1, 0.01)))
for r in range(8):
    log[r].write(out)
