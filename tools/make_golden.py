"""PyTorch as the oracle: writes the small golden files that the C++ tests read.

usage: python tools/make_golden.py [OUT_DIR]      (default tests/golden; needs torch, numpy, safetensors)

Each OUT_DIR/<name>.safetensors holds tensors named <case>.<tensor> in PyTorch's layout (NCHW, OIHW), and the metadata
  torch_version  what computed the file
  script         this file's path in the repository
  arithmetic     f64: computed in double from the stored f32 inputs and rounded once to f32
                 f32: PyTorch's own f32 arithmetic
  cases          JSON array, one object a case: "name" and the case's parameters
Documented vectors are asserted: a PyTorch that disagrees with them writes no file.
"""

import argparse
import json
import zlib
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import save
from torch import Tensor, nn
from torch.utils.data.distributed import DistributedSampler

from torch_models import ConvNet, Toy_Net, param_sha256, shape_sha256


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
    }
    for name, (shape, out_channels, kernel, stride, pad, has_bias) in cases.items():
        file.case(name, **window(kernel, stride, pad), bias=has_bias)
        bias = {"bias": randn(out_channels)} if has_bias else {}
        weight = randn(out_channels, shape[1], *kernel)
        put_op(file, partial(F.conv2d, stride=stride, padding=pad), randn, input=randn(*shape), weight=weight, **bias)
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

    def add(name: str, x: Tensor, relu: bool = False, momentum: float = 0.1, eps: float = 1e-5) -> None:
        file.case(name, relu=relu, momentum=momentum, eps=eps)
        channels = x.shape[1]
        weight, bias = randn(channels), randn(channels)
        running_mean, running_var = randn(channels), 0.5 + torch.rand(channels).double()
        if name == "documented":
            weight, bias = torch.ones(channels).double(), torch.zeros(channels).double()
            running_mean, running_var = bias.clone(), weight.clone()
        file.put(running_mean_before=running_mean, running_var_before=running_var)

        def forward(training: bool, input: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
            out = F.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)
            assert not relu or out.abs().min() > 1e-4, f"{name}: rounding would decide a ReLU"
            return out.relu() if relu else out

        out = put_op(file, partial(forward, True), randn, input=x, weight=weight, bias=bias)
        batch = [d for d in range(x.dim()) if d != 1]
        file.put(mean=x.mean(batch), var=x.var(batch, unbiased=False))
        file.put(running_mean=running_mean, running_var=running_var, eval_out=forward(False, x, weight, bias))
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
    return file


def relu() -> GoldenFile:
    file = GoldenFile("relu", "f32")
    nan, inf = float("nan"), float("inf")
    special = [nan, -nan, 0.0, -0.0, inf, -inf, 1e-45, -1e-45, 1e-39, -1e-39, 1.5, -1.5, 3.4e38, -3.4e38]
    for name, x in {"special": torch.tensor(special), "random": torch.randn(3, 7, 5)}.items():
        file.case(name)
        put_op(file, torch.relu, torch.randn, input=x)
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


def sgd() -> GoldenFile:
    """params and momentum_buffers hold one row per step, as it is after that step; no buffers without momentum."""
    file = GoldenFile("sgd", "f32")

    def add(name: str, param: Tensor, grads: Tensor, lr: list[float], momentum=0.0, nesterov=False, weight_decay=0.0):
        settings = {"momentum": momentum, "dampening": 0.0, "nesterov": nesterov, "weight_decay": weight_decay}
        file.case(name, lr=lr, **settings)
        file.put(param_before=param, grads=grads)
        param = nn.Parameter(param.clone())
        optimizer = torch.optim.SGD([param], **settings, foreach=False, fused=False)
        params, buffers = [], []
        for grad, step_lr in zip(grads, lr, strict=True):
            param.grad = grad.clone()
            optimizer.param_groups[0]["lr"] = step_lr
            optimizer.step()
            params.append(param.detach().clone())
            if momentum:
                buffers.append(optimizer.state[param]["momentum_buffer"].clone())
        file.put(params=torch.stack(params))
        if momentum:
            file.put(momentum_buffers=torch.stack(buffers))

    cases = {
        "plain": {},
        "weight_decay": {"weight_decay": 0.01},
        "momentum": {"momentum": 0.9},
        "momentum_weight_decay": {"momentum": 0.875, "weight_decay": 1 / 32768},
        "nesterov": {"momentum": 0.9, "nesterov": True},
        "nesterov_weight_decay": {"momentum": 0.9, "nesterov": True, "weight_decay": 0.01},
    }
    for name, settings in cases.items():
        add(name, torch.randn(19), torch.randn(4, 19), [0.1] * 4, **settings)
    # The rate is not inside the buffer: a change of it acts at once.
    add("momentum_lr_changes", torch.randn(19), torch.randn(4, 19), [0.1, 0.1, 0.01, 0.2], momentum=0.9)
    grads = torch.tensor([[1.0], [2.0], [3.0]])
    for name, nesterov in [("documented", False), ("documented_nesterov", True)]:
        add(name, torch.ones(1), grads, [0.1] * 3, momentum=0.9, weight_decay=0.01, nesterov=nesterov)
    assert_near(file.tensors["documented.params"], [0.8989999890, 0.6072009802, 0.0439746529])
    assert_near(file.tensors["documented_nesterov.params"], [0.8080999851, 0.3447546065, -0.4621839523])
    return file


