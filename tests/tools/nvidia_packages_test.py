"""tools/nvidia_packages.py finds what pip installed, and leaves alone what is of another CUDA.
cmake/LockstepVendor.cmake takes a library's header and file from there."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "nvidia_packages.py"


class NvidiaPackages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.site = Path(folder.name)

    def found(self, what: str) -> list[str]:
        environment = os.environ | {"PYTHONPATH": str(self.site)}
        run = [sys.executable, TOOL, what]
        said = subprocess.run(run, check=True, capture_output=True, text=True, env=environment)
        mine = [path for path in said.stdout.split(";") if path.startswith(str(self.site))]
        return [str(Path(path).relative_to(self.site)) for path in mine]

    def install(self, info: str, *files: str):
        (self.site / f"{info}.dist-info").mkdir()
        for file in files:
            path = self.site / "nvidia" / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()

    def test_packages_of_this_cuda_are_found(self):
        self.install("nvidia_cublas-13.1.0.3", "cu13/include/cublasLt.h")
        self.install("nvidia_nccl_cu13-2.28.9", "nccl/include/nccl.h")
        self.install("nvidia_cudnn_cu12-9.19.0.56", "cudnn/include/cudnn.h")
        self.assertEqual(self.found("13"), ["nvidia/cu13", "nvidia/nccl"])
        self.assertEqual(self.found("12"), ["nvidia/cudnn"])

    def test_the_newest_nvcc_is_found(self):
        self.assertEqual(self.found("nvcc"), [])
        self.install("nvidia_cuda_nvcc-13.0.88", "cu13/bin/nvcc")
        self.install("nvidia_cuda_nvcc-14.0.1", "cu14/bin/nvcc")
        self.assertEqual(self.found("nvcc"), ["nvidia/cu14/bin/nvcc"])

    def configure(self, option: str) -> str:
        """What a build says that looks for a library X in the packages of CUDA 13."""
        packages = ";".join(str(self.site / path) for path in self.found("13"))
        script = self.site / "find_x.cmake"
        script.write_text(
            f'set(nvidia_packages "{packages}")\n'
            f"include({ROOT}/cmake/LockstepVendor.cmake)\n"
            "lockstep_vendor(X lockstep_x.h liblockstep_x.so.2 without)\n"
            'message(STATUS "X ${LOCKSTEP_HAS_X} in ${LOCKSTEP_VENDOR_INCLUDES} and ${LOCKSTEP_VENDOR_RPATHS}")\n'
        )
        run = ["cmake", f"-DLOCKSTEP_X={option}", "-P", script]
        done = subprocess.run(run, check=False, capture_output=True, text=True)
        return " ".join((done.stdout + done.stderr).split())

    def test_a_build_has_a_library_whose_header_and_file_are_found(self):
        self.install("nvidia_x_cu13-1.0", "x/include/lockstep_x.h")
        self.assertIn("Left out: X, so without", self.configure("AUTO"))
        self.assertIn("ON, but lockstep_x.h or liblockstep_x.so.2 was not found", self.configure("ON"))
        self.install("nvidia_y_cu13-1.0", "x/lib/liblockstep_x.so.2")
        folder = self.site / "nvidia" / "x"
        for option in "AUTO", "ON":
            self.assertIn(f"X ON in {folder}/include and LINKER:-rpath,{folder}/lib", self.configure(option))
        self.assertIn("Left out: X, so without", self.configure("OFF"))


if __name__ == "__main__":
    unittest.main()
