#!/usr/bin/python3
"""Trains ResNet18 on Fashion-MNIST and writes models/resnet18_fashion_mnist.onnx, by the recipe in models/README.md.

    apt-get install python3-torch python3-onnx dataset-fashion-mnist
    /usr/bin/python3 tools/train_resnet18_fashion_mnist.py --out resnet18_fashion_mnist.onnx

About two hours on two cores. --scale=0.01 runs one hundredth of the steps, to see that everything works. Not part of
the tests. The file has opset 13, batch normalizations unfolded, and every initializer as FLOAT16 behind a Cast.
"""

import argparse
import gzip
import math
import pathlib

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn
from torch.nn import functional as F

MEAN, STD = 0.2860, 0.3530
# (side in pixels, steps, batch, highest learning rate)
PHASES = [(64, 3300, 100, 0.08), (224, 160, 40, 0.01), (224, 700, 32, 0.03), (224, 750, 32, 0.012)]


class BasicBlock(nn.Module):
    """Two 3x3 convolutions and a skip connection (He et al., CVPR 2016)."""

    def __init__(self, channels_in, channels, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.downsample = None
        if stride != 1 or channels_in != channels:
            self.downsample = nn.Sequential(
                nn.Conv2d(channels_in, channels, 1, stride, bias=False), nn.BatchNorm2d(channels))

    def forward(self, x):
        identity = x if self.downsample is None else self.downsample(x)
        out = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(out)) + identity)


