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


def adam() -> GoldenFile:
    """One row per step of the parameter, exp_avg and exp_avg_sq, as they are after that step."""
    file = GoldenFile("adam", "f32")

    def add(name: str, lr: list[float], scale=1.0, weight_decay=0.0, decoupled=False, betas=(0.9, 0.999), eps=1e-8):
        param, grads = torch.randn(19), scale * torch.randn(len(lr), 19)
        grads[0, 0] = grads[1, 0] = 0  # the square is 0 at first: only eps is below
        settings = {"weight_decay": weight_decay, "betas": betas, "eps": eps}
        file.case(name, lr=lr, decoupled=decoupled, **settings)
        file.put(param_before=param, grads=grads)
        param = nn.Parameter(param.clone())
        optimizer = (torch.optim.AdamW if decoupled else torch.optim.Adam)([param], **settings, foreach=False)
        rows = {"params": [], "exp_avgs": [], "exp_avg_sqs": []}
        for grad, step_lr in zip(grads, lr, strict=True):
            param.grad = grad.clone()
            optimizer.param_groups[0]["lr"] = step_lr
            optimizer.step()
            state = optimizer.state[param]
            for row, value in zip(rows.values(), (param.detach(), state["exp_avg"], state["exp_avg_sq"]), strict=True):
                row.append(value.clone())
        file.put(**{key: torch.stack(row) for key, row in rows.items()})

    add("adam", [1e-3] * 5)
    add("adam_weight_decay", [1e-3] * 5, weight_decay=0.1)
    add("adamw", [1e-3] * 5, weight_decay=0.1, decoupled=True)
    add("adamw_lr_changes", [0.1, 0.1, 0.01, 0.2], weight_decay=0.01, decoupled=True)
    add("betas", [1e-2] * 5, betas=(0.5, 0.9))
    add("large_eps", [1e-2] * 5, eps=0.1)
    add("tiny_gradients", [1e-3] * 4, scale=1e-7)  # eps inside the root would freeze them
    add("long", [1e-2] * 40, weight_decay=0.01, decoupled=True)
    return file
