"""bench/gpu_suite.sh with stand-ins for the GPU's tools and for the programs."""

import json
import os
import shlex
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BENCH_JSON = {
    "benchmarks": [
        {"name": "cuda/relu_forward/f16/8x4/iterations:1/manual_time", "real_time": 2.5, "time_unit": "us",
         "bytes_per_second": 3000.04e9, "of_copy": 0.9123},
        {"name": "cuda/conv2d_forward/f32/1x3/iterations:1/manual_time", "real_time": 1.25, "time_unit": "ms",
         "bytes_per_second": 1e12, "of_copy": 0.5, "FLOP/s": 15.678e12},
        {"name": "cuda/conv2d_fused_forward/f16/1x3/iterations:1/manual_time", "error_occurred": True,
         "error_message": "no engine", "real_time": 0.0, "time_unit": "ns"},
    ]
}  # fmt: skip
PEER_TIMES = {
    "relu_forward/f16/8x4": 5.0, "other/f16/8x4": 1.0,
    "conv2d_forward/f32/1x3": 2500.0, "conv2d_fused_forward/f16/1x3": 1.0,
}  # fmt: skip
FINAL = {"acc1": 99.0, "loss": 0.1, "images_per_s": 5000.0, "wall_s": 9.0, "first_step_s": 1.0}
PLANS = {
    "cudnn": "9.1.0",
    "convolutions": {
        "backward": {"engine": "engine 1", "microseconds": 12.3456, "rule_microseconds": 13.0, "workspace_bytes": 8},
        "forward": {"engine": "engine 2", "microseconds": 20.0, "rule_microseconds": 20.0, "workspace_bytes": 0},
    },
}
TRAIN = f"""
import json, os, sys
from pathlib import Path

assert sys.argv[1:3] == ["--device", "cuda"]
directory = Path(sys.argv[sys.argv.index("--output-dir") + 1])
directory.mkdir(parents=True, exist_ok=True)
works = directory.name != os.environ.get("BROKEN_RUN")
run = {{"argv": ["train", *sys.argv[1:]], "final": {FINAL} if works else None}}
(directory / "run.json").write_text(json.dumps(run))
lines = [{{"split": "train", "img_s": speed}} for speed in (9.0, 4000.0, 4500.0)] + [{{"split": "val"}}]
(directory / "metrics.jsonl").write_text("\\n".join(map(json.dumps, lines)))
if "--autotune" in sys.argv:
    (directory / "plans.json").write_text(json.dumps({PLANS}))
print("over CUDA IPC, 5 images/s")
sys.exit(not works or "LOCKSTEP_FAULT" in os.environ)
"""
# So many thousand images a second as it has arguments.
TORCH_STEP = """
echo "$@" >>"$RUNS.torch"
case "$*" in *${BROKEN_STEP:-nowhere}*) echo "half a li"; exit 1;; esac
shift
echo '{"torch": "2", "images_per_s": '$#'000.04, "step_ms_median": 1.0}'
"""
SCRIPTS = {
    "nvidia-smi": 'case "$1" in -L) echo "GPU 0: Test";; *) echo "Test, 580.1, 1980 MHz, 3201 MHz, 1 MiB";; esac',
    "mpirun": 'shift 2; exec "$@"',
    "compute-sanitizer": '[ "$2 ${BROKEN_TOOL:-}" != "$2 $2" ] && shift 4 && exec "$@"',
    "python3": 'case "$1 $2" in *libnccl*) exit ${NO_NCCL:-0};; -c*) exit ${NO_TORCH:-0};;'
    f' *torch_kernels.py*) echo "$PEERS";; *torch_step.py*) {TORCH_STEP};; *) exec "$PYTHON" "$@";; esac',
    "programs/test_cuda": 'echo run >>"$RUNS"',
    "programs/lockstep": 'echo "$@" >>"$RUNS.lockstep"; [ "$1" != diff ] || exit ${DIFFERENT:-0}',
    "programs/train_convnet": f'"$PYTHON" -c {shlex.quote(TRAIN)} "$@"',
    "programs/train_resnet": f'"$PYTHON" -c {shlex.quote(TRAIN)} "$@"',
    "programs/bench_kernels": '[ "$1" = "--benchmark_filter=^cuda/" ] || exit 1; '
    f"for a; do case $a in --benchmark_out=*) echo '{json.dumps(BENCH_JSON)}' >${{a#*=}};;"
    " esac; done",
}


