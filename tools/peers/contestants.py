"""Who takes part, and how each is spoken to (the protocol of worker.h)."""

import dataclasses
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).absolute().parent


# Our instruction sets, and what bounds oneDNN to them, and OpenVINO, which has it within.
ONEDNN_ISAS = {"avx2": "AVX2", "avx_vnni": "AVX2_VNNI", "avx512_vnni": "AVX512_CORE_VNNI"}
BINDABLE = ("fuselage", "onednn", "openvino")  # Programs that can be bound to one of them.
NATIVE = ("fuselage", "onednn", "cudnn")  # Programs of this tree; the others are packages that python_worker.py knows.


@dataclasses.dataclass(frozen=True)
class Contestant:
    name: str
    program: str
    model: str  # The bundle's file.
    mode: str = ""
    compared_with: str = "fuselage int8"
    isa_bound: str = ""  # ONEDNN_MAX_CPU_ISA
    gpu: bool = False  # Its times are the device's.

    @property
    def ours(self):
        return self.program == "fuselage"

    @property
    def bounded(self):
        """To an instruction set that may be less than the machine's."""
        return bool(self.isa_bound) or self.mode == "avx2"

    def within(self, isa):
        """The same, bound to an instruction set."""
        return dataclasses.replace(self, mode=isa if self.ours else self.mode, isa_bound=ONEDNN_ISAS[isa])

    @property
    def runs(self):
        """What it runs, whatever bounds it."""
        return self.program, self.model, self.gpu, "" if self.ours else self.mode

    def allowed(self, isa):
        """Of the outputs' largest difference to ours, over the largest of ours; None: they are held to nothing."""
        if self.ours:
            return 0 if self.model == "int8" else None  # One arithmetic; FP32 is what others are compared with.
        if self.model == "fp32":
            return 1e-2 if self.mode == "fp16" else 1e-4  # Sums in another order; of f16, values of 11 bits.
        if self.model == "own_int8":
            return None  # Another quantization.
        if self.program == "onednn" and isa in ("avx", "avx2", "avx512_core"):
            return None  # Without VNNI its sums saturate in 16 bits.
        return 1 / 32  # Codes that differ by one, as passes/core/pass.h has it.


ALL = [
    Contestant("fuselage int8", "fuselage", "int8", "best"),
    Contestant("fuselage int8 avx2", "fuselage", "int8", "avx2"),
    Contestant("fuselage fastest", "fuselage", "fastest", "best"),
    Contestant("fuselage fp32", "fuselage", "fp32", "best"),
    Contestant("onednn convolutions", "onednn", "int8_lowered", "convolutions"),
    Contestant("onednn convolutions avx2", "onednn", "int8_lowered", "convolutions", "fuselage int8 avx2",
               isa_bound="AVX2"),
    Contestant("onednn network", "onednn", "int8_lowered", "network"),
    Contestant("onednn network avx2", "onednn", "int8_lowered", "network", "fuselage int8 avx2", isa_bound="AVX2"),
    Contestant("onnxruntime int8", "onnxruntime", "int8"),
    Contestant("onnxruntime int8 sums", "onnxruntime", "int8_sums"),
    Contestant("onnxruntime own int8", "onnxruntime", "own_int8"),
    Contestant("onnxruntime fp32", "onnxruntime", "fp32"),
    Contestant("openvino int8", "openvino", "int8"),
    Contestant("openvino own int8", "openvino", "own_int8"),
    Contestant("openvino fp32", "openvino", "fp32"),
    Contestant("fuselage cuda int8", "fuselage", "int8", "cuda", gpu=True),
    Contestant("cudnn int8 convolutions", "cudnn", "int8_lowered", "int8", "fuselage cuda int8", gpu=True),
    Contestant("cudnn fp16 convolutions", "cudnn", "int8_lowered", "fp16", "fuselage cuda int8", gpu=True),
    Contestant("torch fp16", "torch", "fp32", "fp16", "fuselage cuda int8", gpu=True),
]


class WorkerError(Exception):
    """What a worker answered, or that it did not."""


class Worker:
    """The process of a contestant, bound to `cpus`."""

    def __init__(self, contestant, bundle, batch, cpus, python=sys.executable, model=None):
        self.contestant = contestant
        model = bundle / (model or contestant.model)
        arguments = [str(bundle / "samples.safetensors"), str(batch), str(len(cpus))]
        if contestant.program in NATIVE:
            command = [str(HERE / f"{contestant.program}_worker"), str(model), *arguments, contestant.mode]
        else:
            # PyTorch with CUDA is where the caller has it.
            command = [sys.executable if contestant.gpu else str(python), "-B", str(HERE / "python_worker.py"),
                       f"{model}.onnx", *arguments, contestant.program]
        environment = dict(os.environ)
        if contestant.isa_bound:
            environment["ONEDNN_MAX_CPU_ISA"] = contestant.isa_bound
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=environment, preexec_fn=lambda: os.sched_setaffinity(0, cpus))
        try:
            # Libraries may print lines of their own before they are ready.
            _, self.version, self.isa = self._answer("ready ").split()
        except WorkerError:
            self.close()
            raise

    def _answer(self, beginning=""):
        for line in self.process.stdout:
            if line.startswith("error "):
                raise WorkerError(line[len("error "):].strip())
            if line.startswith(beginning):
                return line.strip()
        raise WorkerError(f"it ended with code {self.process.wait()}")

    def ask(self, command):
        try:
            self.process.stdin.write(command + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # The answer says why.
        return self._answer()

    def run(self, count):
        """Milliseconds of `count` runs, after one that is not timed."""
        return [int(ns) * 1e-6 for ns in self.ask(f"run {count}").split()]

    def outputs(self):
        return [float(value) for value in self.ask("outputs").split()]

    def codes(self):
        return json.loads(self.ask("codes"))

    def cpu_seconds(self):
        """Its CPU time so far (proc(5): utime and stime, behind the name in parentheses)."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self):
        try:
            self.process.stdin.close()
            self.process.wait(timeout=10)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
