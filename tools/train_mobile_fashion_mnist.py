#!/usr/bin/python3
"""Trains a MobileNetV3-Small, a narrow EfficientNet-B0 or a small RepVGG on Fashion-MNIST, and writes it as ONNX.

    apt-get install python3-torch python3-torchvision python3-onnx dataset-fashion-mnist
    /usr/bin/python3 tools/train_mobile_fashion_mnist.py mobilenet_v3_small mobilenet_v3_small_fashion_mnist.onnx
    /usr/bin/python3 tools/train_mobile_fashion_mnist.py efficientnet efficientnet_fashion_mnist.onnx
    /usr/bin/python3 tools/train_mobile_fashion_mnist.py repvgg repvgg_fashion_mnist.onnx

Some twenty minutes on one core. --steps=4 shows that everything works. Not part of the tests. The first two are
torchvision's, with its names; the EfficientNet has half of B0's width and depth. The RepVGG is written with its branches,
as it is trained. The file has opset 17, batch normalizations unfolded, and every large initializer as FLOAT16 behind a
Cast.
"""

import argparse
import gzip
import io
import pathlib

import numpy as np
import onnx
import torch
import torchvision
from onnx import TensorProto, helper, numpy_helper
from torch import nn
from torch.nn import functional as F
from torchvision.models import efficientnet

MEAN, STD, BATCH = 0.2860, 0.3530, 100


def mobilenet_v3_small():
    return torchvision.models.mobilenet_v3_small(num_classes=10)


def narrow_efficientnet():
    """EfficientNet (Tan and Le, ICML 2019): B0's stages with half of their channels and layers."""
    stages = [(1, 3, 1, 32, 16, 1), (6, 3, 2, 16, 24, 2), (6, 5, 2, 24, 40, 2), (6, 3, 2, 40, 80, 3),
              (6, 5, 1, 80, 112, 3), (6, 5, 2, 112, 192, 4), (6, 3, 1, 192, 320, 1)]
    setting = [efficientnet.MBConvConfig(*stage, width_mult=0.5, depth_mult=0.5) for stage in stages]
    return efficientnet.EfficientNet(setting, dropout=0.2, num_classes=10)


class RepVGGBlock(nn.Module):
    """RepVGG (Ding et al., CVPR 2021), figure 2: what it computes is one 3x3 convolution."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv3x3 = nn.Sequential(nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs))
        self.conv1x1 = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))
        self.identity = nn.BatchNorm2d(outputs) if inputs == outputs and stride == 1 else None

    def forward(self, x):
        y = self.conv3x3(x) + self.conv1x1(x)
        return F.relu(y if self.identity is None else y + self.identity(x))


def small_repvgg():
    """A0's stages with two thirds of their channels and half of their layers."""
    blocks, inputs = [], 3
    for outputs, layers in [(32, 1), (32, 2), (64, 3), (128, 7), (256, 1)]:
        blocks += [RepVGGBlock(inputs if layer == 0 else outputs, outputs, 2 if layer == 0 else 1) for layer in range(layers)]
        inputs = outputs
    return nn.Sequential(*blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 10))


MODELS = {"mobilenet_v3_small": mobilenet_v3_small, "efficientnet": narrow_efficientnet, "repvgg": small_repvgg}


def load(folder, name):
    """Images [N, 1, 28, 28] and labels [N] of 'train' or 't10k'."""
    with gzip.open(folder / f"{name}-images-idx3-ubyte.gz") as file:
        images = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 1, 28, 28)
    with gzip.open(folder / f"{name}-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read(), np.uint8, offset=8)
    return torch.from_numpy(images.copy()), torch.from_numpy(labels.astype(np.int64))


def preprocess(images, side):
    x = F.interpolate(images.float() / 255, size=(side, side), mode="bilinear", align_corners=False)
    return ((x - MEAN) / STD).expand(-1, 3, -1, -1)


def augment(images, generator):
    """Half of the images flipped; all shifted by up to 2 source pixels, a batch by the same."""
    flipped = torch.rand(len(images), generator=generator) < 0.5
    images = torch.where(flipped[:, None, None, None], images.flip(3), images)
    dy, dx = torch.randint(0, 5, (2,), generator=generator).tolist()
    return F.pad(images, (2, 2, 2, 2))[:, :, dy:dy + 28, dx:dx + 28]


def train(model, images, labels, side, steps, generator):
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3, weight_decay=0.02)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=steps, pct_start=0.2)
    model.train()
    for step in range(steps):
        index = torch.randint(0, len(images), (BATCH,), generator=generator)
        loss = F.cross_entropy(model(preprocess(augment(images[index], generator), side)), labels[index], label_smoothing=0.05)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 50 == 0 or step + 1 == steps:
            print(f"step {step + 1}/{steps} loss {loss.item():.3f}", flush=True)


@torch.no_grad()
def accuracy(model, images, labels, side):
    right = sum((model(preprocess(images[i:i + BATCH], side)).argmax(1) == labels[i:i + BATCH]).sum().item()
                for i in range(0, len(images), BATCH))
    return 100 * right / len(images)


def round_to_half(model):
    """The accuracy that is printed is that of the file: of weights rounded to FLOAT16."""
    with torch.no_grad():
        for tensor in [*model.parameters(), *(b for b in model.buffers() if b.is_floating_point())]:
            tensor.copy_(tensor.half().float())


def export(model, side, path):
    exported = io.BytesIO()
    torch.onnx.export(model, torch.zeros(1, 3, side, side), exported, opset_version=17, input_names=["input"],
                      output_names=["logits"], dynamic_axes={"input": {0: "N"}, "logits": {0: "N"}},
                      training=torch.onnx.TrainingMode.PRESERVE)
    network = onnx.load_from_string(exported.getvalue())
    graph, initializers, casts = network.graph, [], []
    for tensor in graph.initializer:
        values = numpy_helper.to_array(tensor)
        half = values.astype(np.float16) if values.dtype == np.float32 and values.size > 64 else values
        if half.dtype == np.float16 and np.array_equal(half.astype(np.float32), values):
            initializers.append(numpy_helper.from_array(half, tensor.name + ".fp16"))
            casts.append(helper.make_node("Cast", [tensor.name + ".fp16"], [tensor.name], to=TensorProto.FLOAT))
        else:
            initializers.append(tensor)
    nodes = casts + list(graph.node)
    del graph.initializer[:], graph.node[:]
    graph.initializer.extend(initializers)
    graph.node.extend(nodes)
    onnx.checker.check_model(network)
    onnx.save(network, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("out", help="the .onnx file to write")
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path("/usr/share/datasets/fashion-mnist"))
    parser.add_argument("--side", type=int, default=64, help="of the images, in pixels")
    parser.add_argument("--steps", type=int, default=1500, help="of 100 images")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    model = MODELS[args.model]()
    train(model, *load(args.data, "train"), args.side, args.steps, torch.Generator().manual_seed(args.seed))
    model.eval()
    round_to_half(model)
    export(model, args.side, args.out)
    images, labels = load(args.data, "t10k")
    print("logits of the first test images:", [[round(x, 4) for x in row] for row in model(preprocess(images[:4], args.side)).tolist()])
    print(f"top-1: {accuracy(model, images[:1000], labels[:1000], args.side):.2f} % of 1,000, {accuracy(model, images, labels, args.side):.2f} % of all")


if __name__ == "__main__":
    main()
