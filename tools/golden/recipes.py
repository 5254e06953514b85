"""Golden values of ImageNet recipes: the learning rate of each epoch by the schedulers that they train with."""

import torch
from timm.scheduler import CosineLRScheduler, PolyLRScheduler
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR

from golden.golden_file import GoldenFile


def optimizer(lr: float) -> torch.optim.Optimizer:
    return torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=lr)


def torchvision_rates(epochs: int, lr: float, warmup: int) -> list[float]:
    """references/classification/train.py with --lr-scheduler cosineannealinglr --lr-warmup-method linear."""
    sgd = optimizer(lr)
    rise = LinearLR(sgd, start_factor=0.01, total_iters=warmup)
    fall = CosineAnnealingLR(sgd, T_max=epochs - warmup)
    schedule = SequentialLR(sgd, [rise, fall], milestones=[warmup])
    rates = []
    for _ in range(epochs):
        rates.append(sgd.param_groups[0]["lr"])
        sgd.step()
        schedule.step()
    return rates


def timm_rates(epochs: int, lr: float, warmup: int) -> list[float]:
    """train.py with --sched cosine and its defaults of 2021: --warmup-lr 1e-4 --min-lr 1e-6, by epochs."""
    sgd = optimizer(lr)
    schedule = CosineLRScheduler(sgd, t_initial=epochs, lr_min=1e-6, warmup_t=warmup, warmup_lr_init=1e-4)
    rates = []
    for epoch in range(epochs):
        rates.append(sgd.param_groups[0]["lr"])
        schedule.step(epoch + 1)
    return rates


def timm_updates(kind: type, **more: float) -> list[float]:
    """Rates of the steps of four epochs of five, of which two are warm-up."""
    sgd = optimizer(0.1)
    schedule = kind(sgd, t_initial=20, warmup_t=10, warmup_lr_init=0.025, t_in_epochs=False, **more)
    rates = []
    for step in range(20):
        rates.append(sgd.param_groups[0]["lr"])
        schedule.step_update(step + 1)
    return rates


def recipe_rates() -> GoldenFile:
    file = GoldenFile("recipe_rates", "f64")
    for name, rates_of, epochs, lr in [
        ("torchvision-v2", torchvision_rates, 600, 0.5),
        ("rsb-a2", timm_rates, 300, 5e-3),
        ("rsb-a3", timm_rates, 100, 8e-3),
    ]:
        file.case(name, epochs=epochs)
        file.put(rates=torch.tensor(rates_of(epochs, lr, 5)))
    file.case("cosine")
    file.put(rates=torch.tensor(timm_updates(CosineLRScheduler, lr_min=0.01)))
    file.case("poly")
    file.put(rates=torch.tensor(timm_updates(PolyLRScheduler, power=0.9)))
    return file
