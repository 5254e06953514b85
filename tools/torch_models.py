"""Networks in PyTorch that torchvision does not have, and how parameters are digested."""

import hashlib

import torch
import torch.nn.functional as F
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


class CifarBlock(nn.Module):
    """Two 3x3 convolutions; the shortcut takes every other pixel and pads channels with zeros (option A)."""

    def __init__(self, in_channels: int, planes: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, planes, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.padding = (planes - in_channels) // 2

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        if self.padding:
            x = F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.padding, self.padding))
        return F.relu(out + x)


class CifarResNet(nn.Module):
    """The CIFAR-10 networks of He et al. 2015: depth = 6 n + 2."""

    def __init__(self, depth: int, num_classes: int = 10) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        n = depth // 6
        self.layer1 = nn.Sequential(*(CifarBlock(16, 16, 1) for _ in range(n)))
        self.layer2 = nn.Sequential(*(CifarBlock(16 if b == 0 else 32, 32, 2 if b == 0 else 1) for b in range(n)))
        self.layer3 = nn.Sequential(*(CifarBlock(32 if b == 0 else 64, 64, 2 if b == 0 else 1) for b in range(n)))
        self.linear = nn.Linear(64, num_classes)
        for module in self.modules():
            if isinstance(module, (nn.Conv2d, nn.Linear)):
                nn.init.kaiming_normal_(module.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.relu(self.bn1(self.conv1(x)))
        return self.linear(self.layer3(self.layer2(self.layer1(x))).mean((2, 3)))


class AirbenchGroup(nn.Module):
    """Halves the image between two convolutions; a third one, and a sum around the last two, where residual is set."""

    def __init__(self, in_channels: int, channels: int, momentum: float, residual: bool) -> None:
        super().__init__()
        for i in range(3 if residual else 2):
            conv = nn.Conv2d(channels if i else in_channels, channels, 3, padding=1, bias=False)
            nn.init.dirac_(conv.weight.data[: conv.in_channels])
            norm = nn.BatchNorm2d(channels, eps=1e-12, momentum=momentum)
            norm.weight.requires_grad_(False)
            self.add_module(f"conv{i + 1}", conv)
            self.add_module(f"norm{i + 1}", norm)
        self.residual = residual

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        half = F.gelu(self.norm1(F.max_pool2d(self.conv1(x), 2)))
        y = F.gelu(self.norm2(self.conv2(half)))
        return F.gelu(self.norm3(self.conv3(y)) + half) if self.residual else y


class Scale(nn.Module):
    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.factor


class Airbench(nn.Sequential):
    """The networks of arXiv 2404.00498, with the original's names."""

    def __init__(self, accuracy: int, num_classes: int = 10) -> None:
        widths = {94: (64, 256, 256), 95: (128, 384, 384), 96: (128, 384, 512)}[accuracy]
        whitening = nn.Conv2d(3, 24, 2)
        whitening.weight.requires_grad_(False)
        nn.init.zeros_(whitening.bias)
        groups = [
            AirbenchGroup(a, b, 0.1 if accuracy == 96 else 0.4, accuracy == 96)
            for a, b in zip((24, *widths), widths)
        ]
        linear = nn.Linear(widths[-1], num_classes, bias=False)
        super().__init__(whitening, nn.GELU(), *groups, nn.MaxPool2d(3), nn.Flatten(), linear, Scale(1 / 9))

    def whiten(self, images: torch.Tensor) -> None:
        """Eigenvectors of the patches' second moments, largest first, then their opposites. Of the two signs an
        eigenvector may have, the first half has the one that makes its component of largest magnitude positive."""
        patches = F.unfold(images, 2).transpose(1, 2).reshape(-1, 12)
        values, vectors = torch.linalg.eigh(patches.T @ patches / len(patches))
        signs = vectors.gather(0, vectors.abs().argmax(0, keepdim=True)).sign()
        filters = (vectors * signs / (values + 5e-4).sqrt()).T.flip(0).reshape(12, 3, 2, 2)
        self[0].weight.data.copy_(torch.cat([filters, -filters]))


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
