"""PyTorch's training step on one batch of random images: the peer of training on a CPU and on a GPU. Prints one JSON
object.

usage: python3 torch_step.py -a convnet|resnet18|resnet50 [--cifar-stem] [--device cuda] [--channels-last]
           [--autocast f16|bf16] [--tf32] [--compile | --max-autotune] [-b 32] [--steps 6] [--ddp]

Forward, cross-entropy, backward, fused SGD with momentum and weight decay, in f32 or under autocast, f16 with a
GradScaler. Without --channels-last it is what a tutorial writes; with it, and tcmalloc in LD_PRELOAD, what someone
writes who has tuned PyTorch on CPUs. On a GPU f32 is f32, as ours is, and with --tf32 what PyTorch has by default, TF32
in convolutions; cuDNN chooses by time; the batch lies there, and nothing is waited for between two steps. --ddp: one of
torchrun's ranks on CPUs, with DistributedDataParallel over gloo; -b is each rank's, images_per_s all ranks', and rank 0
prints.
"""

import argparse
import json
import resource
import statistics
import sys
import time
from itertools import pairwise
from pathlib import Path

import torch
import torch.distributed as dist
from torch_resnet import resnet

sys.path.append(str(Path(__file__).resolve().parent.parent.parent / "tools"))
from torch_models import ConvNet  # noqa: E402

DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16}


def build(arch: str, cifar_stem: bool) -> tuple[torch.nn.Module, tuple[int, int, int], int]:
    """The network, the shape of its images, its classes."""
    if arch == "convnet":
        return ConvNet(), (1, 28, 28), 10
    size, classes = (32, 10) if cifar_stem else (224, 1000)
    return resnet(int(arch.removeprefix("resnet")), classes, cifar_stem), (3, size, size), classes


def mark(device: str) -> float | torch.cuda.Event:
    """This moment, in the order of the device's work."""
    if device == "cpu":
        return time.perf_counter()
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def seconds_between(marks: list) -> list[float]:
    if isinstance(marks[0], float):
        return [end - start for start, end in pairwise(marks)]
    torch.cuda.synchronize()
    return [start.elapsed_time(end) / 1e3 for start, end in pairwise(marks)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-a", "--arch", required=True, choices=("convnet", "resnet18", "resnet50"))
    parser.add_argument("--cifar-stem", action="store_true")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--autocast", choices=DTYPES)
    parser.add_argument("--tf32", action="store_true")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--max-autotune", action="store_true", help="compile so, which takes minutes")
    parser.add_argument("-b", "--batch-size", type=int, default=32)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--warmup", type=int, default=2)
    parser.add_argument("--ddp", action="store_true")
    args = parser.parse_args()

    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    torch.backends.cudnn.allow_tf32 = args.tf32
    torch.backends.cudnn.benchmark = True
    model, shape, classes = build(args.arch, args.cifar_stem)
    layout = torch.channels_last if args.channels_last else torch.contiguous_format
    model = model.to(args.device, memory_format=layout)
    images = torch.randn(args.batch_size, *shape, device=args.device).to(memory_format=layout)
    labels = torch.randint(classes, (args.batch_size,), device=args.device)
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9, weight_decay=1e-4, fused=True)
    scaler = torch.amp.GradScaler(args.device, enabled=args.autocast == "f16")
    if args.compile or args.max_autotune:
        model = torch.compile(model, mode="max-autotune" if args.max_autotune else "default")
    ranks = 1
    if args.ddp:
        dist.init_process_group("gloo")
        ranks = dist.get_world_size()
        model = torch.nn.parallel.DistributedDataParallel(model)

    marks = [mark(args.device)]
    for _ in range(args.warmup + args.steps):
        optimizer.zero_grad()
        with torch.autocast(args.device, DTYPES.get(args.autocast), enabled=args.autocast is not None):
            logits = model(images)
        loss = torch.nn.functional.cross_entropy(logits.float(), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        marks.append(mark(args.device))
    median = statistics.median(seconds_between(marks)[args.warmup :])
    report = {
        "images_per_s": ranks * args.batch_size / median,
        "step_ms_median": median * 1e3,
        "peak_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "loss": loss.item(),
        "torch": torch.__version__,
    }
    if not args.ddp or dist.get_rank() == 0:
        print(json.dumps(report))
    if args.ddp:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
