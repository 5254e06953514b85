"""Golden values of random numbers, sample orders and rounding."""

from itertools import product

import numpy as np
import torch
from timm.data.distributed_sampler import RepeatAugSampler
from torch import Tensor
from torch.utils.data.distributed import DistributedSampler

from golden.golden_file import GoldenFile, assert_near


def rng() -> GoldenFile:
    file = GoldenFile("rng", "f32")
    for seed in (0, 42, 2**32 + 42):  # of a seed only the low 32 bits count
        file.case(f"mt19937_seed{seed}", kind="mt19937", seed=seed)
        count = 1300  # past the second refill of the 624-word state
        u32 = torch.tensor(np.random.RandomState(seed % 2**32).randint(2**32, size=count, dtype=np.uint32)).long()
        low31 = torch.empty(count, dtype=torch.int32).random_(generator=torch.Generator().manual_seed(seed))
        assert torch.equal(u32 & 0x7FFFFFFF, low31.long()), "NumPy and PyTorch disagree"
        file.put(u32=u32)
    for seed in (0, 42):
        file.case(f"rand_seed{seed}", kind="rand", seed=seed)
        file.put(values=torch.rand(8, generator=torch.Generator().manual_seed(seed)))
        # Consecutive draws, concatenated. Below 16 values half of a pair may be left for the next such draw.
        for counts in ([4], [16], [37], [3, 16, 2]):
            file.case(f"randn{'_'.join(map(str, counts))}_seed{seed}", kind="randn", seed=seed, counts=counts)
            generator = torch.Generator().manual_seed(seed)
            file.put(values=torch.cat([torch.randn(count, generator=generator) for count in counts]))
    for seed, n in product((0, 1, 42), (10, 1000)):
        file.case(f"randperm{n}_seed{seed}", kind="randperm", seed=seed, n=n)
        file.put(indices=torch.randperm(n, generator=torch.Generator().manual_seed(seed)))
    for (n, world), drop_last, epoch in product([(10, 4), (101, 7)], (False, True), range(3)):
        name = f"sampler{n}_world{world}{'_drop_last' if drop_last else ''}_epoch{epoch}"
        file.case(name, kind="distributed_sampler", seed=0, n=n, world=world, epoch=epoch, drop_last=drop_last)
        samplers = [DistributedSampler(range(n), world, rank, drop_last=drop_last) for rank in range(world)]
        for sampler in samplers:
            sampler.set_epoch(epoch)
        file.put(indices=torch.tensor([list(sampler) for sampler in samplers]))
    assert file.tensors["randperm10_seed42.indices"].tolist() == [2, 6, 1, 8, 4, 5, 0, 9, 3, 7]
    assert file.tensors["sampler10_world4_epoch0.indices"].tolist() == [[4, 3, 6], [1, 9, 2], [7, 0, 4], [5, 8, 1]]
    assert file.tensors["sampler10_world4_drop_last_epoch0.indices"].tolist() == [[4, 3], [1, 9], [7, 0], [5, 8]]
    assert_near(file.tensors["rand_seed0.values"][:4], [0.4962566, 0.7682218, 0.0884774, 0.1320305])
    firsts = [file.tensors[f"randn{count}_seed0.values"][0] for count in (4, 16)]
    assert_near(torch.stack(firsts), [1.5409961, -1.1258398])
    return file


def repeat_sampler() -> GoldenFile:
    """Epoch 1 of timm's sampler, whose seed is the epoch alone. One row per rank."""
    file = GoldenFile("repeat_sampler", "f32")
    for n, world, repeats in [(10, 1, 3), (10, 4, 3), (300, 1, 2), (600, 2, 3), (600, 4, 4)]:
        file.case(f"n{n}_world{world}_x{repeats}", n=n, world=world, repeats=repeats)
        samplers = [RepeatAugSampler(range(n), world, rank, num_repeats=repeats) for rank in range(world)]
        for sampler in samplers:
            sampler.set_epoch(1)
        file.put(indices=torch.tensor([list(sampler) for sampler in samplers]))
    return file


def cast() -> GoldenFile:
    """Bit patterns as i32. Any NaN is stored as the quiet one, 0x7E00 or 0x7FC0: which one is left open."""
    file = GoldenFile("cast", "f32")
    # Around every pattern h: the value, the midpoint to the next one (a tie), and the midpoint's two f32 neighbors.
    patterns = {
        torch.float16: [0, 1, 2, 3, 0x3FE, 0x3FF, 0x400, 0x401, 0x3BFF, 0x3C00, 0x3C01, 0x3C02, 0x7BFD, 0x7BFE, 0x7BFF],
        torch.bfloat16: [0, 1, 2, 0x7E, 0x7F, 0x80, 0x3F7F, 0x3F80, 0x3F81, 0x3F82, 0x7F7D, 0x7F7E, 0x7F7F],
    }
    values = [0.0, 1e-45, 1.17549421e-38, 1.17549435e-38, 1e-8, 0.1, 1 / 3, 3.14159265, 65535, 65536, 1e5, 3.4028235e38]
    positive = [torch.tensor([*values, float("inf")])]
    for dtype, codes in patterns.items():
        lower = torch.tensor(codes, dtype=torch.int16).view(dtype).double()
        upper = (torch.tensor(codes, dtype=torch.int16) + 1).view(dtype).double()
        upper[upper.isinf()] = 2.0 ** (16 if dtype == torch.float16 else 128)
        tie = ((lower + upper) / 2).float()
        positive += [lower.float(), tie, tie.nextafter(2 * tie), tie.nextafter(0 * tie)]
    magnitudes = torch.cat(positive)
    x = torch.cat([magnitudes, -magnitudes, torch.tensor([float("nan"), -float("nan")])])

    def bits(dtype: torch.dtype, quiet_nan: int) -> Tensor:
        return torch.where(x.isnan(), quiet_nan, x.to(dtype).view(torch.int16).int() & 0xFFFF).int()

    file.case("awkward")
    file.put(input=x, f16_bits=bits(torch.float16, 0x7E00), bf16_bits=bits(torch.bfloat16, 0x7FC0))
    return file
