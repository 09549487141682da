#!/usr/bin/python3
"""ResNet18 in torch's functional form, with the weights of an ONNX model; exported as models/resnet18_fashion_mnist_fx.ir.

    apt-get install python3-torch python3-onnx
    bazel build //tools:ops_json
    /usr/bin/python3 tools/resnet18_functional.py models/resnet18_fashion_mnist.onnx resnet18_fashion_mnist_fx

The parameters of the .ir are those of the .onnx, so only the .ir is kept; //models:resnet18_fashion_mnist_fx writes the
.safetensors from the .onnx, and the fingerprints in the .ir show that it is the same.
"""

import pathlib
import sys

import onnx
import torch
import torch.nn.functional as F
from onnx import numpy_helper
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).absolute().parent))
import export_fx  # noqa: E402

EPSILON = float(torch.tensor(1e-5, dtype=torch.float32))  # ONNX keeps attributes in FP32.


def conv(x, weights, stride=1, padding=1):
    return F.conv2d(x, weights.weight, stride=stride, padding=padding)


def batch_norm(x, weights):
    return F.batch_norm(x, weights.running_mean, weights.running_var, weights.weight, weights.bias, training=False,
                        eps=EPSILON)


def basic_block(x, block, stride):
    """Two 3x3 convolutions and a skip connection (He et al., CVPR 2016)."""
    out = F.relu(batch_norm(conv(x, block.conv1, stride), block.bn1))
    out = batch_norm(conv(out, block.conv2), block.bn2)
    if hasattr(block, "downsample"):
        x = conv(x, getattr(block.downsample, "0"), stride, padding=0)
        x = batch_norm(x, getattr(block.downsample, "1"))
    out += x
    return F.relu(out, inplace=True)


class ResNet18(nn.Module):
    """The computation is in `forward` alone; the modules only hold parameters, by torchvision's names."""

    def __init__(self, parameters):
        super().__init__()
        for name, value in parameters.items():
            *path, last = name.split(".")
            module = self
            for part in path:
                if not hasattr(module, part):
                    module.add_module(part, nn.Module())
                module = getattr(module, part)
            setattr(module, last, nn.Parameter(value, requires_grad=False))

    def forward(self, input):
        x = F.relu(batch_norm(conv(input, self.conv1, stride=2, padding=3), self.bn1), inplace=True)
        x = F.max_pool2d(x, kernel_size=3, stride=2, padding=1)
        for i, layer in enumerate((self.layer1, self.layer2, self.layer3, self.layer4)):
            x = basic_block(x, getattr(layer, "0"), stride=1 if i == 0 else 2)
            x = basic_block(x, getattr(layer, "1"), stride=1)
        x = F.adaptive_avg_pool2d(x, 1)
        return F.linear(x.view(x.size(0), -1), self.fc.weight, self.fc.bias)


def export(model, stem):
    """Writes <stem>.ir and <stem>.safetensors. `model`: an .onnx with torchvision's parameter names."""
    parameters = {}
    for initializer in onnx.load(model).graph.initializer:  # "<name>.fp16", which a Cast to FLOAT makes <name>.
        name = initializer.name[:-len(".fp16")] if initializer.name.endswith(".fp16") else initializer.name
        parameters[name] = torch.from_numpy(numpy_helper.to_array(initializer).copy()).float()
    example_inputs = (torch.zeros(1, 3, 224, 224),)
    export_fx.export(ResNet18(parameters).eval(), example_inputs, stem, "resnet18_fashion_mnist")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: resnet18_functional.py MODEL.onnx STEM")
    export(sys.argv[1], sys.argv[2])
