"""Golden values of AlexNet, VGG and GhostNet: names, shapes, initial weights, logits and gradients."""

import timm
import torch
import torchvision
from torch import nn

from golden.golden_file import GoldenFile
from golden.resnets import CLASSES, fill_parameters, fingerprint, put_gradients
from torch_models import shape_sha256

HIDDEN = 32  # of the classifiers in what is computed: the real ones' 4096 are 119 million weights


def make_network(name: str, num_classes: int, dropout: float | None = None) -> nn.Module:
    if name == "ghostnet_100":
        return timm.create_model(name, num_classes=num_classes, drop_rate=0.2 if dropout is None else dropout)
    return getattr(torchvision.models, name)(num_classes=num_classes, dropout=0.5 if dropout is None else dropout)


def narrow(name: str) -> nn.Module:
    """With few classes, a classifier of HIDDEN units and no dropout; drawn as torchvision draws its own."""
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
        settings = {"hidden": HIDDEN, "open_gates": open_gates}
        # Biases before a batch norm have no gradient but rounding noise.
        put_gradients(file, name, model, (seed, n, pixels), noise=1e-9, **settings)
    return file
