#!/usr/bin/env python3
"""The Python half of script/interop: real PyTorch beside interop_tool, both ways.

  interop.py TOOL WORK_DIR

What the tool wrote is loaded with dcp.load in one process, with dcp.load into DTensors on several
gloo ranks, and through dcp_to_torch_save and torch.load; what torch wrote is read by the tool.
Prints one line per comparison; exit 1 when any differs.
"""
import hashlib
import os
import subprocess
import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as mp
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save
from torch.distributed.checkpoint.metadata import TensorStorageMetadata
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard, distribute_tensor

failures = 0


def report(what, expected, found):
    global failures
    same = expected == found
    failures += not same
    print(f"{'same     ' if same else 'DIFFERENT'}  {what}  ({len(expected)} lines)")
    if not same:
        for a, b in zip(expected, found):
            if a != b:
                print("  expected", a, "\n  found   ", b)
                break


def tool(*arguments):
    run = subprocess.run([sys.argv[1], *map(str, arguments)], check=True, stdout=subprocess.PIPE, text=True)
    return run.stdout.splitlines()


def digest_of(tensor):
    data = tensor.detach().contiguous().reshape(-1).view(torch.uint8) if tensor.numel() else tensor.new_empty(0, dtype=torch.uint8)
    return hashlib.sha256(data.numpy().tobytes()).hexdigest()


def line_of(key, value):
    if isinstance(value, torch.Tensor):
        shape = "[" + ",".join(map(str, value.shape)) + "]"
        return f"{key} {str(value.dtype)[6:]} {shape} {digest_of(value)}"
    return f"{key} {value!r}"


def flat_template(directory):
    """Every key of a checkpoint with an empty place for it."""
    metadata = dcp.FileSystemReader(directory).read_metadata()
    return {k: torch.empty(m.size, dtype=m.properties.dtype) if isinstance(m, TensorStorageMetadata) else None
            for k, m in metadata.state_dict_metadata.items()}


def load_flat(directory):
    state = flat_template(directory)
    dcp.load(state, storage_reader=dcp.FileSystemReader(directory), no_dist=True)
    return [line_of(k, v) for k, v in state.items()]


def flatten(value, prefix=""):
    if isinstance(value, dict):
        for k, v in value.items():
            yield from flatten(v, f"{prefix}.{k}" if prefix else str(k))
    elif isinstance(value, list) and any(isinstance(v, (dict, torch.Tensor)) for v in value):
        for i, v in enumerate(value):
            yield from flatten(v, f"{prefix}.{i}")
    else:
        yield line_of(prefix, value)


def join(rank, world, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(world))
    dist.init_process_group("gloo", rank=rank, world_size=world)
    return init_device_mesh("cpu", (world,))


def load_sharded(rank, world, port, directory, out):
    mesh = join(rank, world, port)
    state = {}
    for key, value in flat_template(directory).items():
        if isinstance(value, torch.Tensor) and value.dim() > 0 and value.dtype in (torch.float32, torch.float64, torch.bfloat16):
            value = distribute_tensor(value, mesh, [Shard(0)])
        state[key] = value
    dcp.load(state, storage_reader=dcp.FileSystemReader(directory))
    lines = [line_of(k, v.full_tensor() if isinstance(v, DTensor) else v) for k, v in state.items()]
    if rank == 0:
        with open(out, "w") as f:
            f.write("\n".join(lines) + "\n")
    dist.destroy_process_group()


def train(mesh):
    torch.manual_seed(5)
    parameters = {}
    for name, size in (("embed.weight", (7, 3)), ("head.weight", (5, 2)), ("head.bias", (5,))):
        whole = torch.randn(size)
        parameters[name] = torch.nn.Parameter(distribute_tensor(whole, mesh, [Shard(0)]) if mesh else whole)
    optimizer = torch.optim.AdamW(list(parameters.values()), lr=0.01, amsgrad=True)
    for step in range(2):
        for p in parameters.values():
            p.grad = torch.full_like(p, 0.1 * (step + 1))
        optimizer.step()
    state = optimizer.state_dict()
    names = list(parameters)
    return {"model": {n: p.detach() for n, p in parameters.items()},
            "optimizer": {"state": {names[i]: s for i, s in state["state"].items()},
                          "param_groups": [{**g, "params": names} for g in state["param_groups"]]}}


def save_sharded(rank, world, port, directory, out):
    mesh = join(rank, world, port)
    tree = train(mesh)
    dcp.save(tree, checkpoint_id=directory)
    full = lambda v: ({k: full(x) for k, x in v.items()} if isinstance(v, dict) else [full(x) for x in v] if isinstance(v, list) else
                      v.full_tensor() if isinstance(v, DTensor) else v)
    lines = sorted(flatten(full(tree)))
    if rank == 0:
        with open(out, "w") as f:
            f.write("\n".join(lines) + "\n")
    dist.destroy_process_group()


def read_lines(path):
    with open(path) as f:
        return f.read().splitlines()


def same_bytes(a, b):
    with open(a, "rb") as f, open(b, "rb") as g:
        return f.read() == g.read()


def main():
    work = sys.argv[2]
    port = 29511
    print("torch", torch.__version__, "python", sys.version.split()[0])
    for ranks in (1, 2, 3):
        ours = os.path.join(work, f"ours{ranks}")
        tool("write", ranks, ours)
        expected = tool("digest", ours)
        report(f"written by us on {ranks} ranks, dcp.load in one process", expected, load_flat(ours))
        for world in (2, 3):
            port += 1
            out = os.path.join(work, "lines.txt")
            mp.spawn(load_sharded, (world, port, ours, out), nprocs=world)
            report(f"written by us on {ranks} ranks, dcp.load into Shard(0) on {world} ranks", expected, read_lines(out))
        whole = os.path.join(work, f"ours{ranks}.pt")
        dcp_to_torch_save(ours, whole)
        loaded = torch.load(whole, weights_only=False)
        report(f"written by us on {ranks} ranks, dcp_to_torch_save and torch.load", sorted(expected), sorted(flatten(loaded)))
    theirs = os.path.join(work, "theirs1")
    tree = train(None)
    dcp.save(tree, checkpoint_id=theirs, no_dist=True)
    report("written by torch in one process, read by us", sorted(flatten(tree)), sorted(tool("digest", theirs)))
    again = os.path.join(work, "again1")
    tool("rewrite", theirs, again)
    same = same_bytes(os.path.join(theirs, "__0_0.distcp"), os.path.join(again, "__0_0.distcp"))
    report("written by torch, rewritten by us: data file byte for byte", [True], [same])
    for world in (2, 3):
        theirs, out, port = os.path.join(work, f"theirs{world}"), os.path.join(work, "lines.txt"), port + 1
        mp.spawn(save_sharded, (world, port, theirs, out), nprocs=world)
        report(f"written by torch on {world} ranks, read by us", read_lines(out), sorted(tool("digest", theirs)))
    print("all the same" if failures == 0 else f"{failures} comparisons differ")
    return failures != 0


if __name__ == "__main__":
    sys.exit(main())
