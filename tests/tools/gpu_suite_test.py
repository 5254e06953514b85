"""bench/gpu_suite.sh with stand-ins for the GPU's tools and for the programs."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BENCH_JSON = {
    "benchmarks": [
        {"name": "cuda/relu_forward/f16/8x4/iterations:1/manual_time", "real_time": 2.5, "time_unit": "us",
         "GB/s": 3000.04, "of_copy": 0.9123}
    ]
}  # fmt: skip
FINAL = {"acc1": 99.0, "loss": 0.1, "images_per_s": 5000.0, "wall_s": 9.0, "first_step_s": 1.0}
RUN_JSON = {"argv": ["train", "--device", "cuda"], "final": FINAL}
TRAIN = f"""
[ "$1 $2" = "--device cuda" ] || exit 2
while [ "$1" != --output-dir ]; do shift; done
mkdir -p "$2"
echo '{json.dumps(RUN_JSON)}' >"$2/run.json"
echo "over CUDA IPC, 5 images/s"
[ "${{2##*/}}" != "${{BROKEN_RUN:-}}" ] && [ -z "${{LOCKSTEP_FAULT:-}}" ]
"""
SCRIPTS = {
    "nvidia-smi": 'case "$1" in -L) echo "GPU 0: Test";; *) echo "Test, 580.1, 1980 MHz, 3201 MHz, 1 MiB";; esac',
    "mpirun": 'shift 2; exec "$@"',
    "compute-sanitizer": '[ "$2 ${BROKEN_TOOL:-}" != "$2 $2" ] && shift 4 && exec "$@"',
    "python3": 'case "$1" in -c) exit ${NO_TORCH:-0};; *torch_kernels.py) echo "$PEERS";;'
    ' *) exec "$PYTHON" "$@";; esac',
    "programs/test_cuda": 'echo run >>"$RUNS"',
    "programs/lockstep": 'echo "$@" >>"$RUNS.lockstep"; [ "$1" != diff ] || exit ${DIFFERENT:-0}',
    "programs/train_convnet": TRAIN,
    "programs/train_resnet": TRAIN,
    "programs/bench_kernels": f"for a; do case $a in --benchmark_out=*) echo '{json.dumps(BENCH_JSON)}' >${{a#*=}};;"
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
            "PEERS": json.dumps({"torch": "2", "us": {"relu_forward/f16/8x4": 5.0, "other/f16/8x4": 1.0}}),
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
        expected = dict.fromkeys(("tests", "train", "ranks", "bench", "peers"), "passed") | sanitized
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
        result = json.loads((self.work / "results" / "training_cuda.json").read_text())
        names = "convnet convnet_eager convnet_tuned convnet_planned convnet_o2"
        names += " resnet50_f32 resnet50_o2 resnet50_o2_tuned resnet50_o2_eager"
        self.assertEqual(set(result["runs"]), set(names.split()))
        final = {name: value for name, value in FINAL.items() if name != "loss"}
        self.assertEqual(result["runs"]["convnet"], {"arguments": ["--device", "cuda"], "final": final})
        tools = (self.work / "runs.lockstep").read_text()
        self.assertIn("describe-gpu\n", tools)
        self.assertRegex(tools, "diff .*/convnet/checkpoints/last.safetensors .*/convnet_eager/")

    def test_a_training_that_fails_hides_no_other(self):
        for trouble in ({"BROKEN_RUN": "convnet_o2"}, {"DIFFERENT": "1"}):
            code, parts = self.run_parts("--only", "train", **trouble)
            self.assertEqual((code, parts["train"]), (1, "failed"), trouble)
            result = json.loads((self.work / "results" / "training_cuda.json").read_text())
            self.assertEqual(len(result["runs"]), 9)

    def test_kernels_file(self):
        self.run_parts("--only", "bench")
        file = self.work / "results" / "kernels_cuda.json"
        result = json.loads(file.read_text())
        row = {"op": "relu_forward", "dtype": "f16", "shape": "8x4", "us": 2.5, "gb_per_s": 3000.0, "of_copy": 0.912}
        self.assertEqual(result["kernels"], [row])
        self.assertEqual(result["gpu"]["name"], "Test")
        self.run_parts("--only", "peers")
        result = json.loads(file.read_text())
        self.assertEqual(result["kernels"], [{**row, "peer_us": 5.0, "over_peer": 2.0}])
        self.assertEqual(result["peer"], "PyTorch 2")

    def test_ranks_whose_bits_differ_fail(self):
        self.assertEqual(self.run_parts("--only", "ranks", DIFFERENT="1"), (1, {"ranks": "failed"}))

    def test_without_pytorch_there_is_no_peer(self):
        code, parts = self.run_parts("--only", "peers", NO_TORCH="1")
        self.assertEqual((code, parts), (0, {"peers": "absent"}))


if __name__ == "__main__":
    unittest.main()
