"""The tutorials' two networks in PyTorch, and how their parameters are digested."""

import hashlib

import torch
from torch import nn


class ConvNet(nn.Module):
    """Tutorial 002: 29,034 parameters, input (N, 1, 28, 28)."""

    def __init__(self) -> None:
        super().__init__()
        self.layer1 = nn.Sequential(nn.Conv2d(1, 16, 5, padding=2), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2))
        self.layer2 = nn.Sequential(nn.Conv2d(16, 32, 5, padding=2), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2))
        self.fc = nn.Linear(7 * 7 * 32, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(self.layer2(self.layer1(x)).flatten(1))


class Toy_Net(nn.Module):  # named as in the tutorial
    """Tutorial 000: 5,752,714 parameters, input (N, 1, 28, 28)."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, 64, 3), nn.BatchNorm2d(64), nn.ReLU(),
            nn.Conv2d(64, 128, 3), nn.BatchNorm2d(128), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(128, 256, 3), nn.BatchNorm2d(256), nn.ReLU(),
            nn.Conv2d(256, 512, 3), nn.BatchNorm2d(512), nn.ReLU(), nn.MaxPool2d(2),
        )  # fmt: skip
        self.dense = nn.Sequential(
            nn.Flatten(), nn.Linear(8192, 512), nn.BatchNorm1d(512), nn.ReLU(), nn.Linear(512, 10)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.dense(self.conv(x))


def param_sha256(model: nn.Module) -> str:
    """Digest of all parameters' bytes, in the order of parameters()."""
    digest = hashlib.sha256()
    for param in model.parameters():
        digest.update(param.detach().numpy().tobytes())
    return digest.hexdigest()


def shape_sha256(model: nn.Module) -> str:
    """Digest of one line "name<TAB>dim,dim,..." per state-dict entry, in its order."""
    lines = [f"{name}\t{','.join(map(str, value.shape))}\n" for name, value in model.state_dict().items()]
    return hashlib.sha256("".join(lines).encode()).hexdigest()
