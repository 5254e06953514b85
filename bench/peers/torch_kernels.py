"""PyTorch's ops on a CUDA device, cuDNN's among them: the peers of bench_kernels' cases. Prints one JSON object.

usage: python3 torch_kernels.py [--device cuda] [--rehearsal]      --rehearsal: once, on one image; runs on a CPU too

Case "<op>/<dtype>/<shape>", the median of 30 calls in microseconds by events, each with a cold L2 cache, tensors in
channels-last. A backward pass is the time of autograd's for one op; of convolutions and linear layers that of each
gradient. f32 is f32, not TF32, as ours is.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
STAGES = [(256, 64, 112, 112), (256, 256, 56, 56), (256, 512, 28, 28), (256, 1024, 14, 14), (256, 2048, 7, 7)]
# conv_bench.cpp's: images, C, height and width, K, R and S, stride.
CONVOLUTIONS = [
    (64, 1, 28, 16, 5, 1),
    (64, 16, 14, 32, 5, 1),
    (256, 3, 224, 64, 7, 2),
    (256, 64, 56, 64, 3, 1),
    (256, 64, 56, 256, 1, 1),
    (256, 256, 56, 64, 1, 1),
    (256, 128, 56, 128, 3, 2),
    (256, 128, 28, 128, 3, 1),
    (256, 256, 56, 512, 1, 2),
    (256, 256, 14, 256, 3, 1),
    (256, 1024, 14, 256, 1, 1),
    (256, 512, 7, 512, 3, 1),
    (256, 1024, 14, 2048, 1, 2),
]
LAYERS = [(64, 1568, 10), (256, 512, 1000), (256, 2048, 1000)]  # linear_bench.cpp's: images, features in and out
SCRATCH_BYTES = 256 << 20


class Timer:
    def __init__(self, device: str, rehearsal: bool):
        self.device, self.rehearsal = device, rehearsal
        self.calls = 1 if rehearsal else 30
        self.scratch = torch.empty(1 if rehearsal else SCRATCH_BYTES, dtype=torch.uint8, device=device)

    def median_us(self, op: Callable[[], object]) -> float:
        op()
        return round(statistics.median(self.once(op) for _ in range(self.calls)), 2)

    def once(self, op: Callable[[], object]) -> float:
        self.scratch.zero_()
        if self.device == "cpu":
            start = time.perf_counter()
            op()
            return (time.perf_counter() - start) * 1e6
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        op()
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end) * 1e3

    def random(self, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        values = torch.rand(shape, device=self.device).mul_(2).sub_(1).to(dtype)
        return values.contiguous(memory_format=torch.channels_last) if len(shape) == 4 else values


def forward_and_backward(timer: Timer, op: Callable[..., Tensor], *inputs: Tensor) -> tuple[float, float]:
    """Times of op(*inputs), recording, and of its backward pass to all inputs that are floats."""
    leaves = [x.detach().requires_grad_() for x in inputs]
    out = op(*leaves)
    grad = torch.rand_like(out)
    forward = timer.median_us(lambda: op(*leaves))
    return forward, timer.median_us(lambda: torch.autograd.grad(out, leaves, grad, retain_graph=True))


def batch_norm_relu(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.relu(F.batch_norm(x, None, None, weight, bias, training=True))


def batch_norm_add_relu(x: Tensor, weight: Tensor, bias: Tensor, residual: Tensor) -> Tensor:
    return F.relu(F.batch_norm(x, None, None, weight, bias, training=True) + residual)


def activations(timer: Timer) -> Iterator[tuple[str, float]]:
    for dtype_name, dtype in DTYPES.items():
        for full in STAGES:
            shape = (2 if timer.rehearsal else full[0], *full[1:])
            case = f"{dtype_name}/{'x'.join(map(str, full))}"
            x, residual = timer.random(shape, dtype), timer.random(shape, dtype)
            weight, bias = timer.random((shape[1],), torch.float32), timer.random((shape[1],), torch.float32)
            for op, inputs, name in (
                (F.relu, (x,), "relu{}"),
                (batch_norm_relu, (x, weight, bias), "batch_norm_shard{}"),
                (batch_norm_add_relu, (x, weight, bias, residual), "batch_norm_shard{}_residual"),
                (lambda t: F.max_pool2d(t, 3, 2, 1), (x,), "max_pool2d{}"),
                (lambda t: F.adaptive_avg_pool2d(t, 1), (x,), "global_avg_pool{}"),
            ):
                for direction, us in zip(("_forward", "_backward"), forward_and_backward(timer, op, *inputs)):
                    yield f"{name.format(direction)}/{case}", us


def convolutions(timer: Timer) -> Iterator[tuple[str, float]]:
    for dtype_name, dtype in DTYPES.items():
        for n, c, size, k, window, stride in CONVOLUTIONS:
            case = f"{dtype_name}/{n}x{c}x{size}x{k}x{window}x{stride}"
            x = timer.random((2 if timer.rehearsal else n, c, size, size), dtype)
            weight = timer.random((k, c, window, window), dtype)
            bias = timer.random((k,), dtype) if window == 5 else None  # ConvNet's alone have one
            place = ([stride] * 2, [window // 2] * 2, [1, 1])
            yield f"conv2d_forward/{case}", timer.median_us(lambda: F.conv2d(x, weight, bias, *place))
            rest = (x, weight, None if bias is None else [k], *place, False, [0, 0], 1)
            grad = timer.random(tuple(F.conv2d(x, weight, bias, *place).shape), dtype)
            for name, wanted in (("data", [True, False, False]), ("weight", [False, True, bias is not None])):
                us = timer.median_us(lambda: torch.ops.aten.convolution_backward(grad, *rest, wanted))
                yield f"conv2d_backward_{name}/{case}", us


def linear_layers(timer: Timer) -> Iterator[tuple[str, float]]:
    for dtype_name, dtype in DTYPES.items():
        for n, features, k in LAYERS:
            case = f"{dtype_name}/{n}x{features}x{k}"
            rows = 2 if timer.rehearsal else n
            x, weight = timer.random((rows, features), dtype), timer.random((k, features), dtype)
            bias, grad = timer.random((k,), dtype), timer.random((rows, k), dtype)
            yield f"linear_forward/{case}", timer.median_us(lambda: F.linear(x, weight, bias))
            yield f"linear_backward_data/{case}", timer.median_us(lambda: grad @ weight)
            yield f"linear_backward_weight/{case}", timer.median_us(lambda: (grad.t() @ x, grad.sum(0)))


def losses(timer: Timer) -> Iterator[tuple[str, float]]:
    for dtype_name, dtype in DTYPES.items():
        for images in (256, 65536):
            rows = 2 if timer.rehearsal else images
            labels = torch.randint(1000, (rows,), device=timer.device)
            logits = timer.random((rows, 1000), dtype)
            times = forward_and_backward(timer, lambda t, y=labels: F.cross_entropy(t, y), logits)
            for direction, us in zip(("forward", "backward"), times):
                yield f"softmax_cross_entropy_{direction}/{dtype_name}/{images}x1000", us


def optimizers(timer: Timer) -> Iterator[tuple[str, float]]:
    count, numel = 4, 1000 if timer.rehearsal else 6389000
    for name, make in (
        ("sgd_step", lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, weight_decay=1e-4, fused=True)),
        ("adam_step", lambda p: torch.optim.AdamW(p, weight_decay=1e-2, fused=True)),
    ):
        parameters = [timer.random((numel,), torch.float32).requires_grad_() for _ in range(count)]
        for parameter in parameters:
            parameter.grad = timer.random((numel,), torch.float32)
        yield f"{name}/f32/4x6389000", timer.median_us(make(parameters).step)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rehearsal", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.backends.cudnn.allow_tf32 = False
    timer = Timer(args.device, args.rehearsal)
    parts = (activations, convolutions, linear_layers, losses, optimizers)
    cases = dict(case for part in parts for case in part(timer))
    print(json.dumps({"torch": torch.__version__, "us": cases}, indent=1))


if __name__ == "__main__":
    main()
