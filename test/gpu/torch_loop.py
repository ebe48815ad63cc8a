"""A short training loop with PyTorch, DDP or FSDP, for scripts/gpu_validate.sh.

Run once per rank with RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT set, as torchrun does. Writes
what the log must show: how many bytes of gradients were reduced, and how many operations of a size that
nothing else has were issued.
NI_ONE_GPU=1: all ranks on GPU 0, a NCCL_HOSTID each, else NCCL refuses the second ("Duplicate GPU detected").
No data, no download, no file but --out (%r: the rank).
"""
import argparse
import json
import os

import torch
import torch.distributed as dist

ap = argparse.ArgumentParser()
ap.add_argument("--mode", choices=["ddp", "fsdp"], required=True)
ap.add_argument("--steps", type=int, default=20)
ap.add_argument("--out", required=True)
args = ap.parse_args()

one_gpu = os.environ.get("NI_ONE_GPU") == "1"
if one_gpu:  # read by NCCL when the first communicator is made
    os.environ["NCCL_HOSTID"] = "ni-host-" + os.environ["RANK"]
torch.manual_seed(1)
device = torch.device("cuda", 0 if one_gpu else int(os.environ["LOCAL_RANK"]))
torch.cuda.set_device(device)
dist.init_process_group("nccl")
rank, world = dist.get_rank(), dist.get_world_size()

WIDTH = 1024  # divisible by any world size up to 8: nothing is padded
layers = [torch.nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4)]
model = torch.nn.Sequential(*layers).to(device)
parameters = sum(p.numel() for p in model.parameters())
if args.mode == "ddp":
    model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[device.index],
                                                      broadcast_buffers=False)
else:
    from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy

    model = FSDP(model, auto_wrap_policy=ModuleWrapPolicy({torch.nn.Linear}), device_id=device,
                 use_orig_params=True)

optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for step in range(args.steps):
    optimizer.zero_grad(set_to_none=True)
    model(torch.randn(32, WIDTH, device=device)).square().mean().backward()
    optimizer.step()
torch.cuda.synchronize()

# Operations of a size that neither DDP nor FSDP nor a barrier uses: 4,001 doubles.
marker = torch.ones(4001, dtype=torch.float64, device=device)
for _ in range(args.steps):
    dist.all_reduce(marker)
torch.cuda.synchronize()

# Ground truth from CUPTI, where it works: the NCCL kernels of a few more marked operations.
kernels = None
try:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as prof:
        for _ in range(8):
            dist.all_reduce(torch.ones(5003, dtype=torch.float64, device=device))
        torch.cuda.synchronize()
    kernels = [e.device_time * 1000 for e in prof.events() if "nccl" in e.name.lower() and
               "kernel" in e.name.lower()]
except Exception as e:  # another profiler has the device, CUPTI is not allowed here: no figure, no finding
    print("no CUPTI:", e)

with open(args.out.replace("%r", str(rank)), "w") as f:
    json.dump({"mode": args.mode, "pid": os.getpid(), "rank": rank, "world": world, "steps": args.steps,
               "parameters": parameters, "marker_bytes": 4001 * 8, "markers": args.steps,
               "kernel_ns": kernels, "kernel_bytes": 5003 * 8, "torch": torch.__version__,
               "nccl": ".".join(map(str, torch.cuda.nccl.version()))}, f)
dist.destroy_process_group()
