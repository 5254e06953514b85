"""Golden values of the kernels' operations."""

import itertools
from functools import partial

import torch
import torch.nn.functional as F
from timm.data.mixup import mixup_target
from timm.loss import BinaryCrossEntropy
from torch import Tensor

from golden.golden_file import GoldenFile, assert_near, put_op, randn, window


def conv2d() -> GoldenFile:
    file = GoldenFile("conv2d", "f64")
    # name: (input shape), out channels, (kernel), (stride), (pad), bias
    cases = {
        "k1": ((2, 3, 5, 4), 7, (1, 1), (1, 1), (0, 0), False),
        "k1_s2": ((2, 8, 7, 6), 16, (1, 1), (2, 2), (0, 0), False),
        "k3_p1": ((2, 8, 6, 6), 16, (3, 3), (1, 1), (1, 1), True),
        "k3_p1_c5_o7": ((3, 5, 7, 6), 7, (3, 3), (1, 1), (1, 1), True),
        "k3_p1_one_pixel": ((2, 3, 1, 1), 4, (3, 3), (1, 1), (1, 1), True),
        "k3_s2_p1": ((2, 4, 7, 8), 6, (3, 3), (2, 2), (1, 1), False),
        "k3_s2_unread_edge": ((1, 2, 6, 8), 3, (3, 3), (2, 2), (0, 0), True),
        "k5_p2_c1": ((5, 1, 9, 8), 4, (5, 5), (1, 1), (2, 2), True),
        "k7_s2_p3_c3": ((1, 3, 15, 13), 5, (7, 7), (2, 2), (3, 3), False),
        "k3x5_s2x1_p1x2": ((4, 6, 8, 9), 3, (3, 5), (2, 1), (1, 2), True),
        "k2x3_whole_image": ((1, 9, 2, 3), 10, (2, 3), (1, 1), (0, 0), False),
        "k3_s2_p1_groups8": ((2, 32, 5, 6), 32, (3, 3), (2, 2), (1, 1), False),
        "k3_p1_groups3": ((2, 6, 4, 5), 9, (3, 3), (1, 1), (1, 1), True),
    }
    for name, (shape, out_channels, kernel, stride, pad, has_bias) in cases.items():
        groups = int(name.partition("groups")[2] or 1)
        file.case(name, **window(kernel, stride, pad), bias=has_bias, groups=groups)
        bias = {"bias": randn(out_channels)} if has_bias else {}
        weight = randn(out_channels, shape[1] // groups, *kernel)
        op = partial(F.conv2d, stride=stride, padding=pad, groups=groups)
        put_op(file, op, randn, input=randn(*shape), weight=weight, **bias)
    return file


def depthwise_conv2d() -> GoldenFile:
    file = GoldenFile("depthwise_conv2d", "f64")
    # name: (input shape), (kernel), (stride), (pad)
    cases = {
        "k3_p1": ((2, 5, 4, 5), (3, 3), (1, 1), (1, 1)),
        "k3_s2_p1": ((1, 8, 5, 6), (3, 3), (2, 2), (1, 1)),
        "k5_s2_p2": ((1, 3, 7, 6), (5, 5), (2, 2), (2, 2)),
        "k3_p1_one_pixel": ((2, 3, 1, 1), (3, 3), (1, 1), (1, 1)),
        "k2x3_s3x1_p0x2": ((1, 4, 6, 4), (2, 3), (3, 1), (0, 2)),
    }
    for name, (shape, kernel, stride, pad) in cases.items():
        file.case(name, **window(kernel, stride, pad))
        op = partial(F.conv2d, stride=stride, padding=pad, groups=shape[1])
        put_op(file, op, randn, input=randn(*shape), weight=randn(shape[1], 1, *kernel))
    return file


def linear() -> GoldenFile:
    file = GoldenFile("linear", "f64")
    shapes = [(1, 1, 1, True), (3, 5, 7, True), (4, 33, 10, False), (5, 17, 1, True), (2, 100, 10, True)]
    for n, k, o, has_bias in shapes:
        file.case(f"n{n}_k{k}_o{o}", bias=has_bias)
        bias = {"bias": randn(o)} if has_bias else {}
        put_op(file, F.linear, randn, input=randn(n, k), weight=randn(o, k), **bias)
    return file


def batch_norm() -> GoldenFile:
    file = GoldenFile("batch_norm", "f64")

    def add(
        name: str, x: Tensor, relu: bool = False, momentum: float = 0.1, eps: float = 1e-5, residual: bool = False
    ) -> None:
        file.case(name, relu=relu, momentum=momentum, eps=eps)
        channels = x.shape[1]
        weight, bias = randn(channels), randn(channels)
        running_mean, running_var = randn(channels), 0.5 + torch.rand(channels).double()
        if name == "documented":
            weight, bias = torch.ones(channels).double(), torch.zeros(channels).double()
            running_mean, running_var = bias.clone(), weight.clone()
        file.put(running_mean_before=running_mean, running_var_before=running_var)

        shortcut = {"residual": randn(*x.shape)} if residual else {}

        def forward(training: bool, input: Tensor, weight: Tensor, bias: Tensor, residual: Tensor | int = 0) -> Tensor:
            out = F.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps) + residual
            assert not relu or out.abs().min() > 1e-4, f"{name}: rounding would decide a ReLU"
            return out.relu() if relu else out

        out = put_op(file, partial(forward, True), randn, input=x, weight=weight, bias=bias, **shortcut)
        batch = [d for d in range(x.dim()) if d != 1]
        file.put(mean=x.mean(batch), var=x.var(batch, unbiased=False))
        eval_out = forward(False, x, weight, bias, **shortcut)
        file.put(running_mean=running_mean, running_var=running_var, eval_out=eval_out)
        if name == "documented":
            assert_near(torch.cat([running_mean, running_var, out.flatten()[:1]]), [0.35, 1.5, -1.5275238])

    shapes = {
        "2d_n4c5": (4, 5, 3, 2), "2d_n1c3": (1, 3, 5, 7), "2d_n2c8": (2, 8, 4, 4), "2d_n3c16": (3, 16, 2, 3),
        "1d_n2c3": (2, 3), "1d_n7c10": (7, 10), "1d_n16c5": (16, 5),
    }  # fmt: skip
    for name, shape in shapes.items():
        add(name, randn(*shape))
        add(f"{name}_relu", randn(*shape), relu=True)
    add("momentum_eps", randn(3, 4, 2, 5), momentum=0.25, eps=1e-3)
    add("far_from_zero", (randn(4, 3, 5, 3) + 100).float().double())  # E[x^2] - E[x]^2 would lose the variance
    constant = randn(2, 3, 3, 3)
    constant[:, 1] = 0.75
    add("constant_channel", constant)
    add("documented", torch.arange(8.0).double().reshape(2, 1, 2, 2))
    add("2d_n4c5_residual", randn(4, 5, 3, 2), residual=True)
    add("2d_n4c5_residual_relu", randn(4, 5, 3, 2), relu=True, residual=True)
    return file


