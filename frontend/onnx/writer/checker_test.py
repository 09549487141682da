"""What the writer writes passes ONNX's own checker and shape inference. Needs onnx; without it, it is skipped."""

import importlib.util
import sys
import unittest

if importlib.util.find_spec("onnx") is None:
    print("SKIPPED: /usr/bin/python3 has no onnx (Debian: apt-get install python3-onnx)")
    sys.exit(0)

import onnx  # noqa: E402

MODELS = sys.argv[1:]


class CheckerTest(unittest.TestCase):

    def test_models_are_valid(self):
        self.assertTrue(MODELS)
        for path in MODELS:
            with self.subTest(path):
                onnx.checker.check_model(path, full_check=True)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
