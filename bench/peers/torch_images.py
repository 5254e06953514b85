"""torchvision's pipelines on an image folder: decode, RandomResizedCrop(224), flip, to a tensor. Prints a JSON object.

usage: python3 torch_images.py DIR --pipeline pil|v2 [--workers 2] [--passes 5]

pil: ImageFolder with its default loader, transforms of 2017's tutorials. v2: decode_jpeg and torchvision.transforms.v2
on uint8 tensors. Workers are processes; the clock starts with the second pass, when they are up.
"""

import argparse
import json
import time

import torch
from torchvision import datasets, io, transforms
from torchvision.transforms import v2


def pipeline(name: str) -> dict:
    if name == "pil":
        steps = [transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.PILToTensor()]
        return {"transform": transforms.Compose(steps)}
    steps = [v2.RandomResizedCrop(224, antialias=True), v2.RandomHorizontalFlip()]
    read = lambda path: io.decode_image(io.read_file(path), io.ImageReadMode.RGB)  # noqa: E731
    return {"transform": v2.Compose(steps), "loader": read}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dir")
    parser.add_argument("--pipeline", choices=["pil", "v2"], required=True)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--passes", type=int, default=5)
    args = parser.parse_args()
    torch.set_num_threads(1)
    photos = datasets.ImageFolder(args.dir, **pipeline(args.pipeline))
    order = list(range(len(photos))) * (args.passes + 1)
    loader = torch.utils.data.DataLoader(
        torch.utils.data.Subset(photos, order), batch_size=32, num_workers=args.workers, multiprocessing_context="fork"
    )
    seen, start = 0, 0.0
    for images, _ in loader:
        if start:
            seen += len(images)
        elif (seen := seen + len(images)) >= len(photos):
            seen, start = 0, time.perf_counter()
    print(json.dumps({"images_per_s": seen / (time.perf_counter() - start)}))


if __name__ == "__main__":
    main()
