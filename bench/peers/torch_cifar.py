"""PyTorch training ResNet-20 on CIFAR-10: the peer of train_resnet. Prints one JSON object.

usage: python3 torch_cifar.py DIR [--steps 150] [--threads 2] [-b 128] [--seed 0]      DIR: with data_batch_1.bin ...

Everything in memory, images gathered, cropped and flipped for a whole batch at once, channels_last; start it with
tcmalloc in LD_PRELOAD. SGD 0.1, momentum 0.9, weight decay 1e-4, f32. images_per_s counts from the first step on.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np
import torch

sys.path.append(str(Path(__file__).resolve().parent.parent.parent / "tools"))
from torch_models import CifarResNet  # noqa: E402

SIDE, PAD = 32, 4
MEAN = torch.tensor([0.485, 0.456, 0.406]) * 255
STD = torch.tensor([0.229, 0.224, 0.225]) * 255


def load(folder: Path) -> tuple[torch.Tensor, torch.Tensor]:
    """Padded images (N,H,W,C) in bytes, and labels."""
    records = np.concatenate([np.fromfile(folder / f"data_batch_{i}.bin", np.uint8) for i in range(1, 6)])
    records = torch.from_numpy(records.reshape(-1, 1 + 3 * SIDE * SIDE))
    pixels = records[:, 1:].reshape(-1, 3, SIDE, SIDE)
    padded = torch.nn.functional.pad(pixels, (PAD, PAD, PAD, PAD)).permute(0, 2, 3, 1).contiguous()
    return padded, records[:, 0].long()


def crop_and_flip(padded: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    """Normalized f32 (N,C,H,W), stored channels last."""
    count, side = len(chosen), torch.arange(SIDE)
    rows = torch.randint(2 * PAD + 1, (count, 1)) + side
    left = torch.randint(2 * PAD + 1, (count, 1))
    flipped = torch.rand(count, 1) < 0.5
    columns = left + torch.where(flipped, SIDE - 1 - side, side)
    crops = padded[chosen[:, None, None], rows[:, :, None], columns[:, None, :]]
    return ((crops.float() - MEAN) / STD).permute(0, 3, 1, 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dir", type=Path)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("-b", "--batch-size", type=int, default=128)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    padded, labels = load(args.dir)
    model = CifarResNet(20).to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=1e-4, fused=True)
    order = torch.randperm(len(labels)).split(args.batch_size)

    start, images = time.perf_counter(), 0
    for step in range(args.steps):
        chosen = order[step % len(order)]
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(crop_and_flip(padded, chosen)), labels[chosen])
        loss.backward()
        optimizer.step()
        images += len(chosen)
        value = loss.item()
    print(json.dumps({"images_per_s": images / (time.perf_counter() - start), "loss": value,
                      "torch": torch.__version__}))  # fmt: skip


if __name__ == "__main__":
    main()
