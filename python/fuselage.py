"""Fuselage from Python: read a network, quantize it, run it on NumPy arrays.

    import fuselage

    network = fuselage.load("resnet18.onnx")
    int8 = network.compile({"input": images})              # float32, [N,3,224,224]: calibrates on all N
    session = int8.prepare(threads=2)
    logits = session.run({"input": image})["logits"]

    int8 = fuselage.compile(module, {"x": images})         # A torch.nn.Module or GraphModule: forward(x).

Everything is libfuselage.so's (capi/fuselage.h): its bits, its errors, as fuselage.Error. Models never change; a
session runs one call at a time, different ones at once in threads of their own, since calls leave the interpreter's
lock.
"""

import ctypes
import html
import inspect
import json
import operator
import os
import tempfile
import threading
from typing import Dict, Iterable, List, NamedTuple, Optional, Tuple

import numpy as np

_ANY_BATCH = -1  # FUSELAGE_ANY_BATCH.
# By fuselage_dtype's numbers.
_DTYPES = [np.dtype(name) for name in ("?", "u1", "i1", "i2", "i4", "i8", "f2", "f4", "f8")]
_IMAGES = ["floats", "planes", "pixels"]  # By fuselage_image's.
_CODES = {
    3: "invalid argument", 5: "not found", 8: "resource exhausted", 12: "unimplemented", 13: "internal", 14: "unavailable"
}


class Error(Exception):
    """What the library found and what it wanted. `code`: "invalid argument", "not found", "resource exhausted",
    "unimplemented", "internal" or "unavailable"."""

    def __init__(self, code: str, message: str):
        super().__init__(message)
        self.code = code


class Value(NamedTuple):
    """An input or an output, by the name that the network's file gives it. shape[0] is the batch."""

    name: str
    dtype: np.dtype
    shape: Tuple[int, ...]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("dtype", ctypes.c_int),
        ("rank", ctypes.c_int32),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("data", ctypes.c_void_p),
    ]


class _LoadOptions(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("shapes", ctypes.POINTER(_Tensor)),
        ("constants", ctypes.POINTER(_Tensor)),
        ("outputs", ctypes.POINTER(ctypes.c_char_p)),
        ("num_shapes", ctypes.c_int32),
        ("num_constants", ctypes.c_int32),
        ("num_outputs", ctypes.c_int32),
        ("image", ctypes.c_int),
        ("mean", ctypes.POINTER(ctypes.c_float)),
        ("std", ctypes.POINTER(ctypes.c_float)),
        ("num_mean", ctypes.c_int32),
        ("num_std", ctypes.c_int32),
        ("allow_nonfinite", ctypes.c_int32),
        ("max_memory_bytes", ctypes.c_int64),
    ]


class _CompileOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("threads", ctypes.c_int32), ("pipeline", ctypes.c_char_p)]


class _SaveOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("isas", ctypes.c_char_p)]


class _SessionOptions(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("threads", ctypes.c_int32),
        ("batch", ctypes.c_int64),
        ("isa", ctypes.c_char_p),
        ("max_memory_bytes", ctypes.c_int64),
        ("kept_batches", ctypes.c_int32),
    ]


def _open():
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libfuselage.so.0")
    path = os.environ.get("FUSELAGE_LIBRARY") or (beside if os.path.exists(beside) else "libfuselage.so.0")
    library = ctypes.CDLL(path)
    handle, tensors, count = ctypes.c_void_p, ctypes.POINTER(_Tensor), ctypes.POINTER(ctypes.c_int32)
    texts = ctypes.POINTER(ctypes.c_char_p)
    for name, result, *arguments in [
        ("version", ctypes.c_char_p),
        ("status_code", ctypes.c_int, handle),
        ("status_message", ctypes.c_char_p, handle),
        ("status_free", None, handle),
        ("load_with", handle, ctypes.c_char_p, ctypes.POINTER(_LoadOptions), ctypes.POINTER(handle)),
        ("compile", handle, handle, tensors, ctypes.c_int32, ctypes.POINTER(_CompileOptions), ctypes.POINTER(handle)),
        ("save", handle, handle, ctypes.c_char_p, ctypes.POINTER(_SaveOptions)),
        ("prepare", handle, handle, ctypes.POINTER(_SessionOptions), ctypes.POINTER(handle)),
        ("run", handle, handle, tensors, ctypes.c_int32, tensors, ctypes.c_int32),
        ("model_inputs", tensors, handle, count),
        ("model_outputs", tensors, handle, count),
        ("session_inputs", tensors, handle, count),
        ("session_outputs", tensors, handle, count),
        ("session_outputs_at", handle, handle, ctypes.c_int64, count, ctypes.POINTER(tensors)),
        ("model_warnings", texts, handle, count),
        ("model_remarks", texts, handle, count),
        ("model_free", None, handle),
        ("session_free", None, handle),
    ]:
        function = getattr(library, "fuselage_" + name)
        function.restype, function.argtypes = result, arguments
    return library


