"""Golden values of changes to training images, and of evaluations over views."""

import torch
import torch.nn.functional as F
from torch import Tensor

from golden.golden_file import GoldenFile, randn


def image_views() -> GoldenFile:
    """Crops of a padded image, and a linear network's mean over the views of airbench94's three levels of TTA."""
    file = GoldenFile("image_views", "f64")
    images = torch.randint(0, 256, (3, 2, 5, 6), dtype=torch.uint8)
    for name, mode, pad, top, left, flip in [
        ("black", "constant", 3, 1, 5, False), ("black_mirrored", "constant", 2, 4, 0, True),
        ("reflect", "reflect", 4, 0, 8, False), ("reflect_mirrored", "reflect", 4, 7, 1, True),
    ]:  # fmt: skip
        file.case(name, pad=pad, reflect=mode == "reflect", top=top, left=left, flip=flip)
        crop = F.pad(images.double(), (pad,) * 4, mode)[:, :, top : top + 5, left : left + 6]
        file.put(images=images, crop=(crop.flip(-1) if flip else crop).to(torch.uint8))

    weight, bias = randn(4, 2, 5, 6), randn(4)

    def net(pixels: Tensor) -> Tensor:
        return F.linear(((pixels / 255 - 0.25) / 0.5).flatten(1), weight.flatten(1), bias)

    def both(pixels: Tensor) -> Tensor:
        return 0.5 * net(pixels) + 0.5 * net(pixels.flip(-1))

    pixels = images.double()
    padded = F.pad(pixels, (1,) * 4, "reflect")
    moved = 0.5 * both(padded[:, :, 0:5, 0:6]) + 0.5 * both(padded[:, :, 2:7, 2:8])
    file.case("logits")
    file.put(images=images, weight=weight, bias=bias)
    file.put(none=net(pixels), flip=both(pixels), shift=0.5 * both(pixels) + 0.5 * moved)
    return file
