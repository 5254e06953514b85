"""bench/gpu_suite.sh with stand-ins for the GPU's tools and for the programs."""

import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
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
NORMS_JSON = {
    "benchmarks": [
        {"name": f"cuda/batch_norm_shard_{name}", "real_time": 1.0, "time_unit": "us", "bytes_per_second": 1e12,
         "of_copy": of}
        for name, of in (("forward/f16/256x64x9x9", 0.875), ("forward_residual/f16/256x256x9x9", 0.9),
                         ("forward/f16/256x2048x7x7", 0.5), ("backward/f16/256x64x9x9", 0.75),
                         ("backward/f32/256x64x9x9", 0.1))
    ]
}  # fmt: skip
PLAN = """
  largest batch that fits: 100 images per rank, 41.77 MiB each
  fused batch norm    1.0 2.0 3.0 4.0 5737.0 6.0
  2 ranks   step 1 ms   efficiency  99.80 %
"""
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
speeds = [(0, 9.0), (0, 4000.0), (0, 4500.0)]
if "photos" in directory.parts:
    speeds += [(1, 8.0), (1, 5000.0), (1, 5002.0)]
lines = [{{"split": "train", "epoch": epoch, "img_s": speed}} for epoch, speed in speeds] + [{{"split": "val"}}]
(directory / "metrics.jsonl").write_text("\\n".join(map(json.dumps, lines)))
if "--autotune" in sys.argv:
    (directory / "plans.json").write_text(json.dumps({PLANS}))
print("over CUDA IPC, 5 images/s")
batch = int(sys.argv[::-1][sys.argv[::-1].index("-b") - 1]) if "-b" in sys.argv else 1
if directory.parent.name == "memory" and batch > int(os.environ.get("FITS", 1000)):
    sys.exit(5)
sys.exit(not works or "LOCKSTEP_FAULT" in os.environ)
"""
STEP = """
import json, os, sys

batch = int(sys.argv[::-1][sys.argv[::-1].index("-b") - 1])
if "--against-cpu" in sys.argv:
    arch = sys.argv[sys.argv.index("-a") + 1]
    print(json.dumps({"arch": arch, "tolerance": 1e-5 if "O0" in sys.argv else 1e-2, "largest_difference": 5e-6}))
    sys.exit(arch == os.environ.get("BROKEN_NETWORK"))
ranks = int(os.environ.get("WORLD_SIZE", 1))
if int(os.environ.get("RANK", 0)) == 0:
    print(json.dumps({"ranks": ranks, "images_per_s": 990.0 * ranks if ranks > 1 else 1000.0, "step_ms_median": 2.0,
                      "host_ms_mean": 0.04, "step_ms": [2.0] * 10}))
