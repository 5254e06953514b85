"""Golden values of residual networks: initial weights, logits, gradients and losses."""

import copy
import math
from functools import partial

import timm
import torch
import torch.nn.functional as F
import torchvision
from torch import Tensor, nn

from golden.golden_file import GoldenFile, assert_near
from torch_models import CifarResNet, shape_sha256

PROJECTIONS = 8
ELEMENTS = 4
CLASSES = 10
MIN_GATE_DISTANCE = 4  # rounding errors


def signs(count: int) -> Tensor:
    """(PROJECTIONS, count) of +1 and -1: bits 24 to 31 of a hash of the element's index."""
    h = torch.arange(count)
    h = (h ^ (h >> 15)) * 0x9E3779B1 & 0xFFFFFFFF
    h = (h ^ (h >> 13)) * 0x85EBCA6B & 0xFFFFFFFF
    bits = torch.stack([h >> (24 + k) & 1 for k in range(PROJECTIONS)])
    return 1 - 2 * bits.double()


def fingerprint(tensors: list[Tensor]) -> dict[str, Tensor]:
    """One row per tensor: random projections, whose mean square is the square of a norm; the norm; first elements."""
    flat = [tensor.detach().double().flatten() for tensor in tensors]
    first = [F.pad(row[:ELEMENTS], (0, max(0, ELEMENTS - row.numel()))) for row in flat]
    return {
        "projections": torch.stack([signs(row.numel()) @ row for row in flat]),
        "norms": torch.stack([row.norm() for row in flat]),
        "first": torch.stack(first),
    }


class Blurred(nn.Module):
    """A convolution that reads a blurred input, with the names of ffcv-imagenet's BlurPoolConv2d."""

    def __init__(self, conv: nn.Conv2d) -> None:
        super().__init__()
        row = torch.tensor([1.0, 2.0, 1.0]) / 4
        self.conv = conv
        self.register_buffer("blur_filter", torch.outer(row, row).expand(conv.in_channels, 1, 3, 3).clone())

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(F.conv2d(x, self.blur_filter, padding=1, groups=x.shape[1]))


def blur(model: nn.Module) -> nn.Module:
    """ffcv-imagenet's rule: every convolution with a stride and 16 channels or more."""
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, nn.Conv2d) and max(child.stride) > 1 and child.in_channels >= 16:
                setattr(module, name, Blurred(child))
    return model


def make_network(name: str, **options) -> nn.Module:
    """resnet18_cifar is resnet18 with the stem for small images, resnet18_blur has BlurPool."""
    if name.endswith("_blur"):
        return blur(make_network(name.removesuffix("_blur"), **options))
    if name.startswith("se"):
        zero_init = options.pop("zero_init_residual", True)
        return timm.create_model(name, zero_init_last=zero_init, **options)
    if name.startswith("resnext"):
        return getattr(torchvision.models, name)(**options)
    depth = int(name.removeprefix("resnet").removesuffix("_cifar"))
    if depth % 6 == 2 and depth not in (50, 152):
        return CifarResNet(depth)
    model = getattr(torchvision.models, f"resnet{depth}")(**options)
    if name.endswith("_cifar"):
        model.conv1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False)
        model.maxpool = nn.Identity()
    return model


def resnet_init() -> GoldenFile:
    """Names, shapes and initial weights after manual_seed(42)."""
    file = GoldenFile("resnet_init", "f32")

    def add(name: str, network: str, **options) -> None:
        torch.manual_seed(42)
        model = make_network(network, **options)
        parameters = dict(model.named_parameters())
        file.case(
            name,
            network=network,
            classes=next(reversed(parameters.values())).numel(),  # as many as the last bias has elements
            **{"zero_init_residual": False, **options},
            entries=len(model.state_dict()),
            parameters=sum(value.numel() for value in parameters.values()),
            sum=sum(value.double().sum().item() for value in parameters.values()),
            shape_sha256=shape_sha256(model),
        )
        file.put(**fingerprint(list(parameters.values())))

    documented = {
        "resnet18": (11_689_512, 122, "1a0cd35efd6bca53"),
        "resnet34": (21_797_672, 218, "261de842cb0585e8"),
        "resnet50": (25_557_032, 320, "a4df32544cf75a1c"),
        "resnet101": (44_549_160, 626, "5dafd91c099a3044"),
        "resnet152": (60_192_808, 932, "55303ac6c90f1f4e"),
        "resnext50_32x4d": (25_028_904, 320, "08a5b6eb5b17d156"),
        "seresnet50": (28_088_024, 384, "7476f9b6ae799897"),
    }
    for name, want in documented.items():
        add(name, name, **({"zero_init_residual": True} if name.startswith("se") else {}))  # timm's default
        case = file.cases[-1]
        assert (case["parameters"], case["entries"], case["shape_sha256"][:16]) == want
    sums = torch.tensor([case["sum"] for case in file.cases if case["name"] in ("resnet18", "resnet50")])
    assert_near(sums, [4720.9198, 26725.3623])
    for name in ("resnet18", "resnet50"):
        add(f"{name}_zero_init", name, zero_init_residual=True)
        add(f"{name}_blur", f"{name}_blur")
    for depth in (20, 32, 44, 56):
        add(f"resnet{depth}", f"resnet{depth}")
    assert file.cases[-4]["parameters"] == 269_722
    return file