_library = _open()
__version__ = _library.fuselage_version().decode()


def _check(status):
    if not status:
        return
    code = _CODES.get(_library.fuselage_status_code(status), "internal")
    message = _library.fuselage_status_message(status).decode(errors="replace")
    _library.fuselage_status_free(status)
    raise Error(code, message)


def _encoded(name: str) -> bytes:
    # A file's names are any bytes but 0; what is not UTF-8 comes and goes as os.fsdecode has it.
    if "\0" in name:
        raise Error("invalid argument", f"found {name!r}, wanted a name without zeros")
    return name.encode(errors="surrogateescape")


def _fits(what: str, value: int, bits: int = 32) -> int:
    """The value; ctypes would cut it."""
    value = operator.index(value)
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise Error("invalid argument", f"{what} is {value}, wanted a number of {bits} bits")
    return value


def _shapes(shapes: Dict[str, Iterable[int]]):
    """Tensors that have a name and a shape alone."""
    tensors = (_Tensor * len(shapes))()
    for tensor, (name, shape) in zip(tensors, shapes.items()):
        dims = tuple(_fits(f'a dimension of "{name}"', dim, 64) for dim in shape)
        tensor.name, tensor.rank, tensor.shape = _encoded(name), len(dims), (ctypes.c_int64 * len(dims))(*dims)
    return tensors


def _tensors(arrays: Dict[str, np.ndarray]):
    """The arrays as the library takes them; each contiguous, and alive as long as what is returned."""
    tensors = _shapes({name: array.shape for name, array in arrays.items()})
    for tensor, (name, array) in zip(tensors, arrays.items()):
        if array.dtype not in _DTYPES:
            wanted = ", ".join(map(str, _DTYPES))
            raise Error("invalid argument", f'"{name}" is of {array.dtype}, wanted one of {wanted}')
        tensor.dtype, tensor.data = _DTYPES.index(array.dtype), array.ctypes.data
    return tensors


def _contiguous(arrays) -> Dict[str, np.ndarray]:
    # ascontiguousarray would make a scalar an array of rank 1.
    return {name: np.asarray(array, order="C") for name, array in arrays.items()}


def _values(tensors, count) -> List[Value]:
    found = (tensors[i] for i in range(count.value))
    return [Value(v.name.decode(errors="surrogateescape"), _DTYPES[v.dtype], tuple(v.shape[: v.rank])) for v in found]


class _Handle:
    """Something of the library's, which goes with it."""

    def __init__(self, handle, kind: str):
        self._handle, self._free = handle, getattr(_library, f"fuselage_{kind}_free")
        for what in ("inputs", "outputs"):
            count = ctypes.c_int32()
            setattr(self, what, _values(getattr(_library, f"fuselage_{kind}_{what}")(handle, count), count))

    def __del__(self):
        if getattr(self, "_handle", None):
            self._free(self._handle)


