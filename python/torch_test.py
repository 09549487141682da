"""torch_test.py WHEEL: modules of PyTorch, in one process with it. Needs torch; without it, it is skipped."""

import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest
import zipfile

WHEEL = os.path.abspath(sys.argv[1])
FOLDER = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
zipfile.ZipFile(WHEEL).extractall(FOLDER)
sys.path.insert(0, FOLDER)

if importlib.util.find_spec("torch") is None:
    print("SKIPPED: /usr/bin/python3 has no torch (Debian: apt-get install python3-torch)")
    sys.exit(0)

import numpy as np  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402

import fuselage  # noqa: E402


class Residual(nn.Module):
    """Two inputs, in an order that is not the alphabet's."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.conv, self.fc = nn.Conv2d(3, 8, 3, padding=1), nn.Linear(8, 5)

    def forward(self, image, bias):
        return self.fc(torch.relu(self.conv(image)).mean((2, 3)) + bias)


class TorchTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.module = Residual().eval()
        cls.samples = {"bias": torch.randn(16, 8), "image": torch.randn(16, 3, 12, 12)}
        cls.one = {name: values[:1] for name, values in cls.samples.items()}
        with torch.no_grad():
            cls.wanted = cls.module(**cls.one).numpy()

    def run_one(self, model):
        (output,) = model.outputs
        return model.prepare().run({name: values.numpy() for name, values in self.one.items()})[output.name]

    def test_float_is_near_pytorch(self):
        model = fuselage.from_torch(self.module, (self.one["image"], self.one["bias"]))
        self.assertEqual([value.name for value in model.inputs], ["image", "bias"])
        np.testing.assert_allclose(self.run_one(model), self.wanted, rtol=1e-4, atol=1e-5)

    def test_int8_is_near_pytorch(self):
        found = {}
        arrays = {name: values.numpy() for name, values in self.samples.items()}
        for name, module, samples in [
            ("module", self.module, self.samples),
            ("graph module", torch.fx.symbolic_trace(self.module), self.samples),
            ("arrays", self.module, arrays),
        ]:
            with self.subTest(name):
                int8 = fuselage.compile(module, samples, threads=2)
                self.assertTrue([text for text in int8.remarks if text.startswith("quantize: applied: %")])
                found[name] = self.run_one(int8)
                noise = np.sum((found[name] - self.wanted) ** 2) / np.sum(self.wanted**2)
                self.assertLess(noise, 0.01)
                self.assertGreater(noise, 0)
                self.assertEqual(found[name].tobytes(), found["module"].tobytes())

    def test_a_path_is_compiled_too(self):
        with self.assertRaises(fuselage.Error) as raised:
            fuselage.compile("missing.onnx", {})
        self.assertEqual(raised.exception.code, "not found")

    def test_samples_of_no_argument(self):
        with self.assertRaisesRegex(fuselage.Error, 'found samples of "imgae", wanted those of image, bias'):
            fuselage.compile(self.module, {"imgae": self.samples["image"], "bias": self.samples["bias"]})

    def test_says_what_it_cannot_export(self):
        import export_fx

        with self.assertRaisesRegex(export_fx.ExportError, "sort is not supported"):
            fuselage.compile(torch.fx.symbolic_trace(lambda x: torch.sort(x)[0]), {"x": torch.ones(2, 4)})

    def test_whoever_is_imported_first(self):
        for first, second in [("torch", "fuselage"), ("fuselage", "torch")]:
            program = f"import {first}, {second}; print({first}.__name__)"
            done = subprocess.run([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": FOLDER},
                                  capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout), (0, first + "\n"), done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