class ResNet18(nn.Module):
    """torchvision's topology and parameter names."""

    def __init__(self, classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.layer1 = nn.Sequential(BasicBlock(64, 64, 1), BasicBlock(64, 64, 1))
        self.layer2 = nn.Sequential(BasicBlock(64, 128, 2), BasicBlock(128, 128, 1))
        self.layer3 = nn.Sequential(BasicBlock(128, 256, 2), BasicBlock(256, 256, 1))
        self.layer4 = nn.Sequential(BasicBlock(256, 512, 2), BasicBlock(512, 512, 1))
        self.fc = nn.Linear(512, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


def load(folder, name):
    """Images [N, 28, 28] and labels [N] of 'train' or 't10k'."""
    with gzip.open(folder / f"{name}-images-idx3-ubyte.gz") as file:
        images = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 28, 28)
    with gzip.open(folder / f"{name}-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read(), np.uint8, offset=8)
    return torch.from_numpy(images.copy()), torch.from_numpy(labels.astype(np.int64))


def preprocess(images, side):
    x = images[:, None].float() / 255
    x = F.interpolate(x, size=(side, side), mode="bilinear", align_corners=False)
    return ((x - MEAN) / STD).expand(-1, 3, -1, -1)


def augment(images, generator):
    """Horizontal flip, shift by up to 2 source pixels; the cut-out comes after resizing."""
    out = torch.empty_like(images)
    padded = F.pad(images, (2, 2, 2, 2))
    for i in range(len(images)):
        dy, dx, flip = torch.randint(0, 5, (3,), generator=generator).tolist()
        image = padded[i, dy:dy + 28, dx:dx + 28]
        out[i] = image.flip(1) if flip % 2 else image
    return out


def cut_out(x, generator):
    side = x.shape[-1]
    square = side // 5
    x = x.clone()
    for image in x:
        top, left = torch.randint(0, side - square + 1, (2,), generator=generator).tolist()
        image[:, top:top + square, left:left + square] = 0
    return x


def train(model, images, labels, scale, generator):
    for side, steps, batch, rate in PHASES:
        steps = max(2, math.ceil(steps * scale))
        optimizer = torch.optim.SGD(model.parameters(), rate, momentum=0.9, nesterov=True, weight_decay=5e-4)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps, pct_start=0.2)
        model.train()
        for step in range(steps):
            index = torch.randint(0, len(images), (batch,), generator=generator)
            x = cut_out(preprocess(augment(images[index], generator), side), generator)
            loss = F.cross_entropy(model(x), labels[index], label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            if step % 20 == 0 or step + 1 == steps:
                print(f"{side}x{side} step {step + 1}/{steps} loss {loss.item():.3f}", flush=True)


@torch.no_grad()
def accuracy(model, images, labels, side=224, batch=50):
    model.eval()
    right = 0
    for i in range(0, len(images), batch):
        right += (model(preprocess(images[i:i + batch], side)).argmax(1) == labels[i:i + batch]).sum().item()
    return right / len(images)


class Exporter:
    """Writes the graph node by node, so that batch norms stay and every initializer is FLOAT16 behind a Cast."""

    def __init__(self):
        self.nodes, self.initializers = [], []

    def parameter(self, name, tensor):
        half = tensor.detach().numpy().astype(np.float16)
        self.initializers.append(numpy_helper.from_array(half, name + ".fp16"))
        self.nodes.append(helper.make_node("Cast", [name + ".fp16"], [name], to=TensorProto.FLOAT))
        return name

    def node(self, op, inputs, name, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))
        return name

    def conv_bn(self, x, path, conv, bn_path, bn):
        weight = self.parameter(path + ".weight", conv.weight)
        pad, stride, kernel = conv.padding[0], conv.stride[0], conv.kernel_size[0]
        x = self.node("Conv", [x, weight], path, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4)
        values = [(".weight", bn.weight), (".bias", bn.bias), (".running_mean", bn.running_mean),
                  (".running_var", bn.running_var)]
        parameters = [self.parameter(bn_path + suffix, tensor) for suffix, tensor in values]
        return self.node("BatchNormalization", [x] + parameters, bn_path, epsilon=bn.eps)

    def export(self, model, path):
        x = self.conv_bn("input", "conv1", model.conv1, "bn1", model.bn1)
        x = self.node("Relu", [x], "relu")
        x = self.node("MaxPool", [x], "maxpool", kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
        for name in ["layer1", "layer2", "layer3", "layer4"]:
            for i, block in enumerate(getattr(model, name)):
                p = f"{name}.{i}"
                out = self.conv_bn(x, f"{p}.conv1", block.conv1, f"{p}.bn1", block.bn1)
                out = self.node("Relu", [out], f"{p}.relu1")
                out = self.conv_bn(out, f"{p}.conv2", block.conv2, f"{p}.bn2", block.bn2)
                if block.downsample is not None:
                    x = self.conv_bn(x, f"{p}.downsample.0", block.downsample[0], f"{p}.downsample.1", block.downsample[1])
                x = self.node("Relu", [self.node("Add", [out, x], f"{p}.add")], f"{p}.relu2")
        x = self.node("Flatten", [self.node("GlobalAveragePool", [x], "avgpool")], "flatten", axis=1)
        weight, bias = self.parameter("fc.weight", model.fc.weight), self.parameter("fc.bias", model.fc.bias)
        self.node("Gemm", [x, weight, bias], "logits", transB=1)
        graph = helper.make_graph(
            self.nodes, "resnet18_fashion_mnist",
            [helper.make_tensor_value_info("input", TensorProto.FLOAT, ["N", 3, 224, 224])],
            [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", 10])], self.initializers)
        onnx_model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
        onnx.checker.check_model(onnx_model)
        onnx.save(onnx_model, path)


def round_to_half(model):
    """The accuracy that is printed is that of the file: of weights rounded to FLOAT16."""
    with torch.no_grad():
        for tensor in list(model.parameters()) + [b for b in model.buffers() if b.is_floating_point()]:
            tensor.copy_(tensor.half().float())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path("/usr/share/datasets/fashion-mnist"))
    parser.add_argument("--out", type=pathlib.Path, required=True, help="the .onnx file to write")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scale", type=float, default=1.0, help="fraction of the recipe's steps")
    parser.add_argument("--limit", type=int, default=10000, help="test images for the accuracy")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    model = ResNet18()
    train(model, *load(args.data, "train"), args.scale, torch.Generator().manual_seed(args.seed))
    round_to_half(model)
    images, labels = load(args.data, "t10k")
    print(f"top-1 {100 * accuracy(model, images[:args.limit], labels[:args.limit]):.2f} %")
    Exporter().export(model, str(args.out))
    print(f"wrote {args.out}")


if __name__ == "__main__":
    main()
