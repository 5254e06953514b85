"""Golden values of changes to training images, and of evaluations over views."""

from itertools import product
from unittest import mock

import torch
import torch.nn.functional as F
from PIL import Image
from timm.data import auto_augment
from torch import Tensor
from torchvision.transforms import InterpolationMode, RandomErasing, TrivialAugmentWide, autoaugment, v2
from torchvision.transforms.functional import pil_to_tensor

from golden.golden_file import GoldenFile, randn

SEEDS_OF_BOXES = 12


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


def image_boxes() -> GoldenFile:
    """Boxes of torchvision's RandomErasing and CutMix, and what they do to images."""
    file = GoldenFile("image_boxes", "f32")
    for height, width in [(32, 32), (5, 6), (40, 224)]:
        file.case(f"erased_{height}x{width}", height=height, width=width)
        boxes = []
        for seed in range(SEEDS_OF_BOXES):
            torch.manual_seed(seed)
            top, left, rows, columns, value = RandomErasing.get_params(
                torch.zeros(1, height, width), (0.02, 0.33), (0.3, 3.3), [0.0]
            )
            none = value.shape == (1, height, width)
            boxes.append([0, 0, 0, 0] if none else [top, left, rows, columns])
        file.put(boxes=torch.tensor(boxes, dtype=torch.int32))

    images = torch.randn(2, 3, 7, 9)
    file.case("erase")
    box = [2, 3, 4, 5]
    file.put(images=images, boxes=torch.tensor([box, [0, 0, 0, 0]], dtype=torch.int32))
    file.put(out=torch.stack([v2.functional.erase(images[0], *box, torch.zeros(1)), images[1]]))

    cut_mix = v2.CutMix(alpha=1.0, num_classes=2)
    for number, (share, x, y) in enumerate(
        [(0.5, 4, 3), (0.1, 0, 0), (0.75, 8, 6), (0.999, 2, 5), (0.0, 5, 1), (1.0, 3, 3), (0.36, 8, 0)]
    ):
        draws = iter([torch.tensor([x]), torch.tensor([y])])
        labels = torch.tensor([0, 1])
        sampled = mock.patch.object(cut_mix._dist, "sample", lambda _: torch.tensor(share))
        drawn = mock.patch("torch.randint", lambda *args, **kwargs: next(draws))
        with sampled, drawn:
            left, top, right, bottom = cut_mix.make_params([images])["box"]
        draws = iter([torch.tensor([x]), torch.tensor([y])])
        with sampled, drawn:
            out, mixed = cut_mix(images, labels)
        box = {"top": top, "left": left, "height": bottom - top, "width": right - left}
        file.case(f"cut_{number}", share=share, x=x, y=y, **box)
        file.put(images=images, out=out, mix=mixed[0, 0])
    return file


def trivial_augment() -> GoldenFile:
    """The strengths of TrivialAugmentWide's operations, and what they do to Pillow's images."""
    file = GoldenFile("trivial_augment", "f32")
    side = 16
    slopes = torch.arange(side).view(1, side, 1) * 9 + torch.arange(side) * torch.tensor([3, 5, -4]).view(3, 1, 1)
    pixels = (slopes + 70 + torch.randint(0, 40, (3, side, side))).clamp(20, 255).to(torch.uint8)
    image = Image.fromarray(pixels.permute(1, 2, 0).numpy())
    for name, (magnitudes, is_signed) in TrivialAugmentWide()._augmentation_space(31).items():
        file.case(name, is_signed=is_signed)
        file.put(magnitudes=magnitudes.float().expand(31), image=pixels[None])
        for bin in (0, 4, 11, 20, 30) if magnitudes.ndim else (0,):
            for sign in (1, -1) if is_signed else (1,):
                magnitude = sign * float(magnitudes[bin] if magnitudes.ndim else 0)
                changed = autoaugment._apply_op(image, name, magnitude, InterpolationMode.NEAREST, None)
                file.put(**{f"bin{bin}{'negative' if sign < 0 else ''}": pil_to_tensor(changed)[None]})
                if name.startswith(("Rotate", "Shear", "Translate")):
                    changed = autoaugment._apply_op(image, name, magnitude, InterpolationMode.BILINEAR, None)
                    file.put(**{f"bin{bin}{'negative' if sign < 0 else ''}bilinear": pil_to_tensor(changed)[None]})
    return file


def rand_augment() -> GoldenFile:
    """What timm's RandAugment makes of Pillow's images at a level, with each interpolation and each sign."""
    file = GoldenFile("rand_augment", "f32")
    height, width = 10, 13
    slopes = torch.arange(height).view(1, height, 1) * 9 + torch.arange(width) * torch.tensor([3, 5, -4]).view(3, 1, 1)
    pixels = (slopes + 70 + torch.randint(0, 40, (3, height, width))).clamp(20, 255).to(torch.uint8)
    image = Image.fromarray(pixels.permute(1, 2, 0).numpy())
    plain = auto_augment._RAND_TRANSFORMS
    for op in plain + [op for op in auto_augment._RAND_INCREASING_TRANSFORMS if op not in plain]:
        moves = op.startswith(("Rotate", "Shear", "Translate"))
        file.case(op)
        file.put(image=pixels[None])
        for level, negative, bicubic in product((0.0, 3.3, 7.0, 10.0), (False, True), (False, True) if moves else (0,)):
            filters = Image.Resampling.BICUBIC if bicubic else Image.Resampling.BILINEAR
            hparams = {"img_mean": (124, 116, 104), "interpolation": filters}
            changed = auto_augment.AugmentOp(op, prob=1.0, magnitude=level, hparams=hparams)
            if op.startswith("Posterize") and changed.level_fn(level, hparams) == (0,):
                continue  # Pillow 13 refuses it
            with mock.patch("random.random", lambda negative=negative: 0.75 if negative else 0.25):
                out = pil_to_tensor(changed(image))[None]
            file.put(**{f"{level:g}{'n' if negative else 'p'}{'c' if bicubic else 'l'}": out})
    return file