def relu() -> GoldenFile:
    file = GoldenFile("relu", "f32")
    nan, inf = float("nan"), float("inf")
    special = [nan, -nan, 0.0, -0.0, inf, -inf, 1e-45, -1e-45, 1e-39, -1e-39, 1.5, -1.5, 3.4e38, -3.4e38]
    for name, x in {"special": torch.tensor(special), "random": torch.randn(3, 7, 5)}.items():
        file.case(name)
        put_op(file, torch.relu, torch.randn, input=x)
    return file


def gelu() -> GoldenFile:
    file = GoldenFile("gelu", "f64")
    for form in ("none", "tanh"):
        file.case(form, tanh=form == "tanh")
        x = torch.cat([3 * randn(200), torch.tensor([0.0, 1e-6, -1e-6, 7.5, -7.5, 40, -40]).double()])
        put_op(file, partial(F.gelu, approximate=form), randn, input=x)
    return file


def max_pool2d() -> GoldenFile:
    file = GoldenFile("max_pool2d", "f32")

    def small_integers(*shape: int) -> Tensor:  # so that sums over overlapping windows are exact
        return torch.randint(-8, 9, shape).float()

    def add(name: str, x: Tensor, kernel: tuple[int, int], stride: tuple[int, int], pad: tuple[int, int]) -> None:
        file.case(name, **window(kernel, stride, pad))
        put_op(file, partial(F.max_pool2d, kernel_size=kernel, stride=stride, padding=pad), small_integers, input=x)
        file.put(indices=F.max_pool2d(x, kernel, stride, pad, return_indices=True)[1].int())

    cases = {
        "k2_s2": ((2, 3, 6, 4), (2, 2), (2, 2), (0, 0)),
        "k2_s2_odd": ((1, 2, 5, 7), (2, 2), (2, 2), (0, 0)),
        "k2_s1_p1": ((1, 9, 3, 4), (2, 2), (1, 1), (1, 1)),
        "k3_s2_p1": ((2, 3, 7, 5), (3, 3), (2, 2), (1, 1)),
        "k3_s1_p1": ((3, 1, 4, 6), (3, 3), (1, 1), (1, 1)),
        "k3_s3": ((2, 4, 9, 7), (3, 3), (3, 3), (0, 0)),
        "k2x3_s1x2_p0x1": ((2, 5, 4, 7), (2, 3), (1, 2), (0, 1)),
        "k3_s2_p1_one_pixel": ((2, 2, 1, 1), (3, 3), (2, 2), (1, 1)),
    }
    for name, (shape, kernel, stride, pad) in cases.items():
        add(name, torch.randn(shape), kernel, stride, pad)
    for suffix, geometry in [(name, cases[name][1:]) for name in ("k2_s2", "k3_s2_p1", "k3_s1_p1")]:
        ties = torch.randint(-1, 2, (2, 3, 6, 6)).float()
        ties[0, 0] = torch.tensor([0.0, -0.0])[torch.randint(2, (6, 6))]
        add(f"ties_{suffix}", ties, *geometry)
        special = torch.randn(1, 4, 6, 6)
        special[0, 0, 2, 3] = float("nan")
        special[0, 1, 0, 0] = special[0, 1, 1, 1] = float("nan")  # two in one window
        special[0, 2] = special[0, 3, 4:] = float("-inf")
        special[0, 3, 0, 1] = float("inf")
        add(f"special_{suffix}", special, *geometry)
    return file


