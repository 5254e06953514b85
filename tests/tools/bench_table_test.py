"""tools/bench_table.py and the scripts of bench/: from what programs print to a table."""

import contextlib
import io
import json
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path += [str(ROOT / "tools"), str(ROOT / "bench")]
import allreduce_speed  # noqa: E402
import bench_table  # noqa: E402
import cifar94_seeds  # noqa: E402
import cifar_resnet20  # noqa: E402
import resnet_speed  # noqa: E402
import side_by_side  # noqa: E402
import step_by_kernel  # noqa: E402

PEER_OUTPUT = """mpi np=2 bytes=4096 median_us=3.0 min_us=2.0
mpi np=2 bytes=1048576 median_us=500.5 min_us=300.0
mpi(inplace) np=2 bytes=4096 median_us=2.5 min_us=2.0
"""


class AllreduceSpeed(unittest.TestCase):
    def test_sizes(self):
        self.assertEqual([allreduce_speed.parse_size(text) for text in ("96", "4K", "25M")], [96, 4096, 25 << 20])

    def test_the_later_line_of_a_size_is_the_one_in_place(self):
        self.assertEqual(allreduce_speed.times_printed(PEER_OUTPUT), {4096: 2.5, 1048576: 500.5})

    def test_a_ratio_is_that_of_the_medians(self):
        rounds = [{"lockstep": {4096: a}, "gloo": {4096: b}} for a, b in ((1, 10), (2, 30), (4, 44))]
        row = allreduce_speed.summary(rounds, 2, 4096)
        self.assertEqual((row["lockstep_us"], row["gloo_us"]), (2, 30))
        self.assertEqual(row["gloo_ratio"], {"ratio": 15.0, "min": 10, "max": 15, "rounds": 3})


