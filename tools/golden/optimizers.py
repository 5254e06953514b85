"""Golden values of optimizers."""

import torch
from timm.optim import Lamb
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


def param_groups() -> GoldenFile:
    """Ten steps, five epochs of two, at lr * (1 - step / 10), with --param-groups "*.norm lr=64 wd=0.015625; *.bias
    lr=0.5 epochs=3": the bias has no gradient from step 6 on. One row per step of each parameter."""
    file = GoldenFile("param_groups", "f32")
    shapes = {"a.weight": (3, 8), "a.bias": (3,), "a.norm": (3,)}
    factors = {"a.weight": (1.0, 1.0), "a.bias": (0.5, 1.0), "a.norm": (64.0, 1 / 64)}

    def add(name: str, adamw=False, clip=0.0) -> None:
        lr, weight_decay, steps = (1e-3 if adamw else 0.02), 0.05, 10
        file.case(name, adamw=adamw, clip=clip)
        grads = {key: torch.randn(steps, *shape) for key, shape in shapes.items()}
        params = {key: nn.Parameter(torch.randn(shape)) for key, shape in shapes.items()}
        file.put(**{f"{key}.before": param for key, param in params.items()})
        file.put(**{f"{key}.grads": grad for key, grad in grads.items()})
        groups = [{"params": [params[key]], "weight_decay": factors[key][1] * weight_decay} for key in shapes]
        if adamw:
            optimizer = torch.optim.AdamW(groups, foreach=False)
        else:
            optimizer = torch.optim.SGD(groups, lr=lr, momentum=0.85, nesterov=True, foreach=False)
        rows = {key: [] for key in shapes}
        for step in range(steps):
            for group, key in zip(optimizer.param_groups, shapes, strict=True):
                group["lr"] = factors[key][0] * lr * (1 - step / steps)
                params[key].grad = None if key == "a.bias" and step >= 6 else grads[key][step].clone()
            if clip:
                torch.nn.utils.clip_grad_norm_(params.values(), clip, foreach=False)
            optimizer.step()
            for key, row in rows.items():
                row.append(params[key].detach().clone())
        file.put(**{f"{key}.after": torch.stack(row) for key, row in rows.items()})

    add("sgd")
    add("sgd_clipped", clip=1.0)
    add("adamw", adamw=True)
    return file


def lookahead_airbench() -> GoldenFile:
    """Twelve steps of the Lookahead in airbench94, over a parameter and a buffer that steps change: weights and buffers
    after each step, and after the run's end."""
    file = GoldenFile("lookahead_airbench", "f32")
    file.case("run")
    steps = 12
    param, buffer = nn.Parameter(torch.randn(19)), torch.randn(5)
    grads, changes = torch.randn(steps, 19), torch.randn(steps, 5)
    file.put(param_before=param, buffer_before=buffer, grads=grads, changes=changes)
    optimizer = torch.optim.SGD([param], lr=0.1, momentum=0.85, nesterov=True, weight_decay=0.01, foreach=False)
    fast = [param.data, buffer]
    slow = [value.clone() for value in fast]

    def meet(keep: float) -> None:
        for mine, other in zip(slow, fast, strict=True):
            mine.lerp_(other, 1 - keep)
            other.copy_(mine)

    rows = {"params": [], "buffers": []}
    for step in range(1, steps + 1):
        buffer.mul_(0.5).add_(changes[step - 1])
        param.grad = grads[step - 1].clone()
        optimizer.step()
        if step % 5 == 0:
            meet(0.95**5 * (step / steps) ** 3)
        for row, value in zip(rows.values(), fast, strict=True):
            row.append(value.clone())
    meet(1.0)
    file.put(**{key: torch.stack(row) for key, row in rows.items()}, param_at_end=fast[0], buffer_at_end=fast[1])
    return file


def muon() -> GoldenFile:
    """Ten steps of Keller Jordan's rule for a matrix that is wide, one that is tall and a convolution's, and of SGD for
    a bias at twice the rate. One row per step. He iterates in bf16."""
    file = GoldenFile("muon", "f32")
    shapes = {"wide": (6, 10), "tall": (9, 4), "conv": (4, 3, 2, 2), "bias": (6,)}
    lr, steps = 0.02, 10

    def orthogonalized(update: Tensor, dtype: torch.dtype) -> Tensor:
        a, b, c = 3.4445, -4.7750, 2.0315
        x = update.flatten(1).to(dtype)
        tall = len(x) > x.size(1)
        x = x.T if tall else x
        x = x / (x.norm() + 1e-7)
        for _ in range(5):
            gram = x @ x.T
            x = a * x + (b * gram + c * gram @ gram) @ x
        return (x.T if tall else x).reshape(update.shape)

    def add(name: str, momentum: float, nesterov: bool, weight_decay: float, dtype=torch.float32) -> None:
        is_bf16 = dtype == torch.bfloat16
        file.case(name, momentum=momentum, nesterov=nesterov, weight_decay=weight_decay, bf16=is_bf16)
        grads = {key: torch.randn(steps, *shape) for key, shape in shapes.items()}
        params = {key: nn.Parameter(torch.randn(shape)) for key, shape in shapes.items()}
        file.put(**{f"{key}.before": param for key, param in params.items()})
        for step in range(steps):
            file.put(**{f"{key}.grad{step}": grad[step] for key, grad in grads.items()})
        kinds = {"momentum": momentum, "nesterov": nesterov, "weight_decay": weight_decay, "foreach": False}
        sgd = torch.optim.SGD([params["bias"]], lr=2 * lr, **kinds)
        buffers = {key: torch.zeros(shape) for key, shape in shapes.items()}
        for step in range(steps):
            params["bias"].grad = grads["bias"][step].clone()
            sgd.step()
            for key, param in params.items():
                if key == "bias":
                    continue
                grad, buffer = grads[key][step], buffers[key]
                buffer.lerp_(grad, 1 - momentum)
                update = orthogonalized(grad.lerp(buffer, momentum) if nesterov else buffer, dtype)
                rows, columns = len(param), param[0].numel()
                param.data.mul_(1 - lr * weight_decay).add_(update, alpha=-lr * max(1, rows / columns) ** 0.5)
            file.put(**{f"{key}.after{step}": param for key, param in params.items()})

    add("nesterov", 0.95, True, 0.1)
    add("plain", 0.85, False, 0.0)
    add("bf16", 0.95, True, 0.1, torch.bfloat16)
    return file


