#!/usr/bin/env bash
# usage: tests/long/torch_logits.sh PHOTOS [BIN]     default: build/release/bin; PYTHON names one with torchvision, timm
# ResNet-50 of torchvision, with the tests of its weights IMAGENET1K_V2, and of timm, with those of resnet50.a1_in1k and
# a3_in1k: the logits of -e --save-logits on PHOTOS/val are PyTorch's to 1e-4 of their largest magnitude, on 1 and 2
# ranks the same bytes. Nothing is downloaded: weights are drawn, and batch norm's statistics are those of the photos.
set -euo pipefail
[ $# -ge 1 ] || { sed -n 2,5p "$0"; exit 2; }
root=$(cd "$(dirname "$0")/../.." && pwd)
photos=$(realpath "$1") bin=$(realpath "${2:-$root/build/release/bin}") python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

"$python" - "$photos" << 'PYTHON'
import math, sys
from itertools import islice
from pathlib import Path

import timm
import torch
import torchvision
from torch import nn

photos = Path(sys.argv[1])


def batches(split, transform, images):
    folder = torchvision.datasets.ImageFolder(photos / split, transform)
    shuffled = torch.Generator().manual_seed(0) if split == "train" else None
    return torch.utils.data.DataLoader(folder, images, shuffle=split == "train", generator=shuffled)


@torch.no_grad()
def settle(net, transform):
    """Norms whose factors are not all alike, and statistics over four batches of training photos."""
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.weight.uniform_(0.5, 1.5)
            module.bias.normal_(0, 0.2)
            module.momentum = None  # the mean over all batches
    net.train()
    for images, _ in islice(batches("train", transform, 16), 4):
        net(images)
    return net.eval()


@torch.no_grad()
def logits_of(net, transform, most=None):
    seen = [(net(images), labels) for images, labels in islice(batches("val", transform, 16), most)]
    return torch.cat([logits for logits, _ in seen]), torch.cat([labels for _, labels in seen])


def put(name, net, transforms, flags):
    """`transforms`: that of the network, and one that resizes otherwise, to see what that costs."""
    settle(net, transforms[0])
    logits, labels = logits_of(net, transforms[0])
    otherwise, _ = logits_of(net, transforms[1], 1)
    torch.save(net.state_dict(), f"{name}.pth")
    torch.save({"logits": logits, "labels": labels, "otherwise": otherwise}, f"{name}.want")
    Path(f"{name}.flags").write_text(" ".join(flags) + "\n")


torch.manual_seed(0)
of_v2 = torchvision.models.ResNet50_Weights.IMAGENET1K_V2.transforms
cubic = torchvision.transforms.InterpolationMode.BICUBIC
net = torchvision.models.resnet50(num_classes=1000)
folders = sorted(folder.name for folder in (photos / "val").iterdir())
names = folders + [f"absent{i}" for i in range(len(folders), 1000)]
Path("names.txt").write_text("".join(f"{name}\n" for name in names))
flags = ["--val-resize-size", "232", "--val-crop-size", "224", "--class-names", "names.txt"]
put("torchvision_v2", net, (of_v2(), of_v2(interpolation=cubic)), flags)
for name in ("resnet50.a1_in1k", "resnet50.a3_in1k"):
    net = timm.create_model(name, pretrained=False, num_classes=2)
    config = timm.data.resolve_data_config({}, model=net, use_test_size=True)
    side = config["input_size"][1]
    resized = math.floor(side / config["crop_pct"])
    flags = ["--val-resize-size", resized, "--val-crop-size", side, "--interpolation", config["interpolation"]]
    transforms = [timm.data.create_transform(**{**config, **kind}) for kind in ({}, {"interpolation": "bilinear"})]
    put(name.replace(".", "_"), net, transforms, map(str, flags))
PYTHON

mkdir val_only && ln -s "$photos/val" val_only/val
for name in torchvision_v2 resnet50_a1_in1k resnet50_a3_in1k; do
  read -ra flags < $name.flags
  for ranks in 1 2; do
    "$root/scripts/run" -np $ranks "$bin/train_resnet" val_only -a resnet50 -e --pretrained $name.pth "${flags[@]}" \
      --val-batch-size 20 --save-logits $name.$ranks.safetensors -o e --overwrite > e.log
  done
  cmp $name.1.safetensors $name.2.safetensors
  "$python" - $name "${flags[*]}" << 'PYTHON'
import json, sys

import torch
from safetensors.torch import load_file

name, flags = sys.argv[1:]
got, want = load_file(f"{name}.1.safetensors"), torch.load(f"{name}.want")
assert torch.equal(got["labels"], want["labels"])
assert all(torch.isfinite(logits).all() for logits in (got["logits"], want["logits"]))


def difference(logits):
    return ((logits - want["logits"][: len(logits)]).abs().max() / want["logits"].abs().max()).item()


ours, otherwise = difference(got["logits"]), difference(want["otherwise"])
print(f"{name} ({flags}): {ours:.1e} over {len(got['labels'])} photos; resized otherwise it would be {otherwise:.1e}")
assert ours <= 1e-4, ours
assert otherwise > 1e-3, "these weights do not tell how photos are resized"
correct = (got["logits"].argmax(1) == got["labels"]).sum().item()
assert correct == json.load(open("e/run.json"))["final"]["correct"]
PYTHON
done
echo "three networks' logits are PyTorch's to 1e-4, and the same bytes on 2 ranks"
