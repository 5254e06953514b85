"""Files of torch.save in the forms that users have, all of one tiny network (tests/trainers/tiny_run.h)."""

from pathlib import Path

import torch
from torch import nn


class TinyNet(nn.Module):
    """Tensor k of the state_dict holds k + i/64 for its elements i."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3, padding=1)
        self.bn = nn.BatchNorm2d(2)
        self.fc = nn.Linear(32, 3)
        for k, tensor in enumerate(self.state_dict().values()):
            values = k + torch.arange(tensor.numel()) / 64
            tensor.copy_(values.reshape(tensor.shape))


class TorchFiles:
    """The folder torch_files; its cases are its files. before_1_6.pth names memory addresses: it differs each time."""

    name = "torch_files"
    tensors: dict = {}

    def __init__(self) -> None:
        torch.manual_seed(0)
        net = TinyNet()
        parallel = nn.DataParallel(net)
        optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
        for parameter in net.parameters():
            parameter.grad = torch.zeros_like(parameter)
        optimizer.step()
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 30)
        grid = torch.arange(6.0).reshape(2, 3)
        scaler = {
            "scale": 65536.0,
            "growth_factor": 2.0,
            "backoff_factor": 0.5,
            "growth_interval": 2000,
            "_growth_tracker": 3,
        }
        self.cases = {
            "state_dict.pt": net.state_dict(),
            # pytorch/examples, imagenet/main.py
            "checkpoint.pth.tar": {
                "epoch": 3,
                "arch": "tiny",
                "state_dict": parallel.state_dict(),
                "best_acc1": torch.tensor(51.5),
                "optimizer": optimizer.state_dict(),
                "scheduler": scheduler.state_dict(),
            },
            # the second tutorial's
            "ddp_checkpoint.pt": {"model": parallel.state_dict(), "scaler": scaler},
            "types.pt": {
                "transposed": grid.t(),
                "column": grid[:, 1],
                "row": grid[1],
                "half": torch.tensor([0.5, -2.0]).half(),
                "bfloat16": torch.tensor([0.5, -2.0]).bfloat16(),
                "scalar": torch.tensor(2**40),
                "int": torch.tensor([-7], dtype=torch.int32),
                "byte": torch.tensor([200], dtype=torch.uint8),
                "empty": torch.zeros(0, 3),
                "parameter": nn.Parameter(torch.tensor([1.5])),
            },
            "double.pt": {"fc.weight": torch.zeros(2, dtype=torch.float64)},
            "expanded.pt": {"fc.weight": torch.zeros(1).expand(1000)},
            "tensor.pt": torch.zeros(2),
            "module.ckpt": nn.Linear(1, 1),
            "before_1_6.pth": {"fc.bias": torch.zeros(2)},
        }

    def write(self, out_dir: Path) -> None:
        folder = out_dir / self.name
        folder.mkdir(exist_ok=True)
        for file, content in self.cases.items():
            torch.save(content, folder / file, _use_new_zipfile_serialization=file != "before_1_6.pth")


def torch_files() -> TorchFiles:
    return TorchFiles()