def lamb() -> GoldenFile:
    """Ten steps of timm's Lamb for two matrices and a convolution that are decayed, a matrix of zeros among them, and
    a bias that is not."""
    file = GoldenFile("lamb", "f32")
    shapes = {"matrix": (6, 10), "conv": (4, 3, 2, 2), "zeros": (3, 5), "bias": (6,)}
    steps = 10

    def add(name: str, size: float, weight_decay: float, max_grad_norm: float | None = 1.0) -> None:
        lr = [0.02 * (1 - step / steps) for step in range(steps)]
        file.case(name, lr=lr, weight_decay=weight_decay, max_grad_norm=max_grad_norm or 0.0)
        params = {key: nn.Parameter(torch.randn(shape)) for key, shape in shapes.items()}
        params["zeros"].data.zero_()
        grads = {key: size * torch.randn(steps, *shape) for key, shape in shapes.items()}
        file.put(**{f"{key}.before": param for key, param in params.items()})
        groups = [
            {"params": [param], "weight_decay": 0.0 if key == "bias" else weight_decay} for key, param in params.items()
        ]
        optimizer = Lamb(groups, max_grad_norm=max_grad_norm, foreach=False)
        for step in range(steps):
            for group, (key, param) in zip(optimizer.param_groups, params.items(), strict=True):
                group["lr"] = lr[step]
                param.grad = grads[key][step].clone()
            file.put(**{f"{key}.grad{step}": param.grad for key, param in params.items()})
            optimizer.step()
            file.put(**{f"{key}.after{step}": param for key, param in params.items()})

    add("clipped", 1.0, 0.02)
    add("within_the_limit", 0.01, 0.02)  # all gradients together have a norm of about 0.14
    add("without_limit", 3.0, 0.1, max_grad_norm=None)
    add("without_decay", 1.0, 0.0)
    return file


def loss_scale() -> GoldenFile:
    """torch.amp.GradScaler over overflows. One row per step: grads before scaling; scales, growth_trackers and params
    as they are after it. The optimizer's learning rate is lr[steps applied so far]."""
    file = GoldenFile("loss_scale", "f32")

    def add(name: str, bad_steps: dict[int, float], size=1.0, steps=24, adam=False, **settings) -> None:
        lr = [0.1 * 0.9**step for step in range(steps)]
        file.case(name, lr=lr, adam=adam, momentum=0.9, weight_decay=0.01, **settings)
        param, grads = nn.Parameter(torch.randn(5)), size * torch.randn(steps, 5)
        for step, value in bad_steps.items():
            grads[step, step % 5] = value
        file.put(param_before=param, grads=grads)
        kinds = {"weight_decay": 0.01, "foreach": False}
        optimizer = torch.optim.Adam([param], **kinds) if adam else torch.optim.SGD([param], momentum=0.9, **kinds)
        scaler = torch.amp.GradScaler("cpu", **settings)
        applied, rows = 0, {"scales": [], "growth_trackers": [], "params": []}
        for step, grad in enumerate(grads):
            param.grad = scaler.scale(grad).clone()
            optimizer.param_groups[0]["lr"] = lr[applied]
            before = param.detach().clone()
            scaler.step(optimizer)
            scaler.update()
            assert torch.equal(param, before) == (step in bad_steps)
            applied += step not in bad_steps
            values = scaler._scale, scaler._growth_tracker, param.detach()
            for row, value in zip(rows.values(), values, strict=True):
                row.append(value.clone())
        file.put(**{key: torch.stack(row) for key, row in rows.items()})

    inf, nan = float("inf"), float("nan")
    bad_steps = {0: inf, 1: -inf, 7: nan, 8: inf, 12: inf, 20: nan}
    add("sgd", bad_steps, init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5, growth_interval=3)
    add("adam", bad_steps, adam=True, init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5, growth_interval=3)
    add("odd_factors", bad_steps, init_scale=1000.0, growth_factor=1.7, backoff_factor=0.3, growth_interval=2)
    largest = {"init_scale": 2.0**126, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 1}
    add("no_growth_to_infinity", {3: inf}, size=1e-6, steps=6, **largest)
    assert file.tensors["no_growth_to_infinity.scales"].log2().tolist() == [127, 127, 127, 126, 127, 127]
    return file