def global_avg_pool() -> GoldenFile:
    file = GoldenFile("global_avg_pool", "f64")
    for n, c, h, w in [(2, 3, 7, 7), (3, 5, 1, 1), (1, 9, 4, 2)]:
        file.case(f"n{n}c{c}h{h}w{w}")
        put_op(file, lambda input: F.adaptive_avg_pool2d(input, 1).flatten(1), randn, input=randn(n, c, h, w))
    return file


def adaptive_avg_pool2d() -> GoldenFile:
    file = GoldenFile("adaptive_avg_pool2d", "f64")
    for shape, size in [((2, 3, 13, 13), (6, 6)), ((1, 5, 1, 1), (7, 7)), ((2, 2, 5, 9), (7, 4))]:
        file.case("x".join(map(str, shape + size)))
        put_op(file, partial(F.adaptive_avg_pool2d, output_size=size), randn, input=randn(*shape))
    return file


def channel_gate() -> GoldenFile:
    file = GoldenFile("channel_gate", "f64")
    for form, suffix in [(F.hardsigmoid, ""), (torch.sigmoid, "_sigmoid")]:
        for n, c, h, w in [(2, 5, 3, 4), (3, 17, 1, 1)]:
            file.case(f"n{n}c{c}h{h}w{w}{suffix}", sigmoid=form is torch.sigmoid)
            gate = 3 * randn(n, c)
            put_op(file, lambda input, gate, form=form: input * form(gate)[:, :, None, None], randn,
                   input=randn(n, c, h, w), gate=gate)  # fmt: skip
    return file


