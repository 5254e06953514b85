"""Tutorial 002's baseline in PyTorch on real MNIST: the curve that Lockstep's training must overlay.

usage: python tools/baseline_torch.py MNIST_RAW_DIR [--seed 42] [--epochs 3] > tests/golden/baseline_seed42.json

ConvNet built right after manual_seed(seed); order of DistributedSampler(num_replicas=1, rank=0, seed=seed) with
set_epoch(e); batch 32; SGD 1e-4 without momentum; mean cross-entropy; pixels u8/255 in f32. Prints one JSON object.
"""

import argparse
import gzip
import hashlib
import json
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.data.distributed import DistributedSampler

from torch_models import ConvNet, param_sha256

BATCH = 32
LEARNING_RATE = 1e-4


def read_idx(directory: Path, name: str) -> np.ndarray:
    """The values of an IDX file of unsigned bytes, plain or .gz."""
    path = directory / name
    data = path.read_bytes() if path.exists() else gzip.decompress((directory / f"{name}.gz").read_bytes())
    dims = np.frombuffer(data, ">i4", count=data[3], offset=4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * data[3]).reshape(dims)


def load(directory: Path, split: str) -> tuple[Tensor, Tensor]:
    """Images (N, 1, 28, 28) f32 in [0, 1] and labels (N) i64."""
    images = torch.tensor(read_idx(directory, f"{split}-images-idx3-ubyte"))
    labels = torch.tensor(read_idx(directory, f"{split}-labels-idx1-ubyte"))
    return images.unsqueeze(1).float().div(255), labels.long()


@torch.no_grad()
def logits_of(model: ConvNet, images: Tensor) -> Tensor:
    model.eval()
    logits = torch.cat([model(chunk) for chunk in images.split(250)])
    model.train()
    return logits


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mnist_raw_dir", metavar="MNIST_RAW_DIR", type=Path)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()

    images, labels = load(args.mnist_raw_dir, "train")
    test_images, test_labels = load(args.mnist_raw_dir, "t10k")
    sampler = DistributedSampler(range(len(images)), num_replicas=1, rank=0, shuffle=True, seed=args.seed)
    torch.manual_seed(args.seed)
    model = ConvNet()
    initial_sha256 = param_sha256(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)

    first_losses: list[float] = []
    epochs = []
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        order = list(sampler)
        loss_sum = 0.0
        for batch in torch.tensor(order).split(BATCH):
            loss = F.cross_entropy(model(images[batch]), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            loss_sum += loss.item() * len(batch)
            if len(first_losses) < 5:
                first_losses.append(loss.item())
        order_sha256 = hashlib.sha256(",".join(map(str, order)).encode()).hexdigest()
        correct = int((logits_of(model, test_images).argmax(1) == test_labels).sum())
        epochs.append({"train_loss": loss_sum / len(order), "order_sha256": order_sha256, "test_correct": correct})

    result = {
        "script": "tools/baseline_torch.py",
        "torch_version": torch.__version__,
        "threads": torch.get_num_threads(),
        "seed": args.seed,
        "batch": BATCH,
        "lr": LEARNING_RATE,
        "initial_param_sha256": initial_sha256,
        "first_losses": first_losses,
        "epochs": epochs,
        "test_total": len(test_labels),
        "test_loss": F.cross_entropy(logits_of(model, test_images).double(), test_labels).item(),
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
