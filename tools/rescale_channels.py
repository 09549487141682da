#!/usr/bin/python3
"""Writes a MobileNet or an EfficientNet with the channels between its blocks scaled apart: the same function, which is
hard to quantize.

    apt-get install python3-onnx
    /usr/bin/python3 tools/rescale_channels.py mobilenet_v2.onnx mobilenet_v2_rescaled.onnx

Each channel of a block's result, which is linear, is multiplied by its own factor in the batch norm that writes it and
divided by it in the convolutions that read it. The factors are 10^u with u uniform in [-1, 1]: ranges spread by 100.
Names are torchvision's. The products are stored as FLOAT: the outputs move by rounding alone.
"""

import argparse
import re

import numpy as np
import onnx
from onnx import numpy_helper


class Weights:
    """The initializers by the name that layers read, whether they stand behind a Cast, an Identity or nothing."""

    def __init__(self, graph):
        self.graph = graph
        self.values = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
        kept = []
        for node in graph.node:
            if node.op_type in ("Cast", "Identity") and node.input[0] in self.values:
                self.values[node.output[0]] = self.values[node.input[0]].astype(np.float32)
            else:
                kept.append(node)
        del graph.node[:]
        graph.node.extend(kept)

    def scale(self, name, factors, axis):
        shape = [1] * self.values[name].ndim
        shape[axis] = -1
        self.values[name] = (self.values[name] * factors.reshape(shape)).astype(np.float32)

    def store(self):
        read = {name for node in self.graph.node for name in node.input}
        del self.graph.initializer[:]
        self.graph.initializer.extend(
            numpy_helper.from_array(value, name) for name, value in self.values.items() if name in read)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("out")
    parser.add_argument("--spread", type=float, default=100, help="largest factor over smallest")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    model = onnx.load(args.model)
    weights = Weights(model.graph)
    sums = [node.name for node in model.graph.node if node.op_type == "Add"]
    random = np.random.default_rng(args.seed)
    blocks = {}  # Name -> those of its weights, in the order of the network; behind the last block those of what reads it.
    for name in (name for node in model.graph.node for name in node.input if name in weights.values):
        block = re.match(r"(features(\.\d+)+)\.(block|conv)\.", name)
        if block or blocks:
            blocks.setdefault(block[1] if block else "last", []).append(name)
    factors = None
    for block, parts in blocks.items():
        if factors is not None:
            weights.scale(next(name for name in parts if weights.values[name].ndim == 4), 1 / factors, axis=1)
        if block == "last":
            break
        norm = [name.rpartition(".")[0] for name in parts if name.endswith(".running_var")][-1]
        if not any(name.endswith(f"/{block}/Add") for name in sums):
            channels = len(weights.values[norm + ".weight"])
            factors = args.spread ** random.uniform(-0.5, 0.5, channels)
        if factors is not None:
            weights.scale(norm + ".weight", factors, axis=0)
            weights.scale(norm + ".bias", factors, axis=0)
    weights.store()
    onnx.checker.check_model(model)
    onnx.save(model, args.out)


if __name__ == "__main__":
    main()
