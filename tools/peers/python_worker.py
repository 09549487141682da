"""onnxruntime, openvino and torch as contestants, by the protocol of worker.h.

    python_worker.py MODEL.onnx SAMPLES BATCH THREADS ENGINE

One more command:

    codes  => how many u8 outputs equal the tensors of their names in SAMPLES, as JSON

Settings: as many intra-operator threads as asked for; threads that spin inside a run and sleep after it; the batch
fixed when the model is compiled; floats stay f32. torch is another matter: f16 in channels_last on a CUDA device, cuDNN's
algorithms chosen by trial, all in one CUDA graph, whose time by events is that of a run.
"""

import json
import sys
import time

import numpy

DTYPES = {"F32": numpy.float32, "F64": numpy.float64, "I64": numpy.int64, "I32": numpy.int32, "U8": numpy.uint8,
          "I8": numpy.int8, "BOOL": numpy.bool_}


def read_safetensors(path):
    data = open(path, "rb").read()
    start = 8 + int.from_bytes(data[:8], "little")
    tensors = {}
    for name, entry in json.loads(data[8:start]).items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        values = numpy.frombuffer(data[start + begin:start + end], DTYPES[entry["dtype"]])
        tensors[name] = values.reshape(entry["shape"])
    return tensors


def inputs_of(samples):
    """The network's, in its order."""
    return [samples[f"input {i}"] for i in range(len(samples)) if f"input {i}" in samples]


class Onnxruntime:

    def __init__(self, path, inputs, threads):
        import onnxruntime
        self.version = onnxruntime.__version__
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.add_session_config_entry("session.force_spinning_stop", "1")
        options.add_free_dimension_override_by_name("N", len(inputs[0]))
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.names = [output.name for output in self.session.get_outputs()]
        self.inputs = {value.name: values for value, values in zip(self.session.get_inputs(), inputs)}

    def run(self):
        return self.session.run(None, self.inputs)


class Openvino:

    def __init__(self, path, inputs, threads):
        import openvino
        self.version = openvino.__version__.split("-")[0]
        core = openvino.Core()
        model = core.read_model(path)
        model.reshape({port: values.shape for port, values in zip(model.inputs, inputs)})
        settings = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY",
                    "INFERENCE_PRECISION_HINT": "f32"}
        compiled = core.compile_model(model, "CPU", settings)
        self.names = [output.get_any_name() for output in compiled.outputs]
        self.request = compiled.create_infer_request()
        self.inputs = inputs  # Which the tensors share.
        for i, values in enumerate(inputs):
            self.request.set_input_tensor(i, openvino.Tensor(values, shared_memory=True))

    def run(self):
        self.request.infer()
        return [self.request.get_output_tensor(i).data for i in range(len(self.names))]


def torch_ops():
    """Of ONNX -> (inputs, attributes) -> output: what networks of convolutions are made of."""
    import torch
    from torch.nn import functional

    def padded(x, attributes, value):
        top, left, bottom, right = attributes.get("pads", [0, 0, 0, 0])
        if (top, left) == (bottom, right):
            return x, (top, left)
        return functional.pad(x, (left, right, top, bottom), value=value), 0

    def conv(inputs, attributes):
        x, padding = padded(inputs[0], attributes, 0.0)
        return functional.conv2d(x, *inputs[1:], stride=attributes.get("strides", 1), padding=padding,
                                 dilation=attributes.get("dilations", 1), groups=attributes.get("group", 1))

    def max_pool(inputs, attributes):
        x, padding = padded(inputs[0], attributes, float("-inf"))
        return functional.max_pool2d(x, attributes["kernel_shape"], attributes.get("strides", 1), padding,
                                     attributes.get("dilations", 1), bool(attributes.get("ceil_mode", 0)))

    def gemm(inputs, attributes):
        a, b, *c = inputs
        product = (a.T if attributes.get("transA") else a) @ (b.T if attributes.get("transB") else b)
        product = attributes.get("alpha", 1.0) * product
        return product + attributes.get("beta", 1.0) * c[0] if c else product

    return {
        "Add": lambda inputs, _: inputs[0] + inputs[1],
        "Clip": lambda inputs, _: torch.clamp(inputs[0], *(float(bound) for bound in inputs[1:])),
        "Concat": lambda inputs, attributes: torch.cat(inputs, attributes["axis"]),
        "Conv": conv,
        "Flatten": lambda inputs, attributes: inputs[0].flatten(attributes.get("axis", 1)),
        "Gemm": gemm,
        "GlobalAveragePool": lambda inputs, _: inputs[0].mean((2, 3), keepdim=True),
        "MatMul": lambda inputs, _: inputs[0] @ inputs[1],
        "MaxPool": max_pool,
        "Mul": lambda inputs, _: inputs[0] * inputs[1],
        "Relu": lambda inputs, _: functional.relu(inputs[0]),
        "Sigmoid": lambda inputs, _: torch.sigmoid(inputs[0]),
    }


