"""What golden files hold, and helpers that fill them."""

import json
import zlib
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import save
from torch import Tensor


class GoldenFile:
    """Collects the cases of one file. put() adds tensors to the case opened last."""

    def __init__(self, name: str, arithmetic: str) -> None:
        self.name, self.arithmetic = name, arithmetic
        self.tensors: dict[str, Tensor] = {}
        self.cases: list[dict] = []
        torch.manual_seed(zlib.crc32(name.encode()))

    def case(self, name: str, **params) -> None:
        self.cases.append({"name": name, **params})

    def put(self, **tensors: Tensor) -> None:
        for key, value in tensors.items():
            value = value.detach().float() if value.is_floating_point() else value
            self.tensors[f"{self.cases[-1]['name']}.{key}"] = value.clone(memory_format=torch.contiguous_format)

    def write(self, out_dir: Path) -> None:
        metadata = {
            "torch_version": torch.__version__,
            "script": "tools/make_golden.py",
            "arithmetic": self.arithmetic,
            "cases": json.dumps(self.cases),
        }
        data = save(self.tensors, metadata)
        end = 8 + int.from_bytes(data[:8], "little")
        header = json.loads(data[8:end]) | {"__metadata__": metadata}  # save() shuffles the metadata
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        (out_dir / f"{self.name}.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data[end:])


def randn(*shape: int) -> Tensor:
    """Normal f32 values, held in double so that what is computed from them is."""
    return torch.randn(*shape).double()


def put_op(file: GoldenFile, op: Callable[..., Tensor], draw_grad: Callable[..., Tensor], **inputs: Tensor) -> Tensor:
    """Puts the inputs, out = op(**inputs), grad_out = draw_grad(*out.shape) and the gradient of each input."""
    leaves = {name: value.detach().clone().requires_grad_() for name, value in inputs.items()}
    out = op(**leaves)
    grad_out = draw_grad(*out.shape)
    grads = torch.autograd.grad(out, list(leaves.values()), grad_out)
    grad_names = ("grad_in" if name == "input" else f"grad_{name}" for name in leaves)
    file.put(**leaves, grad_out=grad_out, out=out, **dict(zip(grad_names, grads, strict=True)))
    return out


def window(kernel: tuple[int, int], stride: tuple[int, int], pad: tuple[int, int]) -> dict[str, int]:
    """The parameters of a sliding window, for a case."""
    pairs = {"kernel": kernel, "stride": stride, "pad": pad}
    return {f"{key}_{axis}": size for key, pair in pairs.items() for axis, size in zip("hw", pair, strict=True)}


def assert_near(got: Tensor, documented: list[float]) -> None:
    torch.testing.assert_close(got.detach().float().flatten(), torch.tensor(documented), rtol=1e-6, atol=1e-7)
