"""models/resnet18_fashion_mnist_fx.ir is what resnet18_functional.py writes. Needs torch and onnx; without them it is
skipped."""

import importlib.util
import pathlib
import sys
import tempfile

for module in ("torch", "onnx"):
    if importlib.util.find_spec(module) is None:
        print(f"SKIPPED: /usr/bin/python3 has no {module} (Debian: apt-get install python3-{module})")
        sys.exit(0)

ROOT = pathlib.Path(__file__).absolute().parents[1]
sys.path.insert(0, str(ROOT / "tools"))
import resnet18_functional  # noqa: E402

with tempfile.TemporaryDirectory() as folder:
    stem = f"{folder}/resnet18_fashion_mnist_fx"
    resnet18_functional.export(ROOT / "models/resnet18_fashion_mnist.onnx", stem)
    written = pathlib.Path(stem + ".ir").read_bytes()
    assert written == (ROOT / "models/resnet18_fashion_mnist_fx.ir").read_bytes(), "run tools/resnet18_functional.py"
print("the .ir is what resnet18_functional.py writes")