sys.exit(batch > int(os.environ.get("FITS", 1000)))
"""
# So many thousand images per second as it has arguments.
TORCH_STEP = """
echo "$@" >>"$RUNS.torch"
case "$*" in *${BROKEN_STEP:-nowhere}*) echo "half a li"; exit 1;; esac
shift
echo '{"torch": "2", "images_per_s": '$#'000.04, "step_ms_median": 1.0}'
"""
SCRIPTS = {
    "nvidia-smi": 'echo "$@" >>"$RUNS.smi"; case "$1" in '
    '-L) for n in $(seq ${GPUS:-1}); do echo "GPU $n: Test"; done;; '
    '*) echo "Test, 580.1, 1980 MHz, 3201 MHz, 1 MiB";; esac',
    "compute-sanitizer": '[ "$2 ${BROKEN_TOOL:-}" != "$2 $2" ] && shift 4 && exec "$@"',
    "python3": 'case "$1 $2" in *socket*) echo 1;; -c*) exit ${NO_TORCH:-0};;'
    f' *torch_kernels.py*) echo "$PEERS";; *torch_step.py*) {TORCH_STEP};; *) exec "$PYTHON" "$@";; esac',
    "programs/test_cuda": 'echo run >>"$RUNS"',
    "programs/lockstep": 'echo "$@" >>"$RUNS.lockstep"; [ "$1" != diff ] || exit ${DIFFERENT:-0}; '
    f'[ "$1" != plan ] || echo {shlex.quote(PLAN)}; '
    '[ "$1 ${NO_NCCL:-}" != "doctor " ] || echo "  ok       NCCL           2.28.9"; '
    '[ "$1 ${NO_CUDNN:-}" != "doctor " ] || echo "  ok       cuDNN          9.24.0"',
    "programs/bench_train": f'"$PYTHON" -c {shlex.quote(STEP)} "$@"',
    "programs/train_convnet": f'"$PYTHON" -c {shlex.quote(TRAIN)} "$@"',
    "programs/train_resnet": f'"$PYTHON" -c {shlex.quote(TRAIN)} "$@"',
    "programs/bench_kernels": f"case $1 in *^cuda/) said='{json.dumps(BENCH_JSON)}';; "
    f"*batch_norm_shard_*) said='{json.dumps(NORMS_JSON)}';; *) exit 1;; esac; "
    'for a; do case $a in --benchmark_out=*) echo "$said" >${a#*=};; esac; done',
}


class SuiteCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.work = Path(folder.name)
        (self.work / "photos" / "train").mkdir(parents=True)
        for name, text in SCRIPTS.items():
            path = self.work / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"#!/bin/sh\n{text}\n")
            path.chmod(0o755)

    def suite(self, *arguments: str, **environment: str) -> tuple[int, str]:
        """Exit status and standard error."""
        devices = ",".join(str(device) for device in range(int(environment.get("GPUS", "1"))))
        changed = {
            "PATH": f"{self.work}:{os.environ['PATH']}",
            "RUNS": str(self.work / "runs"),
            "PYTHON": sys.executable,
            "PEERS": json.dumps({"torch": "2", "us": PEER_TIMES}),
            "LOCKSTEP_PHOTOS": str(self.work / "photos"),
            **environment,
        }
        changed["CUDA_VISIBLE_DEVICES"] = environment.get("CUDA_VISIBLE_DEVICES", devices)
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


class GpuSuite(SuiteCase):
    def test_without_a_gpu_it_says_so_in_three_lines(self):
        code, said = self.suite(CUDA_VISIBLE_DEVICES="")
        self.assertEqual(code, 5)
        self.assertRegex(said, r"\Agpu_suite: error: .+\n  why: .+\n  try: .+\n\Z")

    def test_wrong_usage(self):
        for arguments in (["--only", "nothing"], ["--only"], ["tests"], ["--programs", "x", "--only", "build"]):
            code, said = self.suite(*arguments)
            self.assertEqual((code, said[:7]), (2, "usage: "), arguments)

    def test_trainings_file(self):
        self.run_parts("--only", "train")
        result = self.result("training_cuda.json")
        names = "convnet convnet_eager convnet_tuned convnet_planned convnet_o2"
        names += " resnet50_f32 resnet50_o2 resnet50_o2_tuned resnet50_o2_eager"
        self.assertEqual(set(result["runs"]), set(names.split()))
        final = {name: value for name, value in FINAL.items() if name != "loss"} | {"steady_images_per_s": 4250.0}
        self.assertEqual(result["runs"]["convnet"]["final"], final)
        self.assertEqual(result["runs"]["convnet_o2"]["arguments"][-2:], ["--opt-level", "O2"])
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
        self.assertEqual(self.run_parts("--only", "nccl-1"), (0, {"nccl-1": "passed"}))
        self.assertEqual(self.compared(), [("none", "tree"), ("none", "own")])
        asked = {}
        for run in ("none", "tree", "own"):
            record = json.loads((self.work / "results" / "logs" / "runs" / "nccl" / run / "run.json").read_text())
            asked[run] = record["argv"][record["argv"].index("64") + 1 :]
        self.assertEqual(asked, {"none": [], "tree": ["--transport", "nccl"], "own": ["--algorithm", "nccl"]})
        self.assertEqual(self.run_parts("--only", "nccl-1", DIFFERENT="1"), (1, {"nccl-1": "failed"}))
        for run in asked:
            self.assertEqual(self.run_parts("--only", "nccl-1", BROKEN_RUN=run), (1, {"nccl-1": "failed"}))
        self.assertEqual(self.run_parts("--only", "nccl-1", NO_NCCL="1"), (0, {"nccl-1": "absent"}))

    def test_only_visible_gpus_count(self):
        states = self.run_parts("--only", "nccl-2,norms", GPUS="2", CUDA_VISIBLE_DEVICES="1")
        self.assertEqual(states, (0, {"nccl-2": "absent", "norms": "passed"}))
        self.assertIn("--id=1", (self.work / "runs.smi").read_text())

    def test_without_cudnn(self):
        states = {"plan": "absent", "train": "passed", "speed-amp": "passed"}
        self.assertEqual(self.run_parts("--only", "plan,train,speed-amp", NO_CUDNN="1"), (0, states))
        self.assertNotIn("convnet_tuned", self.result("training_cuda.json")["runs"])

    def test_photos(self):
        self.assertEqual(self.run_parts("--only", "jpeg"), (0, {"jpeg": "passed"}))
        self.assertEqual(self.result("gpu_figures.json")["figures"]["jpeg_images_per_s"], 5001.0)
        self.assertEqual(
            self.run_parts("--only", "jpeg", LOCKSTEP_PHOTOS="", NO_TORCH="1"), (0, {"jpeg": "absent"})
        )

    def test_a_part_ends_with_the_suite(self):
        (self.work / "programs" / "test_cuda").write_text(f"#!/bin/sh\necho $$ >{self.work}/pid\nexec sleep 60\n")
        places = ["--programs", f"{self.work}/programs", "--results", f"{self.work}/results", "--only", "tests"]
        changed = {"PATH": f"{self.work}:{os.environ['PATH']}", "RUNS": str(self.work / "runs")}
        environment = {**os.environ, **changed, "CUDA_VISIBLE_DEVICES": "0"}
        suite = subprocess.Popen([ROOT / "bench" / "gpu_suite.sh", *places], env=environment)
        while not (self.work / "pid").exists() or not (self.work / "pid").read_text():
            time.sleep(0.05)
        suite.terminate()
        self.assertEqual(suite.wait(20), 143)
        part = int((self.work / "pid").read_text())
        for _ in range(200):
            try:
                os.kill(part, 0)
            except ProcessLookupError:
                return
            time.sleep(0.05)
        self.fail("the part's program goes on")

    def test_step_against_the_cpu(self):
        code, parts = self.run_parts("--only", "step", BROKEN_NETWORK="resnet20")
        self.assertEqual((code, parts["step"]), (1, "failed"))
        figures = self.result("gpu_figures.json")["figures"]
        self.assertEqual(figures["against_cpu_resnet50_f32"], 0.5)
        self.assertNotIn("against_cpu_resnet20_f16", figures)

    def test_a_promised_batch_that_does_not_fit_fails(self):
        for fits, share in (("100", 100), ("95", 94)):
            code, parts = self.run_parts("--only", "plan,memory", FITS=fits)
            self.assertEqual((code, parts["memory"]), (0, "passed") if share == 100 else (1, "failed"))
            self.assertEqual(self.result("gpu_figures.json")["figures"]["largest_batch_of_plan"], share)

    def test_steps_beside_pytorchs(self):
        self.run_parts("--only", "speed-amp,speed-max-autotune,speed-tf32")
        start, size = "--device cuda --warmup 10 --steps 30", "-a resnet50 -b 256"
        variants = ["--channels-last --autocast f16", "--channels-last --autocast f16 --max-autotune"]
        variants.append("--channels-last --tf32")
        lines = (self.work / "runs.torch").read_text().splitlines()
        asked = [f"{start} {variant} {size}" for variant in variants for _ in range(3)]
        self.assertEqual([line.partition(" ")[2] for line in lines], asked)
        row = self.result("steps_cuda.json")["steps"]["amp"]
        self.assertEqual((row["peer"], row["peer_images_per_s"]), ("PyTorch 2", 13000.0))
        self.assertAlmostEqual(row["over_peer"]["ratio"], 1 / 13, places=2)

    def test_a_peer_that_fails_hides_nothing(self):
        code, _ = self.run_parts("--only", "speed-compile", BROKEN_STEP="--compile")
        row = self.result("steps_cuda.json")["steps"]["compile"]
        self.assertEqual((code, row["images_per_s"], "peer_failed" in row), (0, 1000.0, True))

    def test_summary(self):
        self.run_parts("--only", "plan,norms,nccl-2,speed-rule", GPUS="2")
        page = (self.work / "results" / "summary.md").read_text()
        for row in (
            "| batch norm forward, 16 bits, share of a copy's rate, lowest | 0.875 | ≥ 0.85 | kept | – | issue 8 |",
            "| batch norm backward, the same | 0.75 | ≥ 0.8 | missed | – | issue 8 |",
            "| 2 GPUs over 1, batch 256 per GPU | 0.99 | ≥ 0.98 | kept | 0.998 | issue 8 |",
            "| the same by the engine rule: images/s | 1,000 | ≥ 6,200 (H200) | missed | 5,737 | reading |",
            "| 4 GPUs over 1 | – | ≥ 0.97 | not measured: no nccl-4 | – | issue 8 |",
        ):
            self.assertIn(row, page)
        self.assertIn('<td class="missed">missed</td>', (self.work / "results" / "summary.html").read_text())

    def test_summary_leaves_out_figures_of_another_commit(self):
        self.run_parts("--only", "plan,norms,speed-rule")
        (self.work / "programs" / "commit").write_text("another")
        self.run_parts("--only", "tests")
        page = (self.work / "results" / "summary.md").read_text()
        self.assertIn("Goals: 0 kept, 0 missed", page)
        self.assertNotIn("1,000", page)

    def test_figures_of_another_commit_are_dropped(self):
        self.run_parts("--only", "norms,speed-rule")
        (self.work / "programs" / "commit").write_text("another")
        self.run_parts("--only", "speed-amp")
        self.assertNotIn("norm_forward_of_copy", self.result("gpu_figures.json")["figures"])
        self.assertEqual(list(self.result("steps_cuda.json")["steps"]), ["amp"])

    def test_a_part_out_of_time_lets_the_next_go_on(self):
        (self.work / "programs" / "test_cuda").write_text("#!/bin/sh\nexec sleep 9\n")
        code, parts = self.run_parts("--only", "tests,norms", LOCKSTEP_SUITE_LIMIT="1")
        self.assertEqual((code, parts), (1, {"tests": "out-of-time", "norms": "passed"}))

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
        code, parts = self.run_parts("--only", "peers,speed-amp", NO_TORCH="1")
        self.assertEqual((code, parts), (0, {"peers": "absent", "speed-amp": "passed"}))
        self.assertNotIn("over_peer", self.result("steps_cuda.json")["steps"]["amp"])


if __name__ == "__main__":
    unittest.main()