def subsample_pad() -> GoldenFile:
    file = GoldenFile("subsample_pad", "f32")
    for n, c, h, w, k in [(2, 16, 8, 8, 32), (3, 3, 7, 5, 9)]:
        file.case(f"n{n}c{c}h{h}w{w}k{k}")
        pad = (0, 0, 0, 0, (k - c) // 2, (k - c) // 2)
        put_op(file, lambda input, pad=pad: F.pad(input[:, :, ::2, ::2], pad), randn, input=randn(n, c, h, w))
    return file


def binary_cross_entropy() -> GoldenFile:
    """timm's loss of mixed and smoothed targets; threshold -1 stands for none, mix 1 for images that are not mixed."""
    file = GoldenFile("binary_cross_entropy", "f64")
    for n, k in [(1, 1), (4, 10), (7, 3), (2, 257)]:
        logits, labels = (3 * torch.randn(n, k)).double().requires_grad_(), torch.randint(k, (n,))
        for smoothing, threshold, mix in itertools.product((0.0, 0.1), (None, 0.2), (1.0, 0.3, 0.875)):
            values = {"smoothing": smoothing, "threshold": -1.0 if threshold is None else threshold, "mix": mix}
            file.case(f"n{n}k{k}_" + "_".join(f"{value:g}" for value in values.values()), **values)
            targets = labels if mix == 1 else mixup_target(labels, k, mix, smoothing).double()
            loss = BinaryCrossEntropy(smoothing=smoothing, target_threshold=threshold)(logits, targets)
            (grad_logits,) = torch.autograd.grad(loss, logits)
            file.put(logits=logits, labels=labels, loss=loss.reshape(1), grad_logits=grad_logits)
    return file


def cross_entropy() -> GoldenFile:
    file = GoldenFile("cross_entropy", "f64")
    huge = [[1e4, 0, -1e4, 9999], [-1e4, -1e4, -1e4, 1e4], [3e4, 3e4, 0, 0]]
    batches = {
        "documented": (torch.tensor([[2.0, 1.0, 0.0]]), torch.tensor([0])),
        "n1k1": (torch.randn(1, 1), torch.tensor([0])),
        "n4k10": (3 * torch.randn(4, 10), torch.randint(10, (4,))),
        "n7k3": (3 * torch.randn(7, 3), torch.randint(3, (7,))),
        "n2k257": (3 * torch.randn(2, 257), torch.randint(257, (2,))),
        "equal": (torch.full((3, 5), 0.5), torch.tensor([0, 4, 2])),
        "huge": (torch.tensor(huge), torch.tensor([0, 1, 1])),
    }
    for name, (logits, labels) in batches.items():
        logits = logits.double().requires_grad_()
        for smoothing, suffix in [(0.0, ""), (0.1, "_smooth")]:
            for reduction in ("sum", "mean"):
                file.case(f"{name}{suffix}_{reduction}", label_smoothing=smoothing, reduction=reduction)
                loss = F.cross_entropy(logits, labels, reduction=reduction, label_smoothing=smoothing)
                (grad_logits,) = torch.autograd.grad(loss, logits)
                file.put(logits=logits, labels=labels, loss=loss.reshape(1), grad_logits=grad_logits)
    losses = [file.tensors[f"documented{suffix}_mean.loss"] for suffix in ("", "_smooth")]
    assert_near(torch.cat(losses), [0.4076059, 0.5076059])
    return file
