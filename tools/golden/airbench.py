"""Golden values of airbench's networks: names, initial weights, logits, gradients, and steps after the whitening."""

import torch
import torch.nn.functional as F

from golden.golden_file import GoldenFile
from golden.resnets import CLASSES, fill_parameters, fingerprint, put_gradients
from torch_models import Airbench, shape_sha256


def airbench_init() -> GoldenFile:
    """Names, shapes and initial weights after manual_seed(42), before the whitening."""
    file = GoldenFile("airbench_init", "f32")
    documented = {94: 1_971_352, 95: 4_604_440, 96: 9_915_416}  # without the filters and the gains
    for accuracy, want in documented.items():
        torch.manual_seed(42)
        model = Airbench(accuracy)
        trained = [value for value in model.parameters() if value.requires_grad]
        parameters = sum(value.numel() for value in trained)
        assert parameters == want, (accuracy, parameters)
        file.case(
            f"airbench{accuracy}", accuracy=accuracy, entries=len(model.state_dict()), parameters=parameters,
            shape_sha256=shape_sha256(model),
        )  # fmt: skip
        file.put(**fingerprint(trained), filters=model[0].weight)
    return file


def airbench_gradients() -> GoldenFile:
    """Logits and gradients in double, as those of golden.resnets; the filters are those of manual_seed(0)."""
    file = GoldenFile("airbench_gradients", "f64")
    # accuracy: seed, images, pixels
    for accuracy, case in {94: (1, 4, 32), 96: (1, 2, 32)}.items():
        torch.manual_seed(0)
        model = Airbench(accuracy, CLASSES)
        fill_parameters(model, case[0])
        put_gradients(file, f"airbench{accuracy}", model, case, accuracy=accuracy)
    return file


def airbench_steps() -> GoldenFile:
    """The whitening of formula-made images, and three steps of airbench94 on them, in double."""
    file = GoldenFile("airbench_steps", "f64")
    n, steps, settings = 8, 3, {"lr": 0.05, "momentum": 0.85, "nesterov": True}
    mean, std = [0.4914, 0.4822, 0.4465], [0.2470, 0.2435, 0.2616]
    # Mixed twice: the high bits after once repeat, and windows of a pool with equal pixels have equal maxima.
    once = (torch.arange(n * 3 * 32 * 32) * 1103515245 + 12345) % 2**31
    pixels = (((once ^ (once // 2**15)) * 1103515245 + 12345) % 2**31 // 2**23).reshape(n, 3, 32, 32)  # bytes
    center, deviation = torch.tensor(mean).view(3, 1, 1), torch.tensor(std).view(3, 1, 1)
    exact = (pixels.double() / 255 - center.double()) / deviation.double()
    x, y = ((pixels.float() / 255 - center) / deviation).double(), torch.arange(n) % 10
    torch.manual_seed(42)
    model = Airbench(94).double()
    model.whiten(exact)
    file.case("airbench94", n=n, mean=mean, std=std, sgd=settings)
    file.put(filters=model[0].weight)
    optimizer = torch.optim.SGD([value for value in model.parameters() if value.requires_grad], **settings)
    losses = []
    for _ in range(steps):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        if len(losses) == 1:
            file.put(**{name: value for name, value in model.state_dict().items() if ".running_" in name})
    file.put(losses=torch.stack(losses), eval_logits=model.eval()(x))
    return file
