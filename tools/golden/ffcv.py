"""Golden values of ffcv-imagenet's recipes: the side of training images and the learning rates of each epoch."""

import numpy as np
import torch

from golden.golden_file import GoldenFile

STEPS = 312  # of an epoch: 1,281,167 images, 4,096 a step, without what is left
SHOWN = (0, 100, 311)  # steps of an epoch


def side(epoch: int, least: int, largest: int, first: int, last: int) -> int:
    """That of get_resolution in train_imagenet.py."""
    if epoch <= first:
        return least
    if epoch >= last:
        return largest
    between = np.interp(epoch, [first, last], [least, largest])
    return int(np.round(between / 32)) * 32


def rates(epoch: int, epochs: int, lr: float, peak: int) -> list[float]:
    """Those of get_cyclic_lr and train_loop."""
    begin, end = np.interp([epoch, epoch + 1], [0, peak, epochs], [1e-4 * lr, lr, 0])
    return [float(np.interp(step, [0, STEPS], [begin, end])) for step in SHOWN]


def ffcv_epochs() -> GoldenFile:
    """By rn50_configs/rn50_*_epochs.yaml; then other ramps, whose sides may be halves of a multiple."""
    file = GoldenFile("ffcv_epochs", "f64")
    ramps = {16: (11, 13), 24: (17, 20), 32: (23, 27), 40: (29, 34), 56: (41, 48), 88: (65, 76)}
    for epochs, (first, last) in ramps.items():
        add(file, f"rn50_{epochs}", epochs, (160, 192, first, last))
        file.put(rates=torch.tensor([rates(epoch, epochs, 1.7, 2) for epoch in range(epochs)]))
    others = [(128, 224, 2, 14), (96, 160, 0, 4), (160, 192, 1, 3), (64, 96, 3, 3), (64, 64, 0, 2), (32, 288, 0, 16)]
    for ramp in others:
        add(file, "_".join(map(str, ramp)), 20, ramp)
    return file


def add(file: GoldenFile, name: str, epochs: int, ramp: tuple[int, int, int, int]) -> None:
    least, largest, first, last = ramp
    file.case(name, epochs=epochs, least=least, largest=largest, first=first, last=last)
    file.put(sides=torch.tensor([side(epoch, *ramp) for epoch in range(epochs)]))