class TorchModel:
    """An ONNX model of ops in `torch_ops`, with weights of `dtype` on `device`."""

    def __init__(self, path, device, dtype):
        import onnx
        import torch
        from onnx import helper, numpy_helper
        graph = onnx.load(path).graph
        self.ops = torch_ops()
        self.constants = {}
        for tensor in graph.initializer:
            value = torch.from_numpy(numpy_helper.to_array(tensor).copy()).to(device)
            value = value.to(dtype) if value.is_floating_point() else value
            self.constants[tensor.name] = value.to(memory_format=torch.channels_last) if value.dim() == 4 else value
        self.nodes = [(node.op_type, list(node.input), node.output[0],
                       {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute})
                      for node in graph.node]
        for op, *_ in self.nodes:
            if op not in self.ops:
                raise NotImplementedError(f"{op} is not among the ops that are handed to torch")
        self.names = [output.name for output in graph.output]
        self.input = next(value.name for value in graph.input if value.name not in self.constants)

    def __call__(self, image):
        values = {**self.constants, self.input: image}
        for op, inputs, output, attributes in self.nodes:
            values[output] = self.ops[op]([values[name] for name in inputs if name], attributes)
        return [values[name] for name in self.names]


class Torch:

    def __init__(self, path, inputs, threads):
        import torch
        self.torch, self.version = torch, torch.__version__
        if not torch.cuda.is_available():
            raise RuntimeError(f"no CUDA device for torch {torch.__version__}")
        torch.backends.cudnn.benchmark = True
        if len(inputs) != 1:
            raise NotImplementedError(f"{len(inputs)} inputs, one is what is handed to torch")
        model = TorchModel(path, "cuda", torch.float16)
        self.names = model.names
        self.isa = "sm_%d%d" % torch.cuda.get_device_capability()
        with torch.inference_mode():
            self.input = torch.from_numpy(inputs[0]).to("cuda", torch.float16, memory_format=torch.channels_last)
            side = torch.cuda.Stream()
            with torch.cuda.stream(side):
                for _ in range(3):  # Algorithms are chosen before the capture.
                    model(self.input)
            side.synchronize()
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.outputs = model(self.input)
        self.begin, self.end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def device_ns(self):
        # The device is busy until the host has launched all of it: the launch is in no contestant's time.
        self.torch.cuda._sleep(100_000)
        self.begin.record()
        self.graph.replay()
        self.end.record()
        self.torch.cuda.synchronize()
        return round(1e6 * self.begin.elapsed_time(self.end))

    def run(self):
        self.device_ns()
        return [output.float().cpu().numpy() for output in self.outputs]


ENGINES = {"onnxruntime": Onnxruntime, "openvino": Openvino, "torch": Torch}


def compare_codes(outputs, wanted):
    """Of all u8 outputs together, for all samples."""
    differences = [numpy.abs(values.astype(int) - wanted[name])
                   for name, values in outputs.items() if values.dtype == numpy.uint8]
    count = sum(difference.size for difference in differences)
    return {
        "values": count,
        "within_one": 100 * sum(int((difference <= 1).sum()) for difference in differences) / count,
        "equal": 100 * sum(int((difference == 0).sum()) for difference in differences) / count,
        "largest": max(int(difference.max()) for difference in differences),
    }


def timed_ns(engine):
    """By the device's clock where the engine runs on one."""
    if hasattr(engine, "device_ns"):
        return engine.device_ns()
    start = time.perf_counter_ns()
    engine.run()
    return time.perf_counter_ns() - start


def answer(line, engine, samples):
    command, *arguments = line.split()
    if command == "outputs":
        return " ".join(repr(float(value)) for value in engine.run()[0].ravel())
    if command == "codes":
        return json.dumps(compare_codes(dict(zip(engine.names, engine.run())), samples))
    engine.run()
    return " ".join(str(timed_ns(engine)) for _ in range(int(arguments[0])))


def main():
    path, samples_path, batch, threads, name = sys.argv[1:]
    samples = read_safetensors(samples_path)
    engine = ENGINES[name](path, [values[:int(batch)].copy() for values in inputs_of(samples)], int(threads))
    engine.run()
    print("ready", engine.version, getattr(engine, "isa", "-"), flush=True)
    for line in sys.stdin:
        print(answer(line, engine, samples), flush=True)


if __name__ == "__main__":
    try:
        main()
    except Exception as error:  # Whatever went wrong is for the one who started this to tell.
        print("error", f"{type(error).__name__}: {error}".replace("\n", " "), flush=True)
        sys.exit(1)
