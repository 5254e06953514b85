"""Converts weights that PyTorch saved to a .safetensors file with the same names, for --pretrained.

usage: python3 tools/pth_to_safetensors.py IN.pth OUT.safetensors

Takes a state_dict, or a checkpoint that holds one as "state_dict", "model" or "model_state_dict"; "module." in front
of all names, as DataParallel puts it there, is dropped. Needs PyTorch, and loads with weights_only: no code is run.
"""

import json
import os
import pickle
import struct
import sys

PREFIX = "module."
DTYPES = {"float32": "F32", "float16": "F16", "bfloat16": "BF16", "uint8": "U8", "int32": "I32", "int64": "I64"}
SIZES = {"I64": 8, "F32": 4, "I32": 4, "F16": 2, "BF16": 2, "U8": 1}


class Refused(Exception):
    """The file holds no weights in a known format."""


def is_tensor(value) -> bool:
    return hasattr(value, "dtype") and hasattr(value, "shape")


def pick_state_dict(loaded) -> dict:
    """The tensors by name."""
    if not isinstance(loaded, dict):
        raise Refused(f"it holds a {type(loaded).__name__}, expected a state_dict")
    for key in ("state_dict", "model", "model_state_dict"):
        if isinstance(loaded.get(key), dict):
            loaded = loaded[key]
            break
    others = [name for name, value in loaded.items() if not is_tensor(value)]
    if others or not loaded:
        raise Refused(f"'{others[0]}' is no tensor" if others else "it holds no tensor")
    return loaded


def without_prefix(tensors: dict) -> dict:
    if not all(name.startswith(PREFIX) for name in tensors):
        return tensors
    return {name[len(PREFIX) :]: tensor for name, tensor in tensors.items()}


def dtype_name(tensor) -> str:
    name = str(tensor.dtype).removeprefix("torch.")
    if name not in DTYPES:
        raise Refused(f"its type {name} is not known here")
    return DTYPES[name]


def file_bytes(tensors: dict, to_bytes) -> bytes:
    """A whole .safetensors file; to_bytes(tensor) gives a tensor's elements in row-major order."""
    header, data = {"__metadata__": {"format": "pt"}}, []
    offset = 0
    for name in sorted(tensors, key=lambda n: (-SIZES[dtype_name(tensors[n])], n)):  # keeps all aligned
        content = to_bytes(tensors[name])
        header[name] = {
            "dtype": dtype_name(tensors[name]),
            "shape": list(tensors[name].shape),
            "data_offsets": [offset, offset + len(content)],
        }
        offset += len(content)
        data.append(content)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(data)


def convert(source: str, target: str) -> int:
    try:
        import torch
    except ImportError:
        raise Refused("PyTorch is missing: pip install torch") from None

    def to_bytes(tensor) -> bytes:
        return tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()

    try:
        loaded = torch.load(source, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        raise Refused(
            "it holds more than tensors, such as a whole model, which PyTorch loads by running code\n"
            "  try: torch.save(model.state_dict(), FILE) in the program that has the model"
        ) from None
    except RuntimeError as error:
        raise Refused(str(error).splitlines()[0]) from None
    tensors = without_prefix(pick_state_dict(loaded))
    temporary = f"{target}.tmp"
    with open(temporary, "wb") as file:
        file.write(file_bytes(tensors, to_bytes))
    os.replace(temporary, target)
    return len(tensors)


def main(arguments: list[str]) -> int:
    if len(arguments) != 2 or arguments[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        count = convert(*arguments)
    except (Refused, OSError) as error:
        print(f"pth_to_safetensors: {arguments[0]}: {error}", file=sys.stderr)
        return 1
    print(f"{arguments[1]}: {count} tensors")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