class GpuSuite(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.work = Path(folder.name)
        for name, text in SCRIPTS.items():
            path = self.work / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"#!/bin/sh\n{text}\n")
            path.chmod(0o755)

    def suite(self, *arguments: str, **environment: str) -> tuple[int, str]:
        """Exit status and standard error."""
        changed = {
            "PATH": f"{self.work}:{os.environ['PATH']}",
            "RUNS": str(self.work / "runs"),
            "PYTHON": sys.executable,
            "PEERS": json.dumps({"torch": "2", "us": PEER_TIMES}),
            "CUDA_VISIBLE_DEVICES": "0",
            **environment,
        }
        line = [ROOT / "bench" / "gpu_suite.sh", *arguments]
        done = subprocess.run(line, capture_output=True, text=True, env={**os.environ, **changed})
        return done.returncode, done.stderr

    def run_parts(self, *arguments: str, **environment: str) -> tuple[int, dict]:
        """Exit status and the state of each part."""
        results = self.work / "results"
        places = ["--programs", f"{self.work}/programs", "--results", str(results)]
        code, _ = self.suite(*places, *arguments, **environment)
        parts = json.loads((results / "gpu_suite.json").read_text())["parts"]
        return code, {name: part["state"] for name, part in parts.items()}

    def result(self, name: str) -> dict:
        return json.loads((self.work / "results" / name).read_text())

    def compared(self) -> list[tuple[str, ...]]:
        """The runs of each lockstep diff."""
        lines = (self.work / "runs.lockstep").read_text().splitlines()
        files = [line.split()[1:] for line in lines if line.startswith("diff ")]
        return [tuple(file.split("/")[-3] for file in pair) for pair in files]

    def runs(self) -> int:
        return len((self.work / "runs").read_text().splitlines())

    def test_without_a_gpu_it_says_so_in_three_lines(self):
        code, said = self.suite(CUDA_VISIBLE_DEVICES="")
        self.assertEqual(code, 5)
        self.assertRegex(said, r"\Agpu_suite: error: .+\n  why: .+\n  try: .+\n\Z")

    def test_wrong_usage(self):
        for arguments in (["--only", "nothing"], ["--only"], ["tests"], ["--programs", "x", "--only", "build"]):
            code, said = self.suite(*arguments)
            self.assertEqual((code, said[:7]), (2, "usage: "), arguments)

    def test_all_parts_then_none(self):
        sanitized = dict.fromkeys(("memcheck", "racecheck", "initcheck", "synccheck"), "passed")
        others = ("tests", "train", "nccl", "ranks", "bench", "peers", "train-peers")
        expected = dict.fromkeys(others, "passed") | sanitized
        self.assertEqual(self.run_parts(), (0, expected))
        self.assertEqual(self.runs(), 5)
        self.assertEqual(self.run_parts(), (0, expected))
        self.assertEqual(self.runs(), 5)
        self.run_parts("--only", "tests")
        self.assertEqual(self.runs(), 6)
        (self.work / "programs" / "commit").touch()
        with (self.work / "programs" / "test_cuda").open("a") as program:
            program.write("# another version\n")
        self.run_parts()
        self.assertEqual(self.runs(), 11)

    def test_a_part_that_fails_is_repeated(self):
        code, parts = self.run_parts(BROKEN_TOOL="racecheck")
        self.assertEqual((code, parts["racecheck"], parts["bench"]), (1, "failed", "passed"))
        self.assertEqual(self.run_parts()[1]["racecheck"], "passed")
        self.assertEqual(self.runs(), 5)

    def test_trainings_file(self):
        self.run_parts("--only", "train")
        result = self.result("training_cuda.json")
        names = "convnet convnet_eager convnet_tuned convnet_planned convnet_o2"
        names += " resnet50_f32 resnet50_o2 resnet50_o2_tuned resnet50_o2_eager"
        self.assertEqual(set(result["runs"]), set(names.split()))
        final = {name: value for name, value in FINAL.items() if name != "loss"} | {"steady_images_per_s": 4000.0}
        self.assertEqual(result["runs"]["convnet"]["final"], final)
        self.assertEqual(result["runs"]["convnet_o2"]["arguments"][-2:], ["--opt-level", "O2"])
        self.assertIn("describe-gpu\n", (self.work / "runs.lockstep").read_text())
        self.assertEqual(self.compared(), [("convnet", "convnet_eager"), ("convnet_tuned", "convnet_planned")])

    def test_convolutions_file(self):
        self.run_parts("--only", "train")
        result = self.result("convolutions_cuda.json")
        self.assertEqual((result["gpu"]["name"], result["cudnn"]), ("Test", "9.1.0"))
        rows = [("forward", "engine 2", 20.0, 20.0), ("backward", "engine 1", 12.35, 13.0)]
        self.assertEqual(
            result["convolutions"],
            [dict(zip(("problem", "engine", "us", "rule_us"), row, strict=True)) for row in rows],
        )

    def test_a_training_that_fails_hides_no_other(self):
        for trouble in ({"BROKEN_RUN": "convnet_o2"}, {"BROKEN_RUN": "resnet50_o2_tuned"}, {"DIFFERENT": "1"}):
            code, parts = self.run_parts("--only", "train", **trouble)
            self.assertEqual((code, parts["train"]), (1, "failed"), trouble)
            runs = self.result("training_cuda.json")["runs"]
            self.assertEqual(len(runs), 9)
            broken = [name for name, run in runs.items() if run["final"] is None]
            self.assertEqual(broken, [trouble["BROKEN_RUN"]] if "BROKEN_RUN" in trouble else [])

    def test_nccl_on_one_rank_gives_the_bits_without(self):
        self.assertEqual(self.run_parts("--only", "nccl"), (0, {"nccl": "passed"}))
        self.assertEqual(self.compared(), [("none", "tree"), ("none", "own")])
        asked = {}
        for run in ("none", "tree", "own"):
            record = json.loads((self.work / "results" / "logs" / "runs" / "nccl" / run / "run.json").read_text())
            asked[run] = record["argv"][record["argv"].index("200") + 1 :]
        self.assertEqual(asked, {"none": [], "tree": ["--transport", "nccl"], "own": ["--algorithm", "nccl"]})
        self.assertEqual(self.run_parts("--only", "nccl", DIFFERENT="1"), (1, {"nccl": "failed"}))
        for run in asked:
            self.assertEqual(self.run_parts("--only", "nccl", BROKEN_RUN=run), (1, {"nccl": "failed"}))
        self.assertEqual(self.run_parts("--only", "nccl", NO_NCCL="1"), (0, {"nccl": "absent"}))

    def test_pytorchs_training_steps(self):
        self.run_parts("--only", "train")
        ours = self.result("training_cuda.json")
        self.assertEqual(self.run_parts("--only", "train-peers")[0], 0)
        start, amp = "--device cuda --warmup 10 --steps 30 -a", "--channels-last --autocast f16"
        asked = [
            f"{start} {network}{variant}"
            for network in ("convnet -b 64", "resnet50 -b 256")
            for variant in ("", f" {amp}", f" {amp} --compile")
        ]
        lines = (self.work / "runs.torch").read_text().splitlines()
        self.assertEqual([line.partition(" ")[2] for line in lines], asked)
        speeds = {"f32": 10000.0, "amp": 13000.0, "amp_compiled": 14000.0}
        both = dict.fromkeys(("convnet", "resnet50"), speeds)
        f32, mixed = {"f32": 0.4}, {"amp": 0.31, "amp_compiled": 0.29}
        runs = {
            name: run | {"over_peer": mixed if "o2" in name else f32} for name, run in ours["runs"].items()
        }
        expected = ours | {"peer": "PyTorch 2", "peer_images_per_s": both, "runs": runs}
        self.assertEqual(self.result("training_cuda.json"), expected)

    def test_a_compilation_that_fails_hides_no_other_step(self):
        self.run_parts("--only", "train", BROKEN_RUN="convnet_o2")
        for broken, left in (("--compile", ["f32", "amp"]), ("nowhere", ["f32", "amp", "amp_compiled"])):
            code, parts = self.run_parts("--only", "train-peers", BROKEN_STEP=broken)
            self.assertEqual((code, parts["train-peers"]), (int(broken == "--compile"), "failed" if code else "passed"))
            result = self.result("training_cuda.json")
            self.assertEqual(set(result["peer_images_per_s"]["resnet50"]), set(left))
            self.assertEqual(set(result["runs"]["resnet50_o2"]["over_peer"]), set(left) - {"f32"})
            self.assertEqual(result["runs"]["convnet_o2"]["over_peer"], {})

    def test_kernels_file(self):
        self.run_parts("--only", "bench")
        file = self.work / "results" / "kernels_cuda.json"
        result = json.loads(file.read_text())
        relu = {"op": "relu_forward", "dtype": "f16", "shape": "8x4", "us": 2.5, "gb_per_s": 3000.0, "of_copy": 0.912}
        conv = {"op": "conv2d_forward", "dtype": "f32", "shape": "1x3", "us": 1250.0, "gb_per_s": 1000.0}
        conv |= {"of_copy": 0.5, "tflop_per_s": 15.68}
        lacking = {"op": "conv2d_fused_forward", "dtype": "f16", "shape": "1x3", "error": "no engine"}
        self.assertEqual(result["kernels"], [relu, conv, lacking])
        self.assertEqual(result["gpu"]["name"], "Test")
        self.run_parts("--only", "peers")
        result = json.loads(file.read_text())
        both = [relu | {"peer_us": 5.0, "over_peer": 2.0}, conv | {"peer_us": 2500.0, "over_peer": 2.0}]
        self.assertEqual(result["kernels"], [*both, lacking])
        self.assertEqual(result["peer"], "PyTorch 2")

    def test_ranks_whose_bits_differ_fail(self):
        self.assertEqual(self.run_parts("--only", "ranks", DIFFERENT="1"), (1, {"ranks": "failed"}))

    def test_without_pytorch_there_is_no_peer(self):
        for part in ("peers", "train-peers"):
            code, parts = self.run_parts("--only", part, NO_TORCH="1")
            self.assertEqual((code, parts[part]), (0, "absent"))


if __name__ == "__main__":
    unittest.main()
