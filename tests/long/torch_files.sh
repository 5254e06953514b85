#!/usr/bin/env bash
# usage: tests/long/torch_files.sh MNIST PHOTOS [BIN]      default: build/release/bin; PYTHON names one with torchvision
# Weights of four sources (ours, torch.save's, DDP's with module., torchvision's) are evaluated to the count that
# PyTorch has of the same images in f32, and what `lockstep export` writes is loaded with weights_only and strictly.
set -euo pipefail
[ $# -ge 2 ] || { sed -n 2,4p "$0"; exit 2; }
root=$(cd "$(dirname "$0")/../.." && pwd)
mnist=$(realpath "$1") photos=$(realpath "$2") bin=${3:-$root/build/release/bin} python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

"$bin/train_convnet" "$mnist" --dataset mnist --max-steps 100 --normalize none -o run > run.log
ours=run/checkpoints/last.safetensors
"$bin/lockstep" export $ours ours.pt > export.log
"$bin/lockstep" export $ours prefixed.pth --prefix module. >> export.log

PYTHONPATH=$root/tools "$python" - "$mnist" "$photos" << 'PYTHON'
import gzip, json, sys
from pathlib import Path

import torch
import torchvision
from torch import nn
from torchvision import transforms as T

from torch_models import ConvNet

torch.manual_seed(0)
mnist, photos = map(Path, sys.argv[1:])


def idx(name, header):
    plain = next(path for path in mnist.rglob(name + "*") if path.suffix in ("", ".gz"))
    data = plain.read_bytes()
    data = gzip.decompress(data) if plain.suffix == ".gz" else data
    return torch.frombuffer(bytearray(data[header:]), dtype=torch.uint8)


@torch.no_grad()
def count(model, batches):
    model.eval()
    correct = total = loss = 0
    for images, labels in batches:
        logits = model(images)
        loss += nn.functional.cross_entropy(logits, labels, reduction="sum").double().item()
        correct += (logits.argmax(1) == labels).sum().item()
        total += len(labels)
    return {"correct": correct, "total": total, "loss": loss / total}


labels = idx("t10k-labels-idx1-ubyte", 8).long()
images = idx("t10k-images-idx3-ubyte", 16).reshape(-1, 1, 28, 28).float() / 255
digits = list(zip(images.split(250), labels.split(250)))
model = ConvNet()
model.load_state_dict(torch.load("ours.pt", weights_only=True))
parallel = nn.DataParallel(ConvNet())
parallel.load_state_dict(torch.load("prefixed.pth", weights_only=True))
torch.save(model.state_dict(), "torch.pth")
torch.save({"epoch": 1, "arch": "convnet", "state_dict": parallel.state_dict()}, "ddp.pth.tar")
torch.save({"model": model.half().state_dict()}, "half.pt")
expected = {
    "convnet": count(parallel.module, digits),
    "half": count(model.float(), digits),  # what 16 bits left
}

net = torchvision.models.resnet18(num_classes=2)
normalize = T.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
transform = T.Compose([T.Resize(256), T.CenterCrop(224), T.ToTensor(), normalize])
folder = torchvision.datasets.ImageFolder(photos / "val", transform)
pictures = list(torch.utils.data.DataLoader(folder, 50, shuffle=False))
net.train()
optimizer = torch.optim.SGD(net.parameters(), 0.01)
for pixels, kinds in torch.utils.data.DataLoader(folder, 16, shuffle=True):
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(pixels), kinds).backward()
    optimizer.step()
expected["resnet18"] = count(net, pictures)
torch.save(net.state_dict(), "torchvision.pth")
json.dump(expected, open("expected.json", "w"))
PYTHON

compare() {  # file, which expectation
  "$python" - "$1" "$2" << 'PYTHON'
import json, sys

got, want = json.load(open("e/run.json"))["final"], json.load(open("expected.json"))[sys.argv[2]]
assert (got["correct"], got["total"]) == (want["correct"], want["total"]), (got, want)
assert abs(got["loss"] - want["loss"]) <= 1e-5 * want["loss"], (got, want)
print(f"{sys.argv[1]}: {got['correct']} of {got['total']}, as PyTorch")
PYTHON
}
for file in "$ours" ours.pt prefixed.pth torch.pth ddp.pth.tar half.pt; do
  "$bin/train_convnet" "$mnist" --dataset mnist --normalize none -e --pretrained "$file" -o e --overwrite > e.log
  compare "$file" "$([ "$file" = half.pt ] && echo half || echo convnet)"
done
mkdir val_only && ln -s "$photos/val" val_only/val
"$bin/train_resnet" val_only -a resnet18 -e --pretrained torchvision.pth -o e --overwrite > e.log
compare torchvision.pth resnet18
echo "weights of four sources are evaluated to PyTorch's counts"