def fill_parameters(model: nn.Module, seed: int, open_gates: bool = False) -> None:
    """Uniform draws in the order of parameters(). Every batch norm's bias keeps away from zero: gates that rounding
    decides would be frequent otherwise. With open_gates it is positive too: after a ReLU that shuts all but a few
    pixels of a channel, the batch norm of a filter of that channel alone makes rounding errors large."""
    torch.manual_seed(seed)
    norms = [module for module in model.modules() if isinstance(module, nn.BatchNorm2d)]
    norm_weights = {id(module.weight) for module in norms}
    norm_biases = {id(module.bias) for module in norms}
    with torch.no_grad():
        for value in filter(lambda value: value.requires_grad, model.parameters()):
            if id(value) in norm_weights:
                value.uniform_(0.1, 0.3)
            elif id(value) in norm_biases:
                value.uniform_(-0.3, 0.3)
                if open_gates:
                    value.abs_()
                value.add_(0.3 * value.sign())
            else:
                bound = math.sqrt(6 / value[0].numel()) if value.dim() > 1 else 0.1
                value.uniform_(-bound, bound)


class Gates:
    """The inputs of all ReLUs in one forward pass."""

    def __init__(self, model: nn.Module, x: Tensor) -> None:
        self.inputs: list[Tensor] = []
        relu = F.relu
        F.relu = self._relu
        try:
            self.logits = model(x)
        finally:
            F.relu = relu

    def _relu(self, x: Tensor, inplace: bool = False) -> Tensor:
        self.inputs.append(x.detach().double().clone())
        return torch.relu(x)

    def nearest(self, rounded: "Gates") -> float:
        """The distance of a gate's input to zero, least over all, in its layer's rounding errors; infinite without."""
        pairs = zip(self.inputs, rounded.inputs, strict=True)
        distances = ((exact.abs().min() / (exact - other).square().mean().sqrt()).item() for exact, other in pairs)
        return min(distances, default=math.inf)


def gradients(model: nn.Module, logits: Tensor, labels: Tensor) -> list[Tensor]:
    trained = [value for value in model.parameters() if value.requires_grad]
    return [grad.double() for grad in torch.autograd.grad(F.cross_entropy(logits, labels), trained)]


def put_gradients(
    file: GoldenFile, name: str, model: nn.Module, case: tuple[int, int, int], noise: float = 0, **settings: object
) -> None:
    """Of a case (seed, images, pixels) of a model with CLASSES classes; gradients below `noise` are not compared."""
    seed, n, pixels = case
    x = torch.empty(n, 3, pixels, pixels).uniform_(-1, 1)
    y = torch.arange(n)
    exact = copy.deepcopy(model).double()
    model.to(memory_format=torch.channels_last)
    gates = Gates(exact, x.double())
    rounded = Gates(model, x.contiguous(memory_format=torch.channels_last))
    grads = gradients(exact, gates.logits, y)
    pairs = zip(grads, gradients(model, rounded.logits, y), strict=True)
    deviation = max(((want - got).norm() / want.norm()).item() for want, got in pairs if not want.norm() < noise)
    nearest = gates.nearest(rounded)
    print(f"{name}: nearest gate {nearest:.1f} rounding errors away, f32 deviates by {deviation:.1e}")
    assert nearest > MIN_GATE_DISTANCE and deviation < 2e-5, f"{name}: rounding would decide"
    file.case(name, seed=seed, n=n, pixels=pixels, classes=CLASSES, **settings)
    with torch.no_grad():
        eval_logits = exact.eval()(x.double())  # with the running statistics of this one step
    file.put(logits=gates.logits, eval_logits=eval_logits, **fingerprint(grads))