class Session(_Handle):
    """A model ready to run. `inputs`, `outputs`: lists of Value, for one sample where any batch will do. Calls from
    several threads take turns."""

    def __init__(self, handle, any_batch: bool):
        super().__init__(handle, "session")
        self.any_batch, self._turn = any_batch, threading.Lock()

    def outputs_at(self, batch: int) -> List[Value]:
        """The outputs of this batch, which is prepared if it is not: the first run need not."""
        count, found = ctypes.c_int32(), ctypes.POINTER(_Tensor)()
        with self._turn:
            _check(_library.fuselage_session_outputs_at(self._handle, _fits("batch", batch, 64), count, found))
            return _values(found, count)

    def run(self, inputs: Dict[str, np.ndarray], outputs: Optional[Iterable[str]] = None) -> Dict[str, np.ndarray]:
        """The outputs that are asked for; None: all. Each input is of the type that `inputs` says; where any
        batch will do, shape[0] is the batch."""
        given = _contiguous(inputs)
        batch = next((array.shape[0] for array in given.values() if array.ndim), 0) if self.any_batch else 0
        known = {value.name: value for value in (self.outputs_at(batch) if batch else self.outputs)}
        made = {}
        for name in known if outputs is None else outputs:
            if name not in known:
                raise Error("not found", f'found the output "{name}", wanted one of {", ".join(map(repr, known))}')
            made[name] = np.empty(known[name].shape, known[name].dtype)
        with self._turn:
            _check(_library.fuselage_run(self._handle, _tensors(given), len(given), _tensors(made), len(made)))
        return made


class Model(_Handle):
    """A network. `inputs`, `outputs`: lists of Value, for one sample."""

    @property
    def warnings(self) -> List[str]:
        """What loading found that nobody may have meant."""
        return self._texts("warnings")

    @property
    def remarks(self) -> List[str]:
        """What each pass did to which node, or nearly did and why not: "fusion: missed: %conv1: ..."."""
        return self._texts("remarks")

    def _repr_html_(self) -> str:
        """For notebooks: its inputs and outputs, and what the passes said."""

        def table(heads, rows):
            cells = ("".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) for row in rows)
            return "<table><tr>%s</tr>%s</table>" % (
                "".join(f"<th>{head}</th>" for head in heads), "".join(f"<tr>{row}</tr>" for row in cells)
            )

        values = [("input", *value) for value in self.inputs] + [("output", *value) for value in self.outputs]
        remarks = [remark.split(": ", 2) for remark in self.remarks]
        return table(("", "name", "type", "shape"), values) + (
            f"<details><summary>{len(remarks)} remarks of passes</summary>"
            f"{table(('pass', '', 'remark'), remarks)}</details>" if remarks else ""
        )

    def _texts(self, what: str) -> List[str]:
        count = ctypes.c_int32()
        found = getattr(_library, f"fuselage_model_{what}")(self._handle, count)
        return [found[i].decode(errors="replace") for i in range(count.value)]

    def compile(self, samples: Dict[str, np.ndarray], *, threads: int = 1, pipeline: Optional[str] = None) -> "Model":
        """To INT8. `samples`: for each input its values for any number of samples, which shape[0] counts. `pipeline`:
        what a config has between the braces of `pipeline { }`."""
        given = _contiguous(samples)
        options = _CompileOptions(
            ctypes.sizeof(_CompileOptions), _fits("threads", threads), pipeline.encode() if pipeline else None
        )
        handle = ctypes.c_void_p()
        _check(_library.fuselage_compile(self._handle, _tensors(given), len(given), options, handle))
        return Model(handle, "model")

    def save(self, path, *, isas: Optional[Iterable[str]] = None) -> None:
        """A .fuse file, which load() maps and does not copy. `isas`: the instruction sets to pack weights for, which this
        CPU must run, ["avx2"] for example; None: the CPU's best."""
        names = None if isas is None else ",".join(isas).encode()
        _check(_library.fuselage_save(self._handle, os.fsencode(path), _SaveOptions(ctypes.sizeof(_SaveOptions), names)))

    def prepare(
        self, *, threads: int = 1, batch: Optional[int] = 1, isa: Optional[str] = None, max_memory_bytes: int = 0,
        kept_batches: int = 4
    ) -> Session:
        """`batch`: None for any; then `kept_batches` stay prepared, those used last. `isa`: the best instruction set
        that kernels may use, "avx2" for example; None: the CPU's best."""
        options = _SessionOptions(
            ctypes.sizeof(_SessionOptions), _fits("threads", threads),
            _ANY_BATCH if batch is None else _fits("batch", batch, 64), isa.encode() if isa else None,
            _fits("max_memory_bytes", max_memory_bytes, 64), _fits("kept_batches", kept_batches)
        )
        handle = ctypes.c_void_p()
        _check(_library.fuselage_prepare(self._handle, options, handle))
        return Session(handle, any_batch=batch is None)


