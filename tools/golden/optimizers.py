"""Golden values of optimizers."""

import torch
from torch import Tensor, nn

from golden.golden_file import GoldenFile, assert_near


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
