"""Image files and what Pillow makes of them; resizing by Pillow."""

import io
from itertools import product

import numpy as np
import torch
import torchvision.transforms.functional as F
from PIL import Image
from torch import Tensor

from golden.golden_file import GoldenFile


def flat(image: Image.Image) -> Tensor:
    return torch.from_numpy(np.asarray(image.convert("RGB")).copy()).flatten()


def picture(width: int, height: int) -> Image.Image:
    """Smooth colors, edges and noise."""
    y, x = np.mgrid[0:height, 0:width]
    waves = [127 + 100 * np.sin(x / 5 + c) * np.cos(y / 7 - c) for c in range(3)]
    noise = torch.randint(-20, 21, (height, width, 3)).numpy()
    pixels = np.stack(waves, axis=2) + noise
    pixels[height // 3 : height // 2, width // 4 : width // 2] = (250, 10, 60)
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8))


def image_files() -> GoldenFile:
    """file: the bytes of a JPEG or PNG; rgb: its pixels, HWC, by Pillow's convert("RGB")."""
    file = GoldenFile("image_files", "integers")

    def add(name: str, image: Image.Image, kind: str, **options) -> None:
        stream = io.BytesIO()
        image.save(stream, kind, **options)
        decoded = Image.open(stream)
        file.case(name, width=image.width, height=image.height)
        file.put(file=torch.frombuffer(bytearray(stream.getvalue()), dtype=torch.uint8), rgb=flat(decoded))

    photo = picture(53, 37)
    for sampling, name in enumerate(("444", "422", "420")):
        add(f"jpeg_{name}", photo, "JPEG", subsampling=sampling, quality=90)
    add("jpeg_progressive", photo, "JPEG", progressive=True)
    add("jpeg_gray", photo.convert("L"), "JPEG")
    add("jpeg_cmyk", photo.convert("CMYK"), "JPEG")
    orientation = b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0"
    add("jpeg_rotated_by_exif", photo, "JPEG", exif=orientation)
    add("png_rgb", photo, "PNG")
    alpha = photo.convert("RGBA")
    alpha.putalpha(photo.convert("L"))
    add("png_alpha", alpha, "PNG")
    add("png_palette", photo.quantize(17), "PNG")
    add("png_palette_with_alpha", photo.quantize(17), "PNG", transparency=3)
    add("png_gray", photo.convert("L"), "PNG")
    add("png_gray_alpha", alpha.convert("LA"), "PNG")
    add("png_one_bit", photo.convert("1"), "PNG")
    deep = Image.fromarray((np.arange(37 * 53, dtype=np.uint16) * 9).reshape(37, 53))
    add("png_deep_gray", deep, "PNG")
    return file


def image_centers() -> GoldenFile:
    """file: a PNG; rows: 0, 111 and 223 of torchvision's Resize(256) and CenterCrop(224)."""
    file = GoldenFile("image_centers", "integers")
    for name, size in {"wide": (71, 40), "high": (40, 71), "odd": (150, 129), "square": (9, 9)}.items():
        image, stream = picture(*size), io.BytesIO()
        image.save(stream, "PNG")
        center = np.asarray(F.center_crop(F.resize(image, 256), [224, 224]))
        file.case(name)
        file.put(
            file=torch.frombuffer(bytearray(stream.getvalue()), dtype=torch.uint8),
            rows=torch.from_numpy(center[[0, 111, 223]].copy()).flatten(),
        )
    return file


def overshooting(image: Image.Image) -> Image.Image:
    """The left half as it is, the right one black and white at random: bicubic goes beyond both."""
    pixels = np.asarray(image).copy()
    half = pixels.shape[1] // 2
    pixels[:, half:] = torch.randint(0, 2, (pixels.shape[0], pixels.shape[1] - half, 1)).numpy() * 255
    return Image.fromarray(pixels)


def image_resizes() -> GoldenFile:
    """picture, overshooting: HWC of 3 channels; resized: a box of one by Pillow, columns first. In one call Pillow may
    take rows first, which differs by its rounding between the passes, and by what bicubic cuts off there."""
    file = GoldenFile("image_resizes", "integers")
    image = picture(61, 43)
    images = {"picture": image, "overshooting": overshooting(image)}
    boxes = {  # left, top, width, height
        "whole": (0, 0, 61, 43),
        "part": (7, 5, 40, 31),
        "row": (3, 11, 50, 1),
        "pixel": (60, 42, 1, 1),
    }
    sizes = {"smaller": (17, 12), "larger": (97, 80), "same_width": (61, 20), "thin": (1, 43), "wide": (200, 3)}
    kinds = {"bilinear": (Image.Resampling.BILINEAR, "picture"), "bicubic": (Image.Resampling.BICUBIC, "overshooting")}
    for (kind, (by, of)), (box_name, box), (size_name, size) in product(kinds.items(), boxes.items(), sizes.items()):
        left, top, width, height = box
        file.case(
            f"{kind}_{box_name}_{size_name}", by=kind, of=of,
            left=left, top=top, width=width, height=height, to_width=size[0], to_height=size[1],
        )  # fmt: skip
        crop = images[of].crop((left, top, left + width, top + height))
        resized = flat(crop.resize((size[0], height), by).resize(size, by))
        at_once = (resized.int() - flat(crop.resize(size, by)).int()).abs().max()
        assert at_once <= (1 if kind == "bilinear" else 255 if size[1] * width < size[0] * height else 0)
        file.put(resized=resized)
    for name, whole in images.items():
        file.case(name, width=whole.width, height=whole.height)
        file.put(image=flat(whole))
    return file
