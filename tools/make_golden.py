"""Writes the small golden files that the C++ tests read, with PyTorch as the reference.

usage: python tools/make_golden.py [OUT_DIR [NAME...]]      (default tests/golden, all files)

Needs torch, torchvision, timm, numpy, Pillow and safetensors. tools/golden/ holds what is put into the files.

Each OUT_DIR/<name>.safetensors holds tensors named <case>.<tensor> in PyTorch's layout (NCHW, OIHW), and the metadata
  torch_version  what computed the file
  script         this file's path in the repository
  arithmetic     f64: computed in double from the stored f32 inputs and rounded once to f32
                 f32: PyTorch's own f32 arithmetic
  cases          JSON array, one object a case: "name" and the case's parameters
torch_files is a folder of files of torch.save instead.
Documented vectors are asserted: a PyTorch that disagrees with them writes no file.
"""

import argparse
from pathlib import Path

import torch

from golden.airbench import airbench_gradients, airbench_init, airbench_steps
from golden.augmentations import image_boxes, image_views, rand_augment, trivial_augment
from golden.ffcv import ffcv_epochs
from golden.images import image_centers, image_files, image_resizes
from golden.networks import models
from golden.numbers import cast, repeat_sampler, rng
from golden.ops import (
    adaptive_avg_pool2d, batch_norm, binary_cross_entropy, channel_gate, conv2d, cross_entropy, depthwise_conv2d, gelu,
    global_avg_pool, linear, max_pool2d, relu, subsample_pad,
)  # fmt: skip
from golden.optimizers import adam, lamb, lookahead_airbench, loss_scale, muon, param_groups, sgd
from golden.photo_networks import photo_network_gradients, photo_network_init
from golden.recipes import recipe_rates
from golden.resnets import drop_path, resnet_gradients, resnet_init, resnet_losses
from golden.torch_files import torch_files

FILES = [
    conv2d, depthwise_conv2d, linear, batch_norm, relu, gelu, max_pool2d, global_avg_pool, adaptive_avg_pool2d,
    channel_gate, subsample_pad, cross_entropy, binary_cross_entropy,
    sgd, adam, param_groups, lookahead_airbench, muon, lamb, loss_scale, rng, repeat_sampler, cast,
    image_files, image_centers, image_resizes, image_views, image_boxes, trivial_augment, rand_augment,
    models, drop_path, resnet_init, resnet_gradients, resnet_losses,
    photo_network_init, photo_network_gradients, airbench_init, airbench_gradients, airbench_steps, ffcv_epochs,
    recipe_rates, torch_files,
]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out_dir", metavar="OUT_DIR", nargs="?", type=Path, default=Path("tests/golden"))
    parser.add_argument("names", metavar="NAME", nargs="*")
    args = parser.parse_args()
    if unknown := set(args.names) - {make.__name__ for make in FILES}:
        parser.error(f"no such file: {', '.join(sorted(unknown))}")
    args.out_dir.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    for make in FILES:
        if args.names and make.__name__ not in args.names:
            continue
        file = make()
        file.write(args.out_dir)
        print(f"{file.name}: {len(file.cases)} cases, {len(file.tensors)} tensors")


if __name__ == "__main__":
    main()
