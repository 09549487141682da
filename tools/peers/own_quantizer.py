"""onnxruntime's own quantizer: own_quantizer.py FP32.onnx SAMPLES INT8.onnx

QuantizeLinear and DequantizeLinear around each op that it knows, u8 activations, i8 weights per channel, min-max ranges of
the samples: the recipe of its documentation for x86 with VNNI.
"""

import sys

import onnxruntime
from onnxruntime import quantization

from python_worker import inputs_of, read_safetensors


class Samples(quantization.CalibrationDataReader):

    def __init__(self, path, inputs):
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        self.names = [value.name for value in session.get_inputs()]
        self.samples = zip(*inputs)

    def get_next(self):
        sample = next(self.samples, None)
        return None if sample is None else {name: values[None] for name, values in zip(self.names, sample)}


def main():
    path, samples, out = sys.argv[1:]
    quantization.quantize_static(path, out, Samples(path, inputs_of(read_safetensors(samples))), per_channel=True,
                                 activation_type=quantization.QuantType.QUInt8,
                                 weight_type=quantization.QuantType.QInt8)


if __name__ == "__main__":
    main()
