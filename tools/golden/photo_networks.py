"""Golden values of AlexNet, VGG and GhostNet: names, shapes, initial weights, logits and gradients."""

import copy

import timm
import torch
import torchvision
from torch import nn

from golden.golden_file import GoldenFile
from golden.resnets import CLASSES, Gates, fill_parameters, fingerprint, gradients
from torch_models import shape_sha256

HIDDEN = 32  # of the classifiers in what is computed: the real ones' 4096 are 119 million weights


def make_network(name: str, num_classes: int, dropout: float | None = None) -> nn.Module:
    if name == "ghostnet_100":
        return timm.create_model(name, num_classes=num_classes, drop_rate=0.2 if dropout is None else dropout)
    return getattr(torchvision.models, name)(num_classes=num_classes, dropout=0.5 if dropout is None else dropout)


def narrow(name: str) -> nn.Module:
    """With few classes, a classifier of HIDDEN units and no dropout; drawn anew as torchvision draws its own."""
    if name == "ghostnet_100":
        return make_network(name, CLASSES, 0)
    linear = nn.Linear

    class Narrow(linear):
        def __init__(self, *features: int) -> None:
            super().__init__(*(HIDDEN if count == 4096 else count for count in features))

    nn.Linear = Narrow
    try:
        return make_network(name, CLASSES, 0)
    finally:
        nn.Linear = linear


def photo_network_init() -> GoldenFile:
    """Names and shapes; initial weights after manual_seed(42) with narrow classifiers."""
    file = GoldenFile("photo_network_init", "f32")
    documented = {
        "alexnet": (61_100_840, 16, "b298fd87344e3505"),
        "vgg16": (138_357_544, 32, "c57cdd90c4c184cb"),
        "vgg16_bn": (138_365_992, 97, "98482f0bdc1f4138"),
        "ghostnet_100": (5_182_508, 512, "9aac7e5fcd637b65"),
    }
    for name, want in documented.items():
        with torch.device("meta"):
            model = make_network(name, 1000)
        parameters = sum(value.numel() for value in model.parameters())
        digest = shape_sha256(model)
        assert (parameters, len(model.state_dict()), digest[:16]) == want
        torch.manual_seed(42)
        weights = list(narrow(name).parameters())
        file.case(
            name, classes=CLASSES, hidden=HIDDEN, entries=want[1], parameters=parameters, shape_sha256=digest,
            sum=sum(value.double().sum().item() for value in weights),
        )  # fmt: skip
        file.put(**fingerprint(weights))
    return file


def photo_network_gradients() -> GoldenFile:
    """Logits and gradients in double, as those of golden.resnets, without dropout."""
    file = GoldenFile("photo_network_gradients", "f64")
    # name: seed, images, pixels
    cases = {"alexnet": (1, 2, 79), "vgg16": (4, 2, 32), "vgg16_bn": (1, 2, 32), "ghostnet_100": (15, 2, 64)}
    for name, (seed, n, pixels) in cases.items():
        model = narrow(name)
        open_gates = name == "ghostnet_100"
        fill_parameters(model, seed, open_gates)
        deviation, nearest, exact, gates, grads, x = measure(model, n, pixels)
        print(f"{name}: nearest gate {nearest:.1f} rounding errors away, f32 deviates by {deviation:.1e}")
        assert nearest > 4 and deviation < 2e-5, f"{name}: rounding would decide"
        file.case(name, seed=seed, n=n, pixels=pixels, classes=CLASSES, hidden=HIDDEN, open_gates=open_gates)
        with torch.no_grad():
            eval_logits = exact.eval()(x.double())
        file.put(logits=gates.logits, eval_logits=eval_logits, **fingerprint(grads))
    return file


def measure(model: nn.Module, n: int, pixels: int) -> tuple:
    x = torch.empty(n, 3, pixels, pixels).uniform_(-1, 1)
    y = torch.arange(n)
    exact = copy.deepcopy(model).double()
    model.to(memory_format=torch.channels_last)
    gates = Gates(exact, x.double())
    rounded = Gates(model, x.contiguous(memory_format=torch.channels_last))
    grads = gradients(exact, gates.logits, y)
    pairs = zip(grads, gradients(model, rounded.logits, y), strict=True)
    # Biases before a batch norm have no gradient but rounding noise.
    deviation = max(((want - got).norm() / want.norm()).item() for want, got in pairs if want.norm() > 1e-9)
    return deviation, gates.nearest(rounded), exact, gates, grads, x