class Report:
    """What a run of the harness found, from its output folder. `results`: its results.json (harness/results.proto). A
    notebook shows its report.html."""

    def __init__(self, folder):
        try:
            with open(os.path.join(folder, "results.json"), encoding="utf-8") as file:
                self.results = json.load(file)
            with open(os.path.join(folder, "report.html"), encoding="utf-8") as file:
                self._html = file.read()
        except OSError as error:
            raise Error("not found", f"{error.filename}: {error.strerror}") from error

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{html.escape(self._html)}" style="width: 100%; height: 45em; border: 0"></iframe>'


def load(
    path, *, shapes: Optional[Dict[str, Iterable[int]]] = None, constants: Optional[Dict[str, np.ndarray]] = None,
    outputs: Iterable[str] = (), image: str = "floats", mean: Iterable[float] = (), std: Iterable[float] = (),
    allow_nonfinite: bool = False, max_memory_bytes: int = 0
) -> Model:
    """An ONNX file, an .ir file that tools/export_fx.py wrote, or what Model.save wrote. Of an ONNX file, `shapes`: of
    inputs whose dimensions it leaves open, or fixes otherwise; `constants`: inputs that have these values for good,
    {"sr": 16000} for example, and are none any more; `outputs`: the values that are the outputs in place of its own.

    `image`, of all but what Model.save wrote: of a network of images, whose only input is float32 [n, c, h, w], what the
    model takes: "pixels", uint8 [n, h, w, c], or "planes", uint8 [n, c, h, w]; its first operators are then
    (x / 255 - mean) / std, one value for all channels or one each. `allow_nonfinite`: weights that are infinite or not a
    number are no error. `max_memory_bytes`: of reading the file; 0: the reader's limit."""
    stated, given = _shapes(shapes or {}), _contiguous(constants or {})
    values, names = _tensors(given), [_encoded(name) for name in outputs]
    if image not in _IMAGES:
        raise Error("invalid argument", f"image is {image!r}, wanted one of {', '.join(map(repr, _IMAGES))}")
    means, stds = ((ctypes.c_float * len(of))(*of) for of in (tuple(mean), tuple(std)))
    options = _LoadOptions(
        ctypes.sizeof(_LoadOptions), stated, values, (ctypes.c_char_p * len(names))(*names), len(stated), len(values),
        len(names), _IMAGES.index(image), means, stds, len(means), len(stds), allow_nonfinite,
        _fits("max_memory_bytes", max_memory_bytes, 64)
    )
    handle = ctypes.c_void_p()
    _check(_library.fuselage_load_with(os.fsencode(path), options, handle))
    return Model(handle, "model")


def from_torch(module, example_inputs) -> Model:
    """What export_fx.export takes: a torch.nn.Module in eval mode, or a traced torch.fx.GraphModule, and a tensor for each
    argument of its forward, with one sample. What it does not support is an export_fx.ExportError."""
    import export_fx  # Imports PyTorch.

    with tempfile.TemporaryDirectory() as folder:
        stem = os.path.join(folder, type(module).__name__)
        export_fx.export(module, tuple(example_inputs), stem)
        return load(stem + ".ir")


def compile(model, samples: Dict[str, np.ndarray], **options) -> Model:
    """load() or from_torch(), then Model.compile(samples, **options). Of a module, samples (arrays, or tensors) go by the
    names of its forward's arguments."""
    if isinstance(model, (str, bytes, os.PathLike)):
        return load(model).compile(samples, **options)
    arguments = list(inspect.signature(model.forward).parameters)
    for name in samples:
        if name not in arguments:
            raise Error("not found", f'found samples of "{name}", wanted those of {", ".join(arguments)}')
    names = [name for name in arguments if name in samples]
    import torch

    return from_torch(model, [torch.as_tensor(samples[name][:1]) for name in names]).compile(samples, **options)
