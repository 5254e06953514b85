"""torchvision's resnet18 and resnet50, layer for layer, where PyTorch is alone."""

from torch import Tensor, nn


def conv_bn(inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(outputs)
    )


class Block(nn.Module):
    """Two 3x3 convolutions; or a bottleneck, strided at its 3x3 convolution."""

    def __init__(self, inputs: int, width: int, outputs: int, stride: int) -> None:
        super().__init__()
        relu = nn.ReLU(inplace=True)
        if outputs == width:
            layers = [*conv_bn(inputs, width, 3, stride), relu, *conv_bn(width, width, 3)]
        else:
            layers = [*conv_bn(inputs, width, 1), relu, *conv_bn(width, width, 3, stride), relu]
            layers += conv_bn(width, outputs, 1)
        self.layers = nn.Sequential(*layers)
        self.shortcut = nn.Identity() if inputs == outputs and stride == 1 else conv_bn(inputs, outputs, 1, stride)
        self.relu = relu

    def forward(self, x: Tensor) -> Tensor:
        out = self.layers(x)
        out += self.shortcut(x)
        return self.relu(out)


def resnet(depth: int, classes: int, cifar_stem: bool) -> nn.Sequential:
    """CIFAR's stem: a 3x3 convolution, no pooling."""
    counts, expansion = {18: ((2, 2, 2, 2), 1), 50: ((3, 4, 6, 3), 4)}[depth]
    layers = [*(conv_bn(3, 64, 3) if cifar_stem else conv_bn(3, 64, 7, 2)), nn.ReLU(inplace=True)]
    if not cifar_stem:
        layers.append(nn.MaxPool2d(3, 2, 1))
    channels = 64
    for stage, count in enumerate(counts):
        width = 64 << stage
        for block in range(count):
            stride = 2 if stage > 0 and block == 0 else 1
            layers.append(Block(channels, width, expansion * width, stride))
            channels = expansion * width
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes)]
    for layer in (module for part in layers for module in part.modules()):
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
    return nn.Sequential(*layers)