def rng() -> GoldenFile:
    file = GoldenFile("rng", "f32")
    for seed in (0, 42, 2**32 + 42):  # of a seed only the low 32 bits count
        file.case(f"mt19937_seed{seed}", kind="mt19937", seed=seed)
        count = 1300  # past the second refill of the 624-word state
        u32 = torch.tensor(np.random.RandomState(seed % 2**32).randint(2**32, size=count, dtype=np.uint32)).long()
        low31 = torch.empty(count, dtype=torch.int32).random_(generator=torch.Generator().manual_seed(seed))
        assert torch.equal(u32 & 0x7FFFFFFF, low31.long()), "NumPy and PyTorch disagree"
        file.put(u32=u32)
    for seed in (0, 42):
        file.case(f"rand_seed{seed}", kind="rand", seed=seed)
        file.put(values=torch.rand(8, generator=torch.Generator().manual_seed(seed)))
        # Consecutive draws, concatenated. Below 16 values half of a pair may be left for the next such draw.
        for counts in ([4], [16], [37], [3, 16, 2]):
            file.case(f"randn{'_'.join(map(str, counts))}_seed{seed}", kind="randn", seed=seed, counts=counts)
            generator = torch.Generator().manual_seed(seed)
            file.put(values=torch.cat([torch.randn(count, generator=generator) for count in counts]))
    for seed, n in product((0, 1, 42), (10, 1000)):
        file.case(f"randperm{n}_seed{seed}", kind="randperm", seed=seed, n=n)
        file.put(indices=torch.randperm(n, generator=torch.Generator().manual_seed(seed)))
    for (n, world), drop_last, epoch in product([(10, 4), (101, 7)], (False, True), range(3)):
        name = f"sampler{n}_world{world}{'_drop_last' if drop_last else ''}_epoch{epoch}"
        file.case(name, kind="distributed_sampler", seed=0, n=n, world=world, epoch=epoch, drop_last=drop_last)
        samplers = [DistributedSampler(range(n), world, rank, drop_last=drop_last) for rank in range(world)]
        for sampler in samplers:
            sampler.set_epoch(epoch)
        file.put(indices=torch.tensor([list(sampler) for sampler in samplers]))
    assert file.tensors["randperm10_seed42.indices"].tolist() == [2, 6, 1, 8, 4, 5, 0, 9, 3, 7]
    assert file.tensors["sampler10_world4_epoch0.indices"].tolist() == [[4, 3, 6], [1, 9, 2], [7, 0, 4], [5, 8, 1]]
    assert file.tensors["sampler10_world4_drop_last_epoch0.indices"].tolist() == [[4, 3], [1, 9], [7, 0], [5, 8]]
    assert_near(file.tensors["rand_seed0.values"][:4], [0.4962566, 0.7682218, 0.0884774, 0.1320305])
    firsts = [file.tensors[f"randn{count}_seed0.values"][0] for count in (4, 16)]
    assert_near(torch.stack(firsts), [1.5409961, -1.1258398])
    return file