class SideBySide(unittest.TestCase):
    def test_a_noisy_round_is_repeated_but_not_for_ever(self):
        for noise, calls in (([50, 5, 5], 3), ([50, 50, 50, 50], 4)):
            shares = iter(noise)
            side_by_side.Neighbors = lambda: type("Fake", (), {"percent": lambda self: next(shares)})()
            ran = []
            with contextlib.redirect_stdout(io.StringIO()):
                kept, _ = side_by_side.run_rounds({"lockstep": lambda: ran.append(1)}, 2, 15, "test")
            self.assertEqual((len(kept), len(ran)), (2, calls))


    def test_the_ratio_is_of_medians_and_its_bounds_of_single_rounds(self):
        self.assertEqual(
            side_by_side.ratio([10, 30, 20], [10, 10, 10]), {"ratio": 2.0, "min": 1.0, "max": 3.0, "rounds": 3}
        )

    def test_a_part_replaces_itself_alone(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            path = Path(folder, "new", "r.json")
            for part in ({"a": 1}, {"b": 2}, {"a": 3}):
                side_by_side.merge_result(path, part)
            self.assertEqual(json.loads(path.read_text()), {"a": 3, "b": 2})


ORIGIN = {"script": "s.py", "date": "2026-01-01", "commit": "abc", "cpu": "CPU", "cores": 2}


class ResnetSpeed(unittest.TestCase):
    ROUNDS = [
        {"lockstep": {"images_per_s": a, "peak_rss_mib": 600.0}, "torch": {"images_per_s": b, "peak_rss_mib": 1000.0}}
        for a, b in ((110, 100), (120, 100), (130, 104))
    ]

    def test_a_part_of_the_table(self):
        variant = resnet_speed.summary(self.ROUNDS, "lockstep", "torch")
        self.assertEqual(variant["speed"], {"ratio": 1.2, "min": 1.1, "max": 1.25, "rounds": 3})
        part = ORIGIN | {"title": "ResNet-18", "batch": 128, "torch": "2", "best": variant}
        row = "| ResNet-18, batch 128 | 120.0 images/s | 100.0 | 1.20 (1.10-1.25) |  | 600 and 1,000 MiB: 0.60 |"
        self.assertEqual(bench_table.resnet_rows({"r18": part})[2], row)
        row = bench_table.resnet_rows({"r18": part | {"stock": variant}})[2]
        self.assertIn("| 100.0: 1.20 (1.10-1.25) | 600", row)
        self.assertEqual(row.count("|"), 7)


METRICS = """{"split": "train", "epoch": 0, "loss_avg": 3.0}
{"split": "train", "epoch": 0, "loss_avg": 1.7}
{"split": "val", "epoch": 0, "correct": 5000}
{"split": "train", "epoch": 1, "loss_avg": 0.9}
{"split": "val", "epoch": 1, "correct": 5000}
"""


class StepByKernel(unittest.TestCase):
    def test_multiplications_of_a_forward_pass_are_those_that_papers_give(self):
        """ResNet-20's and ResNet-50's of He et al., in millions."""
        self.assertAlmostEqual(step_by_kernel.resnet20().forward / 1e6, 40.6, delta=0.1)
        self.assertAlmostEqual(step_by_kernel.resnet50().forward / 1e6, 4089, delta=1)

    def test_a_backward_pass_has_two_products_but_none_for_images_and_frozen_weights(self):
        for work, missing in (
            (step_by_kernel.convnet(), 28 * 28 * 16 * 25),
            (step_by_kernel.airbench94(), 2 * 31 * 31 * 3 * 24 * 4),
        ):
            self.assertEqual(work.backward, 2 * work.forward - missing)

    def test_rates_count_forward_and_backward_products(self):
        work = step_by_kernel.Work(forward=10**9, backward=2 * 10**9, norm_elements=10**6)
        network = step_by_kernel.Network("Net", 2, [], work, 1)
        rates = step_by_kernel.rates(network, "f32", {"conv2d": 10.0, "linear": 2.0, "batch_norm": 64.0})
        self.assertEqual(rates, {"product": 1000.0, "copy": 1.0})


class CifarResnet20(unittest.TestCase):
    def test_the_band_is_widened_by_a_third_on_both_sides(self):
        self.assertEqual(cifar_resnet20.band([[1, 5], [4, 5], [2, 5]]), [(0, 5), (5, 5)])

    def test_an_epochs_last_line_is_its_mean(self):
        self.assertEqual(cifar_resnet20.curve_of(METRICS), {"loss": [1.7, 0.9], "correct": [5000, 5000]})

    def test_each_epoch_is_judged_and_shown(self):
        curve = cifar_resnet20.beside_bands(cifar_resnet20.curve_of(METRICS))
        self.assertEqual(curve["loss_inside"], [True, False])  # the second from 0.981 on
        self.assertEqual(curve["correct_inside"], [True, False])
        speed = ORIGIN | {
            "torch": "2", "steps": 150, "lockstep_images_per_s": 800, "torch_images_per_s": 600,
            "speed": {"ratio": 1.333, "min": 1.3, "max": 1.4, "rounds": 5},
        }  # fmt: skip
        rows = bench_table.learning_rows({"one_rank": ORIGIN | curve, "speed": speed})
        self.assertEqual(rows[3], "| 1 rank | 1.700 | 0.900 |")
        self.assertIn("800 images/s, PyTorch 2 with channels_last and tcmalloc 600: 1.33 (1.30-1.40)", rows[-1])


class Cifar94Seeds(unittest.TestCase):
    def test_only_a_run_that_ended_well_counts(self):
        self.assertEqual(cifar94_seeds.correct_images({"exit_code": 0, "final": {"correct": 9400}}), 9400)
        for unfinished in ({"exit_code": None, "final": None}, {"exit_code": 75, "final": {"correct": 9400}}):
            self.assertIsNone(cifar94_seeds.correct_images(unfinished))

    def test_seeds_are_in_order_with_their_mean_and_deviation(self):
        result = ORIGIN | cifar94_seeds.summary({"10": 9410, "2": 9390, "0": 9403})
        rows = bench_table.seed_rows(result)
        self.assertEqual(rows[0], "| seed | 0 | 2 | 10 | mean |")
        self.assertEqual(rows[2], "| accuracy, % | 94.03 | 93.90 | 94.10 | 94.01, standard deviation 0.10 |")
        self.assertIn("| 94.10 |", bench_table.seed_rows(ORIGIN | cifar94_seeds.summary({"10": 9410}))[2])


class LoaderTable(unittest.TestCase):
    def test_a_row_for_each_pipeline(self):
        ratio = {"ratio": 1.75, "min": 1.6, "max": 1.8, "rounds": 5}
        result = ORIGIN | {"workers": 2, "lockstep_images_per_s": 1900, "over_pil": ratio, "over_v2": ratio}
        rows = bench_table.loader_rows(result | {"pil_images_per_s": 800, "v2_images_per_s": 1100})
        self.assertEqual(rows[2], "| Lockstep | 1,900 | |")
        self.assertEqual(rows[4], "| torchvision: decode_image and transforms.v2 | 1,100 | 1.75 (1.60-1.80) |")


class BenchTable(unittest.TestCase):
    RESULT = {
        "script": "s.py", "date": "2026-01-01", "commit": "abc", "cpu": "CPU", "cores": 2, "rounds": 5,
        "peers": {"open_mpi": "Open MPI 4", "gloo": "PyTorch 2"},
        "results": [{
            "ranks": 2, "bytes": 25 << 20, "lockstep_us": 1048.576,
            "open_mpi_us": 5200.0, "open_mpi_ratio": {"ratio": 5.0, "min": 4.5, "max": 5.5},
            "gloo_us": 20000.0, "gloo_ratio": {"ratio": 19.0, "min": 18.0, "max": 20.0},
        }],
    }  # fmt: skip

    def test_a_row_holds_times_bandwidth_and_ratios(self):
        head, _, row, *_ = bench_table.allreduce_rows(self.RESULT)
        self.assertEqual(head, "| all-reduce in place, f32 | ranks | Lockstep | Open MPI | gloo |")
        self.assertEqual(
            row, "| 25 MiB | 2 | 1.05 ms, 25.0 GB/s | 5.2 ms: 5.0x (4.5-5.5) | 20 ms: 19.0x (18.0-20.0) |"
        )

    def test_without_peers_there_are_no_columns_of_theirs(self):
        rows = bench_table.allreduce_rows(self.RESULT | {"peers": {}})
        self.assertEqual(rows[0].count("|"), 4)

    def test_the_short_table_takes_its_rows_from_several_results(self):
        speed = {"ratio": 1.5, "min": 1.4, "max": 1.6}
        networks = {
            name: {
                "title": name, "batch": 8,
                "best": {"speed": speed, "lockstep": {"images_per_s": 30.0}, "torch": {"images_per_s": 20.0}},
            }
            for name in ("r18", "r18_avx2", "ddp_avx2", "r50", "r50_bf16")
        }  # fmt: skip
        scaling = {"speed": speed, "two_ranks": {"images_per_s": 60.0}, "one_rank": {"images_per_s": 40.0}}
        pair = {"a_images_per_s": 9000, "b_images_per_s": 3000, "speed": {"ratio": 3, "min": 2, "max": 4}}
        mnist = {"lockstep": {"seconds": 2.21}, "torch": {"seconds": 7.73, "ratio": speed}}
        rows = bench_table.summary_rows(
            ORIGIN | {"over_pytorch": pair},
            networks | {"scaling": scaling},
            self.RESULT,
            {"mnist": {"bf16": mnist}, "cifar94_avx2": {"f32": mnist}},
        )
        self.assertEqual(rows[2], "| ConvNet on MNIST, batch 32 | 9,000 images/s | PyTorch: 3,000 | 3.00 (2.00-4.00) |")
        self.assertEqual(
            rows[3], "| MNIST to 99.0 %, whole process, bf16 | 2.2 s | PyTorch: 7.7 s | 1.50 (1.40-1.60) |")
        self.assertEqual(
            rows[4], "| CIFAR-10 to 94 %, whole process, f32, AVX2 | 2 s | PyTorch: 8 s | 1.50 (1.40-1.60) |")
        self.assertEqual(rows[8], "| r50, batch 8 | 30.0 images/s | PyTorch: 20.0 | 1.50 (1.40-1.60) |")
        self.assertIn("| 60.0 images/s | 1 rank of 1 thread: 40.0 | 1.50", rows[10])
        self.assertEqual(rows[11], "| all-reduce of 25 MiB, 2 ranks | 1.05 ms | Open MPI: 5.2 ms | 5.00 (4.50-5.50) |")

    def test_parts_that_are_measured_have_rows_of_time_to_an_accuracy(self):
        def side(seconds: float) -> dict:
            accuracy = {"accuracy_mean": 0.9912, "accuracy_min": 0.99, "accuracy_max": 0.992}
            return {"seconds": seconds, "images_per_s": 1000} | accuracy

        ratio = {"ratio": 3.5, "min": 3.4, "max": 4.3}
        part = {"lockstep": side(2), "lockstep_2_ranks": side(1.5), "torch": side(7) | {"ratio": ratio}}
        speed = {"lockstep": {"images_per_s": 450.0}, "torch": {"images_per_s": 180.0, "ratio": ratio}}
        scaling = {"two_ranks": {"images_per_s": 440.5}, "one_rank": {"images_per_s": 230.5, "ratio": ratio}}
        rows = bench_table.time_to_accuracy_rows({
            "mnist": ORIGIN | {"bf16": part},
            "speed_avx2": ORIGIN | {"f32": speed},
            "scaling_avx2": ORIGIN | scaling,
        })
        accuracy = "99.12 % (99.00-99.20)"
        self.assertEqual(
            rows[2], f"| MNIST to 99.0 %, bf16 | 2.0 s, {accuracy} | 7.0 s, {accuracy} | 3.50 (3.40-4.30) |")
        self.assertEqual(rows[3], f"| the same on 2 ranks of 1 thread | 1.5 s, {accuracy} | | |")
        self.assertEqual(rows[4], "| airbench94, f32, AVX2 | 450.0 images/s | 180.0 images/s | 3.50 (3.40-4.30) |")
        self.assertIn("| airbench94, AVX2: 2 ranks of 1 thread over 1 | 440.5 images/s | 230.5 by 1 rank |", rows[5])
        self.assertEqual(len(rows), 8)

    def test_a_step_by_kernel_adds_up(self):
        times = {"step": 8.0, "conv2d": 5.0, "linear": 1.0, "batch_norm": 0.8, "rest": 1.2}
        part = {"title": "Net", "rounds": 3, "ms": times}
        part |= {"reached": {"product": 450.0, "copy": 30.0}, "limit": {"product": 500.0, "copy": 40.0}}
        rows = bench_table.step_rows({"net_f32": ORIGIN | part})
        rates = "450 of 500 GFLOP/s: 90% | 30 of 40 GB/s: 75%"
        self.assertEqual(rows[2], f"| Net | 8.0 | 75% | 10% | 0% | 0% | 15% | {rates} |")

    def test_text_is_wrapped_and_rows_are_not(self):
        self.assertEqual(bench_table.wrapped("| " + "word " * 40), "| " + "word " * 40)
        self.assertEqual([len(line) for line in bench_table.wrapped("word " * 40).split("\n")], [119, 79])

    def test_only_the_text_between_markers_changes(self):
        text = "a\n<!-- measured: convnet_cpu -->\nold\n<!-- /measured -->\nb\n"
        updated = bench_table.with_tables(text)
        self.assertTrue(updated.startswith("a\n<!-- measured: convnet_cpu -->\n| ConvNet"))
        self.assertTrue(updated.endswith("\n<!-- /measured -->\nb\n"))
        self.assertEqual(bench_table.with_tables(updated), updated)


if __name__ == "__main__":
    unittest.main()
