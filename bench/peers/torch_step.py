"""PyTorch's training step on one batch of random images: the peer of bench_train. Prints one JSON object.

usage: python3 torch_step.py -a resnet18|resnet50 [--cifar-stem] [--channels-last] [--bf16] [-b 32] [--steps 6]

Forward, cross-entropy, backward, fused SGD with momentum and weight decay, in f32 or under autocast. Without
--channels-last it is what a tutorial writes; with it, and tcmalloc in LD_PRELOAD, what someone writes who has tuned
PyTorch on CPUs.
"""

import argparse
import json
import resource
import statistics
import time

import torch
import torchvision


def build(arch: str, cifar_stem: bool) -> tuple[torch.nn.Module, int, int]:
    """The network, the side of its images, its classes."""
    size, classes = (32, 10) if cifar_stem else (224, 1000)
    model = torchvision.models.get_model(arch, num_classes=classes)
    if cifar_stem:
        model.conv1 = torch.nn.Conv2d(3, 64, 3, padding=1, bias=False)
        model.maxpool = torch.nn.Identity()
    return model, size, classes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-a", "--arch", required=True)
    parser.add_argument("--cifar-stem", action="store_true")
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--bf16", action="store_true", help="autocast")
    parser.add_argument("-b", "--batch-size", type=int, default=32)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--warmup", type=int, default=2)
    args = parser.parse_args()

    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    model, size, classes = build(args.arch, args.cifar_stem)
    layout = torch.channels_last if args.channels_last else torch.contiguous_format
    model = model.to(memory_format=layout)
    images = torch.randn(args.batch_size, 3, size, size).to(memory_format=layout)
    labels = torch.randint(classes, (args.batch_size,))
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9, weight_decay=1e-4, fused=True)

    times = []
    for _ in range(args.warmup + args.steps):
        start = time.perf_counter()
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=args.bf16):
            logits = model(images)
        loss = torch.nn.functional.cross_entropy(logits.float(), labels)
        loss.backward()
        optimizer.step()
        times.append(time.perf_counter() - start)
    median = statistics.median(times[args.warmup :])
    report = {
        "images_per_s": args.batch_size / median,
        "step_ms_median": median * 1e3,
        "peak_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "loss": loss.item(),
        "torch": torch.__version__,
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