def cast() -> GoldenFile:
    """Bit patterns as i32. Any NaN is stored as the quiet one, 0x7E00 or 0x7FC0: which one is left open."""
    file = GoldenFile("cast", "f32")
    # Around every pattern h: the value, the midpoint to the next one (a tie), and the midpoint's two f32 neighbours.
    patterns = {
        torch.float16: [0, 1, 2, 3, 0x3FE, 0x3FF, 0x400, 0x401, 0x3BFF, 0x3C00, 0x3C01, 0x3C02, 0x7BFD, 0x7BFE, 0x7BFF],
        torch.bfloat16: [0, 1, 2, 0x7E, 0x7F, 0x80, 0x3F7F, 0x3F80, 0x3F81, 0x3F82, 0x7F7D, 0x7F7E, 0x7F7F],
    }
    values = [0.0, 1e-45, 1.17549421e-38, 1.17549435e-38, 1e-8, 0.1, 1 / 3, 3.14159265, 65535, 65536, 1e5, 3.4028235e38]
    positive = [torch.tensor([*values, float("inf")])]
    for dtype, codes in patterns.items():
        lower = torch.tensor(codes, dtype=torch.int16).view(dtype).double()
        upper = (torch.tensor(codes, dtype=torch.int16) + 1).view(dtype).double()
        upper[upper.isinf()] = 2.0 ** (16 if dtype == torch.float16 else 128)
        tie = ((lower + upper) / 2).float()
        positive += [lower.float(), tie, tie.nextafter(2 * tie), tie.nextafter(0 * tie)]
    magnitudes = torch.cat(positive)
    x = torch.cat([magnitudes, -magnitudes, torch.tensor([float("nan"), -float("nan")])])

    def bits(dtype: torch.dtype, quiet_nan: int) -> Tensor:
        return torch.where(x.isnan(), quiet_nan, x.to(dtype).view(torch.int16).int() & 0xFFFF).int()

    file.case("awkward")
    file.put(input=x, f16_bits=bits(torch.float16, 0x7E00), bf16_bits=bits(torch.bfloat16, 0x7FC0))
    return file


def models() -> GoldenFile:
    """Five steps on one formula-made batch from manual_seed(42), then the first 4 images in eval mode."""
    file = GoldenFile("models", "f32")

    def add(name: str, model_class: type[nn.Module], n: int, documented: list[float], params: dict, **settings) -> None:
        torch.manual_seed(42)
        model = model_class()
        digests = {"param_sha256": param_sha256(model), "shape_sha256": shape_sha256(model)}
        file.case(name, model=model_class.__name__, seed=42, n=n, **params, sgd=settings, **digests)
        k = torch.arange(n * 28 * 28)
        x = ((k * 1103515245 + 12345) % 2**31 / 2**31).float().reshape(n, 1, 28, 28)
        y = torch.arange(n) % 10
        optimizer = torch.optim.SGD(model.parameters(), **settings)
        losses = []
        for step in range(5):
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            (loss / params["loss_divisor"]).backward()
            if name == "convnet" and step == 0:
                file.put(**{f"grad.{param_name}": param.grad for param_name, param in model.named_parameters()})
            optimizer.step()
            losses.append(loss.detach())
        file.put(losses=torch.stack(losses), eval_logits=model.eval()(x[:4]))
        torch.testing.assert_close(torch.stack(losses), torch.tensor(documented), rtol=params["loss_rtol"], atol=0)

    # Toy_Net multiplies a rounding difference: PyTorch's own convolutions disagree by 0.7 % from step 2 on.
    convnet, toy_net = {"loss_divisor": 1, "loss_rtol": 1e-4}, {"loss_divisor": 16, "loss_rtol": 2e-2}
    add("convnet", ConvNet, 32, [2.562476, 2.549809, 2.537770, 2.526323, 2.515426], convnet, lr=1e-4)
    add("convnet_lr_0p01", ConvNet, 32, [2.562476, 2.430992, 2.204555, 2.094805, 2.046604], convnet, lr=0.01)
    nesterov = {"lr": 0.1, "momentum": 0.9, "nesterov": True}
    add("toy_net", Toy_Net, 16, [2.279810, 0.847193, 0.206404, 0.099367, 0.068394], toy_net, **nesterov)
    digests = {case["name"]: (case["param_sha256"][:16], case["shape_sha256"][:16]) for case in file.cases}
    assert digests["convnet"] == ("2779c97780f66288", "a230649f563980df")
    assert digests["toy_net"] == ("3a41bb9cd74c7b26", "bb552fe09e8a216d")
    return file


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out_dir", metavar="OUT_DIR", nargs="?", type=Path, default=Path("tests/golden"))
    out_dir: Path = parser.parse_args().out_dir
    out_dir.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    for make in (conv2d, linear, batch_norm, relu, max_pool2d, global_avg_pool, cross_entropy, sgd, rng, cast, models):
        file = make()
        file.write(out_dir)
        print(f"{file.name}: {len(file.cases)} cases, {len(file.tensors)} tensors")


if __name__ == "__main__":
    main()