def resnet_gradients() -> GoldenFile:
    """Logits and gradients in double; weights and images are uniform draws. One ReLU that rounding opens or shuts
    changes gradients by 1e-3 to 1e-2 of their norm, in PyTorch's own f32 too; the seeds are such that no ReLU's input
    is that close to zero, and PyTorch's f32 stays within 2e-5."""
    file = GoldenFile("resnet_gradients", "f64")
    # name: seed, images, pixels
    cases = {
        "resnet20": (1, 4, 16), "resnet32": (1, 4, 16), "resnet44": (2, 4, 16), "resnet56": (2, 4, 16),
        "resnet18_cifar": (2, 4, 16), "resnet18": (1, 4, 48), "resnet34": (2, 4, 48), "resnet50": (145, 4, 48),
        "resnet101": (7, 2, 48), "resnet152": (8, 2, 48), "resnext50_32x4d": (3, 2, 48), "seresnet50": (2, 2, 48),
        "resnet18_blur": (1, 2, 48), "resnet50_blur": (1, 2, 48),
    }  # fmt: skip
    for name, (seed, n, pixels) in cases.items():
        model = make_network(name, num_classes=CLASSES)
        fill_parameters(model, seed)
        put_gradients(file, name, model, (seed, n, pixels))
    return file


def resnet_losses() -> GoldenFile:
    """Three steps from manual_seed(42) on one formula-made batch of 64x64 images; logits of one image in eval mode."""
    file = GoldenFile("resnet_losses", "f32")

    def documented_images(n: int, pixels: int) -> Tensor:
        k = torch.arange(n * 3 * pixels**2)
        return ((k * 1103515245 + 12345) % 2**31 / 2**31).float().reshape(n, 3, pixels, pixels)

    settings = {"lr": 0.01, "momentum": 0.9, "weight_decay": 1e-4}

    def train(
        name: str, n: int, steps: int, zero_init: bool, noise_seed: int | None = None, exact: bool = False
    ) -> Tensor:
        """With a noise_seed, initial weights are off by what PyTorch's approximate logarithm puts them off."""
        torch.manual_seed(42)
        model = make_network(name, num_classes=CLASSES, zero_init_residual=zero_init)
        x, y = documented_images(n, 64), torch.arange(n) % 10
        if noise_seed is not None:
            torch.manual_seed(noise_seed)
            for value in model.parameters():
                if value.dim() == 4:
                    value.data += 0.5e-6 * value.std() * torch.randn(value.shape)
        if exact:
            model, x = model.double(), x.double()
        optimizer = torch.optim.SGD(model.parameters(), **settings)
        losses = []
        for _ in range(steps):
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach().float())
        return torch.stack(losses)

    cases = {
        "resnet18": (8, False, [2.487601, 2.228218, 1.484326]),
        "resnet50": (4, True, [2.212351, 1.201739, 0.521047]),
    }
    for name, (n, zero_init, documented) in cases.items():
        want = torch.tensor(documented)
        run = partial(train, name, n, len(documented), zero_init)
        torch.testing.assert_close(run(), want, rtol=1e-5, atol=0)
        others = torch.stack([run(exact=True), *(run(noise_seed=seed) for seed in range(8))])
        spread = ((others - want) / want).abs().amax(0)
        print(f"{name}: PyTorch's own losses differ by {spread.tolist()}")
        file.case(f"{name}_losses", n=n, pixels=64, zero_init_residual=zero_init, sgd=settings)
        file.put(losses=want, spread=spread)

    torch.manual_seed(42)
    model = make_network("resnet50").eval()
    file.case("resnet50_eval", pixels=224)
    with torch.no_grad():
        logits = model(documented_images(1, 224))
    assert logits.argmax() == 937
    torch.testing.assert_close(logits[0, :3], torch.tensor([7.89307, 7.77789, 5.67664]), rtol=1e-4, atol=0)
    file.put(logits=logits)
    return file


def drop_path() -> GoldenFile:
    """How often timm's ResNets leave out the branch of each block, where the last one's is left out at 0.1."""
    file = GoldenFile("drop_path", "f64")
    last = 0.1
    for name in ("resnet18", "resnet34", "resnet50", "resnext50_32x4d"):
        model = timm.create_model(name, drop_path_rate=last)
        file.case(name, last=last)
        blocks = [block for i in range(1, 5) for block in getattr(model, f"layer{i}")]
        file.put(rates=torch.tensor([block.drop_path.drop_prob if block.drop_path else 0.0 for block in blocks]))
    return file
