"""tools/pth_to_safetensors.py: its parts that need no PyTorch."""

import json
import struct
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import pth_to_safetensors as tool  # noqa: E402


class FakeTensor:
    def __init__(self, dtype: str, shape: list[int], content: bytes):
        self.dtype, self.shape, self.content = f"torch.{dtype}", shape, content


WEIGHT = FakeTensor("float32", [2], b"\1\2\3\4\5\6\7\x08")
COUNTER = FakeTensor("int64", [], b"\x09" + bytes(7))


class PickStateDict(unittest.TestCase):
    def test_finds_it_under_its_usual_names(self):
        weights = {"fc.weight": WEIGHT}
        for loaded in (weights, {"epoch": 3, "state_dict": weights}, {"model": weights, "scaler": 1}):
            self.assertEqual(tool.pick_state_dict(loaded), weights)

    def test_refuses_what_holds_other_things(self):
        for loaded in ([WEIGHT], {}, {"epoch": 3}, {"fc.weight": WEIGHT, "lr": 0.1}):
            with self.assertRaises(tool.Refused):
                tool.pick_state_dict(loaded)


class WithoutPrefix(unittest.TestCase):
    def test_drops_it_where_all_names_have_it(self):
        self.assertEqual(tool.without_prefix({"module.a": 1, "module.b": 2}), {"a": 1, "b": 2})
        self.assertEqual(tool.without_prefix({"module.a": 1, "b": 2}), {"module.a": 1, "b": 2})


class FileBytes(unittest.TestCase):
    def test_lays_tensors_out_without_gaps(self):
        data = tool.file_bytes({"fc.weight": WEIGHT, "bn.count": COUNTER}, lambda tensor: tensor.content)
        (length,) = struct.unpack("<Q", data[:8])
        self.assertEqual(length % 8, 0)
        header = json.loads(data[8 : 8 + length])
        self.assertEqual(header["bn.count"], {"dtype": "I64", "shape": [], "data_offsets": [0, 8]})
        self.assertEqual(header["fc.weight"], {"dtype": "F32", "shape": [2], "data_offsets": [8, 16]})
        self.assertEqual(data[8 + length :], COUNTER.content + WEIGHT.content)

    def test_refuses_types_that_no_reader_here_has(self):
        with self.assertRaises(tool.Refused):
            tool.file_bytes({"z": FakeTensor("complex64", [1], bytes(8))}, lambda tensor: tensor.content)


class Main(unittest.TestCase):
    def test_says_how_it_is_used(self):
        for arguments in ([], ["a"], ["--help", "x"], ["a", "b", "c"]):
            self.assertEqual(tool.main(arguments), 2)


if __name__ == "__main__":
    unittest.main()
