"""onnxruntime and openvino as contestants, by the protocol of worker.h.

    python_worker.py MODEL.onnx SAMPLES BATCH THREADS ENGINE

One more command:

    codes  => how many u8 outputs equal the tensors of their names in SAMPLES, as JSON

Settings: as many intra-operator threads as asked for; threads that spin inside a run and sleep after it; the batch
fixed when the model is compiled; floats stay f32.
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


class Onnxruntime:

    def __init__(self, path, image, threads):
        import onnxruntime
        self.version = onnxruntime.__version__
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.add_session_config_entry("session.force_spinning_stop", "1")
        options.add_free_dimension_override_by_name("N", len(image))
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.names = [output.name for output in self.session.get_outputs()]
        self.inputs = {self.session.get_inputs()[0].name: image}

    def run(self):
        return self.session.run(None, self.inputs)


class Openvino:

    def __init__(self, path, image, threads):
        import openvino
        self.version = openvino.__version__.split("-")[0]
        core = openvino.Core()
        model = core.read_model(path)
        model.reshape(image.shape)
        settings = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY",
                    "INFERENCE_PRECISION_HINT": "f32"}
        compiled = core.compile_model(model, "CPU", settings)
        self.names = [output.get_any_name() for output in compiled.outputs]
        self.request = compiled.create_infer_request()
        self.request.set_input_tensor(openvino.Tensor(image, shared_memory=True))

    def run(self):
        self.request.infer()
        return [self.request.get_output_tensor(i).data for i in range(len(self.names))]


ENGINES = {"onnxruntime": Onnxruntime, "openvino": Openvino}


def compare_codes(outputs, wanted):
    """Of all u8 outputs together."""
    differences = [numpy.abs(values.astype(int) - wanted[name][:len(values)])
                   for name, values in outputs.items() if values.dtype == numpy.uint8]
    count = sum(difference.size for difference in differences)
    return {
        "values": count,
        "within_one": 100 * sum(int((difference <= 1).sum()) for difference in differences) / count,
        "equal": 100 * sum(int((difference == 0).sum()) for difference in differences) / count,
        "largest": max(int(difference.max()) for difference in differences),
    }


def answer(line, engine, samples):
    command, *arguments = line.split()
    if command == "outputs":
        return " ".join(repr(float(value)) for value in engine.run()[0].ravel())
    if command == "codes":
        return json.dumps(compare_codes(dict(zip(engine.names, engine.run())), samples))
    engine.run()
    times = []
    for _ in range(int(arguments[0])):
        start = time.perf_counter_ns()
        engine.run()
        times.append(time.perf_counter_ns() - start)
    return " ".join(map(str, times))


def main():
    path, samples_path, batch, threads, name = sys.argv[1:]
    samples = read_safetensors(samples_path)
    image = samples["input"][:int(batch)].copy()
    engine = ENGINES[name](path, image, int(threads))
    engine.run()
    print("ready", engine.version, "-", flush=True)
    for line in sys.stdin:
        print(answer(line, engine, samples), flush=True)


if __name__ == "__main__":
    try:
        main()
    except Exception as error:  # Whatever went wrong is for the one who started this to tell.
        print("error", f"{type(error).__name__}: {error}".replace("\n", " "), flush=True)
        sys.exit(1)
