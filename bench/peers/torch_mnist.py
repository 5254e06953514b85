"""PyTorch training the tutorials' ConvNet on MNIST to 99.0 %: the peer of train_convnet. Prints one JSON object.

usage: python3 torch_mnist.py DIR [--dtype f32|bf16] [--epochs 1] [--threads 2] [--seed 0]      DIR: MNIST's four files

AdamW at 0.004 that falls to 0 linearly, batch 32, label smoothing 0.1. Images lie in memory, normalized and
channels_last; start it with tcmalloc in LD_PRELOAD. bf16 is autocast. images_per_s counts from the first step on.
"""

import argparse
import gzip
import json
import sys
import time
from pathlib import Path

import numpy as np
import torch

sys.path.append(str(Path(__file__).resolve().parent.parent.parent / "tools"))
from torch_models import ConvNet  # noqa: E402

RATE, BATCH, SMOOTHING, EVALUATED = 0.004, 32, 0.1, 1000
MEAN, DEVIATION = 0.1307, 0.3081


def values(path: Path, header: int) -> np.ndarray:
    zipped = path.with_name(path.name + ".gz")
    content = gzip.open(zipped).read() if zipped.exists() else path.read_bytes()
    return np.frombuffer(content, np.uint8, offset=header)


def load(folder: Path, part: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Normalized images (N,1,28,28), stored channels last, and labels."""
    pixels = values(folder / f"{part}-images-idx3-ubyte", 16).reshape(-1, 1, 28, 28).astype(np.float32)
    images = torch.from_numpy((pixels / 255 - MEAN) / DEVIATION)
    labels = torch.from_numpy(values(folder / f"{part}-labels-idx1-ubyte", 8).astype(np.int64))
    return images.contiguous(memory_format=torch.channels_last), labels


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dir", type=Path)
    parser.add_argument("--dtype", default="f32", choices=["f32", "bf16"])
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    images, labels = load(args.dir, "train")
    model = ConvNet().to(memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(model.parameters(), RATE, weight_decay=0, fused=True)
    orders = [torch.randperm(len(labels)).split(BATCH) for _ in range(args.epochs)]
    steps = sum(map(len, orders))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / steps)
    loss_of = torch.nn.CrossEntropyLoss(label_smoothing=SMOOTHING)

    def logits(batch: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16, enabled=args.dtype == "bf16"):
            return model(batch)

    start = None
    for chosen in (chosen for order in orders for chosen in order):
        loss = loss_of(logits(images[chosen]).float(), labels[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if start is None:
            start = time.monotonic()
    seconds = time.monotonic() - start

    model.eval()
    images, labels = load(args.dir, "t10k")
    correct = 0
    with torch.no_grad():
        for batch, expected in zip(images.split(EVALUATED), labels.split(EVALUATED)):
            correct += int((logits(batch).argmax(1) == expected).sum())
    speed = (steps - 1) * BATCH / seconds
    print(json.dumps({"images_per_s": round(speed, 1), "accuracy": correct / len(labels)}))


if __name__ == "__main__":
    main()
