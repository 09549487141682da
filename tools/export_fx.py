#!/usr/bin/python3
"""Exports a PyTorch model as a graph that Fuselage reads: torch.fx traces it, this script writes <stem>.ir, the graph
in the IR's canonical text (ir/text.h), and <stem>.safetensors, its parameters.

    /usr/bin/python3 tools/export_fx.py my_model.py:build my_model

`build` is a function without arguments in my_model.py; it returns the model and a tuple of example inputs. As a library:

    export_fx.export(model, (torch.zeros(1, 3, 224, 224),), "my_model")

Works with PyTorch 1.13 (Debian's python3-torch) and newer; docs/exporting_from_pytorch.md says what is supported. Rules:
  - Calls of functions, methods and modules stay what they are; arguments become our ops' operands and attributes.
  - A node is named after the module that owns its weight, and otherwise after its op: not after the spelling.
  - Tied weights are one parameter, by the name of its first use.
  - A node whose value is no tensor (a size, a shape, arithmetic on them) is that value. In view and reshape a computed
    size that the input has at the same place is written as 0, "as in the input"; the only other one as -1.
  - A number in a tensor's place becomes a parameter without dimensions.
  - In-place forms (x.relu_(), F.relu(x, inplace=True), +=) are written as what they compute. Where something reads the
    overwritten value later, they are an error.
What has no expression is an ExportError, which names the node, its target and the argument, and says what is supported.
"""

import argparse
import dis
import functools
import importlib.util
import inspect
import json
import math
import operator
import pathlib
import re
import struct
import sys
import unittest.mock

import torch
import torch.fx
import torch.nn.functional as F
from torch import nn

DTYPES = {torch.bool: "bool", torch.uint8: "u8", torch.int8: "i8", torch.int16: "i16", torch.int32: "i32",
          torch.int64: "i64", torch.float16: "f16", torch.float32: "f32", torch.float64: "f64"}
MOST_INLINE_VALUES = 16  # As ir/print.cc.
INT64_MAX = 2**63 - 1


class ExportError(Exception):
    """Names the node, its target, what was found and what is supported."""


class Unsupported(Exception):
    """What a conversion finds in its arguments; the exporter adds the node."""

    def __init__(self, argument, value, supported):
        super().__init__(f"argument {argument}={value!r} is not supported; supported: {supported}")


def require(condition, argument, value, supported):
    if not condition:
        raise Unsupported(argument, value, supported)


# --- Text, as ir/print.cc and ir/base write it.


class DType(str):
    """An attribute that names an element type."""


def shortest(value, is_double=True):
    """The shortest decimal text that reads back as the same double (or float)."""
    value = float(value)
    if abs(value) < 1e6 and value == math.floor(value) and not (value == 0 and math.copysign(1, value) < 0):
        return str(int(value))
    for digits in range(1, 18 if is_double else 10):
        text = "%.*g" % (digits, value)
        read = float(text) if is_double else struct.unpack("f", struct.pack("f", float(text)))[0]
        if read == value:
            break
    return text


def attribute_text(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        text = shortest(value)
        return text if re.search("[.en]", text) else text + ".0"
    if isinstance(value, DType):
        return str(value)
    if isinstance(value, str):
        return f'"{value}"'
    return "[" + ", ".join(attribute_text(item) for item in value) + "]"


def type_text(dtype, shape):
    return f"{DTYPES[dtype]}[{','.join(str(size) for size in shape)}]"


def tensor_bytes(tensor):
    return tensor.detach().cpu().contiguous().numpy().tobytes()


def fingerprint(tensor):
    """ir/base/tensor.h: FNV-1a over the type's text and the data, in 8-byte words, folded."""
    result = 0xCBF29CE484222325
    for data in (type_text(tensor.dtype, tensor.shape).encode(), tensor_bytes(tensor)):
        whole = len(data) // 8 * 8
        for word in memoryview(data[:whole]).cast("Q"):
            result = ((result ^ word) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
            result ^= result >> 32
        for byte in data[whole:]:
            result = ((result ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return result


def parameter_text(tensor):
    if tensor.numel() > MOST_INLINE_VALUES:
        return f"data({fingerprint(tensor):016x})"
    values = tensor.detach().cpu().flatten().tolist()
    if tensor.dtype.is_floating_point:
        return "[" + ", ".join(shortest(value, tensor.dtype == torch.float64) for value in values) + "]"
    return "[" + ", ".join(str(int(value)) for value in values) + "]"


def write_safetensors(path, tensors):
    """The bytes that ir/safetensors.cc writes for the same tensors."""
    entries, offset = [], 0
    for name in sorted(tensors):
        tensor = tensors[name]
        size = tensor.numel() * tensor.element_size()
        shape = ",".join(str(dim) for dim in tensor.shape)
        dtype = DTYPES[tensor.dtype].upper()
        entries.append(f'"{name}":{{"dtype":"{dtype}","shape":[{shape}],"data_offsets":[{offset},{offset + size}]}}')
        offset += size
    header = ("{" + ",".join(entries) + "}").encode()
    header += b" " * (-len(header) % 8)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(header)) + header)
        for name in sorted(tensors):
            out.write(tensor_bytes(tensors[name]))


# --- Our ops.


class Op:
    """An op as its schema has it (ir/op.h)."""

    def __init__(self, aliases, operands, attributes):
        self.aliases = set(aliases)
        self.operands = [operand["name"] for operand in operands]
        self.parameters = {operand["name"] for operand in operands if operand["parameter"]}
        self.kinds = {a["name"]: a["kind"] for a in attributes}
        self.defaults = {a["name"]: a["default"] for a in attributes if "default" in a}  # As text.

    def operand(self, i):
        """The name of operand i: the last may take all the remaining ones."""
        return self.operands[min(i, len(self.operands) - 1)]


@functools.lru_cache(maxsize=None)
def our_ops():
    """By name. What //tools:ops.json says: beside this script where Bazel runs it, or where Bazel builds it."""
    tools = pathlib.Path(__file__).absolute().parent
    for path in (tools / "ops.json", tools.parent / "bazel-bin/tools/ops.json"):
        if path.exists():
            return {name: Op(**schema) for name, schema in json.loads(path.read_text()).items()}
    raise ExportError(f"{path} is missing: bazel build //tools:ops.json writes it")


class Call:
    """A call of one of our ops: operands are Values, numbers, tensors of a module or None, in the op's order; parameters
    are tensors, by operand, of a module."""

    unbound = None  # The axis of a split into slices of one, which its elements are without.
    other_types = ()  # Operands whose element types need not be that of the others.

    def __init__(self, op, operands, parameters=None, **attributes):
        self.op, self.operands, self.parameters, self.attributes = op, list(operands), parameters or {}, attributes


class Value:
    """What a node of the exported graph is: a tensor, or a tuple of tensors."""

    unbound = None  # As Call.unbound.

    def __init__(self, name, result, parameter=None, storage=None, version=0):
        self.name, self.parameter, self.storage, self.version = name, parameter, storage, version
        self.is_tuple = not isinstance(result, torch.Tensor)
        self.elements = [(t.dtype, tuple(t.shape)) for t in (result if self.is_tuple else [result])]

    def __repr__(self):
        return f"%{self.name}"

    @property
    def dtype(self):
        return self.elements[0][0]

    @property
    def shape(self):
        return self.elements[0][1]

    def type_text(self):
        texts = [type_text(*element) for element in self.elements]
        return "(" + ", ".join(texts) + ")" if self.is_tuple else texts[0]


class Computed(int):
    """An int that the traced program computed, from sizes."""


# --- How PyTorch's functions, methods and modules become calls. A conversion has PyTorch's signature; it gets Values
# for tensors and Python values for everything else. A module's conversion gets the module first.

FUNCTIONS, METHODS, MODULES = {}, {}, {}


def resolve(path):
    """The object of "torch.nn.functional.relu"; None where this PyTorch has none."""
    found = {"torch": torch, "operator": operator}.get(path.split(".")[0])
    for part in path.split(".")[1:]:
        found = getattr(found, part, None)
    return found


def converts(*spellings):
    """Registers a conversion: with a dot for a function, without for a method, a class for a module."""

    def register(conversion):
        for spelling in spellings:
            if not isinstance(spelling, str):
                MODULES[spelling] = conversion
            elif "." not in spelling:
                METHODS[spelling] = (spelling, conversion)
            elif resolve(spelling) is not None:
                FUNCTIONS.setdefault(resolve(spelling), (spelling, conversion))
        return conversion

    return register


KINDS = {"bool": (bool,), "float": (float, int), "int": (int,), "string": (str,)}


@functools.lru_cache(maxsize=None)
def aliases():
    """Of each function of PyTorch that an op is the same as: its spelling, the op's name. Not where an op takes lists,
    which PyTorch writes in other forms."""
    return {resolve(alias): (alias, name) for name, op in our_ops().items() if set(op.kinds.values()) <= KINDS.keys()
            for alias in sorted(op.aliases) if resolve(alias) is not None}


def by_schema(function):
    """(spelling, conversion) of a function that takes what an op of ours takes, by the names in the op's schema."""
    if function not in aliases():
        return None
    spelling, name = aliases()[function]
    op = our_ops()[name]
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        signature = inspect.Signature()
    if not signature.parameters.keys() >= set(op.operands):  # A builtin, which does not say: operands come first.
        kind, required = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.empty
        signature = inspect.Signature(
            [inspect.Parameter(operand, kind) for operand in op.operands] +
            [inspect.Parameter(key, kind, default=... if key in op.defaults else required) for key in op.kinds])

    def conversion(*args, **kwargs):
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        attributes = {}
        for argument, value in bound.arguments.items():
            if argument in op.kinds and value is not ...:
                require(isinstance(value, KINDS[op.kinds[argument]]), argument, value, f"one {op.kinds[argument]}")
                attributes[argument] = float(value) if op.kinds[argument] == "float" else value
            elif argument not in [*op.kinds, *op.operands, "inplace"]:
                default = signature.parameters[argument].default
                require(value is default or value == default, argument, value, default)
        return Call(name, [bound.arguments.get(operand) for operand in op.operands], **attributes)

    conversion.__signature__ = signature
    return spelling, conversion


def both(name):
    return f"torch.{name}", f"torch.nn.functional.{name}"


def ints(value, count, argument):
    """One int, or `count` of them, as a list."""
    values = list(value) if isinstance(value, (list, tuple)) else [value] * count
    require(len(values) in (1, count), argument, value, f"one int or {count}")
    values = values * count if len(values) == 1 else values
    return [int(v) for v in values]


def axis_of(dim, rank):
    return dim + rank if dim < 0 else dim


def window_of(rank, stride, padding, dilation, kernel):
    dilation = ints(dilation, rank, "dilation")
    if padding == "valid":
        ends = begins = [0] * rank
    elif padding == "same":
        totals = [d * (k - 1) for d, k in zip(dilation, kernel)]
        begins = [total // 2 for total in totals]
        ends = [total - begin for total, begin in zip(totals, begins)]
    else:
        ends = begins = ints(padding, rank, "padding")
    return {"stride": ints(stride, rank, "stride"), "padding": begins + ends, "dilation": dilation}


def check_batched(input, rank):
    require(len(input.shape) == rank + 2, "input", type_text(input.dtype, input.shape),
            f"a batch, of rank {rank + 2}")


def register_elementwise(op, cls, *spellings):
    converts(*spellings)(lambda input, inplace=False: Call(op, [input]))
    converts(cls)(lambda module, input: Call(op, [input]))


register_elementwise("relu", nn.ReLU, *both("relu"), *both("relu_"), "relu", "relu_")
register_elementwise("relu6", nn.ReLU6, "torch.nn.functional.relu6")
register_elementwise("sigmoid", nn.Sigmoid, *both("sigmoid"), "torch.sigmoid_", "sigmoid", "sigmoid_")
register_elementwise("tanh", nn.Tanh, *both("tanh"), "torch.tanh_", "tanh", "tanh_")
register_elementwise("silu", nn.SiLU, "torch.nn.functional.silu")
register_elementwise("hardswish", nn.Hardswish, "torch.nn.functional.hardswish")
register_elementwise("hardsigmoid", nn.Hardsigmoid, "torch.nn.functional.hardsigmoid")


@converts("torch.nn.functional.gelu")
def gelu(input, approximate="none"):
    return Call("gelu", [input], approximate=approximate)


@converts("torch.nn.functional.leaky_relu", "torch.nn.functional.leaky_relu_")
def leaky_relu(input, negative_slope=0.01, inplace=False):
    return Call("leaky_relu", [input], negative_slope=float(negative_slope))


@converts("torch.clamp", "torch.clamp_", "torch.clip", "torch.clip_", "clamp", "clamp_", "clip", "clip_")
def clamp(input, min=None, max=None):
    for argument, value in (("min", min), ("max", max)):
        require(not isinstance(value, Value), argument, value, "a number")
    return Call("clamp", [input], min=-math.inf if min is None else float(min),
                max=math.inf if max is None else float(max))


@converts("torch.nn.functional.hardtanh", "torch.nn.functional.hardtanh_")
def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    return clamp(input, min_val, max_val)


@converts("torch.softmax", "torch.nn.functional.softmax", "softmax")
def softmax(input, dim=None, _stacklevel=3, dtype=None):
    require(dim is not None, "dim", dim, "an int")
    require(dtype is None, "dtype", dtype, "None")
    return Call("softmax", [input], dim=dim)


converts(nn.GELU)(lambda module, input: gelu(input, getattr(module, "approximate", "none")))
converts(nn.LeakyReLU)(lambda module, input: leaky_relu(input, module.negative_slope))
converts(nn.Hardtanh)(lambda module, input: clamp(input, module.min_val, module.max_val))
converts(nn.Softmax)(lambda module, input: softmax(input, module.dim))
converts(nn.LogSoftmax)(lambda module, input: Call("log_softmax", [input], dim=int(module.dim)))
converts(nn.Mish)(lambda module, input: Call("mish", [input]))
converts(nn.SELU)(lambda module, input: Call("selu", [input]))
converts(nn.Softsign)(lambda module, input: Call("softsign", [input]))
converts(nn.ELU)(lambda module, input: Call("elu", [input], alpha=float(module.alpha)))
converts(nn.CELU)(lambda module, input: Call("celu", [input], alpha=float(module.alpha)))


@converts(nn.Softplus)
def softplus(module, input):
    require(module.beta == 1, "beta", module.beta, "1")
    require(module.threshold >= 20, "threshold", module.threshold, "20 or more, where it makes no difference")
    return Call("softplus", [input])


@converts(nn.PReLU)
def prelu(module, input):
    weight = module.weight.detach()
    return Call("prelu", [input, weight.reshape(-1, *[1] * (len(input.shape) - 2)) if weight.numel() > 1 else weight])


@converts("torch.nn.functional.dropout", "torch.nn.functional.dropout1d", "torch.nn.functional.dropout2d",
          "torch.nn.functional.dropout3d")
def dropout(input, p=0.5, training=True, inplace=False):
    require(not training, "training", training, "False (model.eval(), and training=self.training in the call)")
    return Call("dropout", [input], p=float(p))


converts(nn.Dropout, nn.Dropout2d, nn.Dropout3d)(lambda module, input: dropout(input, module.p, module.training))


@converts("contiguous", "detach", "clone", "torch.detach", "torch.clone")
def identity(input, memory_format=None):
    return Call("identity", [input])


converts(nn.Identity)(lambda module, input: identity(input))


def to_dtype(input, dtype):
    require(dtype in DTYPES, "dtype", dtype, ", ".join(str(d) for d in DTYPES))
    return Call("identity", [input]) if dtype == input.dtype else Call("to", [input], dtype=DType(DTYPES[dtype]))


@converts("to")
def to(input, dtype):
    require(isinstance(dtype, torch.dtype), "dtype", dtype, "an element type")
    return to_dtype(input, dtype)


converts("float")(lambda input: to_dtype(input, torch.float32))
converts("double")(lambda input: to_dtype(input, torch.float64))
converts("half")(lambda input: to_dtype(input, torch.float16))
converts("bool")(lambda input: to_dtype(input, torch.bool))
converts("int")(lambda input: to_dtype(input, torch.int32))
converts("long")(lambda input: to_dtype(input, torch.int64))


@converts("torch.add", "operator.add", "operator.iadd", "add", "add_")
def add(input, other, alpha=1):
    return Call("add", [input, other], alpha=float(alpha))


@converts("torch.sub", "operator.sub", "operator.isub", "sub", "sub_")
def sub(input, other, alpha=1):
    require(alpha == 1, "alpha", alpha, "1")
    return Call("sub", [input, other])


@converts("torch.mul", "operator.mul", "operator.imul", "mul", "mul_")
def mul(input, other):
    return Call("mul", [input, other])


@converts("torch.div", "operator.truediv", "operator.itruediv", "div", "div_")
def div(input, other, rounding_mode=None):
    require(rounding_mode is None, "rounding_mode", rounding_mode, "None")
    for argument, value in (("input", input), ("other", other)):
        require(not isinstance(value, Value) or value.dtype.is_floating_point, argument, value, "floats")
    return Call("div", [input, other])


@converts("torch.matmul", "operator.matmul", "matmul", "torch.mm", "mm", "torch.bmm", "bmm")
def matmul(input, other):
    return Call("matmul", [input, other])


@converts("torch.nn.functional.scaled_dot_product_attention")
def scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None,
                                 enable_gqa=False):
    require(dropout_p == 0, "dropout_p", dropout_p, "0.0")
    return Call("scaled_dot_product_attention", [query, key, value, attn_mask], is_causal=bool(is_causal),
                scale=1 / math.sqrt(query.shape[-1]) if scale is None else float(scale))


@converts("torch.addmm", "addmm")
def addmm(input, mat1, mat2, beta=1, alpha=1):
    return Call("addmm", [input, mat1, mat2], beta=float(beta), alpha=float(alpha))


@converts("torch.nn.functional.linear")
def linear(input, weight, bias=None):
    return Call("linear", [input, weight, bias])


converts(nn.Linear)(lambda module, input: Call("linear", [input], {"weight": module.weight, "bias": module.bias}))


def register_conv(rank):

    def conv_attributes(weight, stride, padding, dilation, groups):
        return {**window_of(rank, stride, padding, dilation, weight.shape[2:]), "groups": groups}

    def transpose_attributes(weight, stride, padding, output_padding, groups, dilation):
        return {**conv_attributes(weight, stride, padding, dilation, groups),
                "output_padding": ints(output_padding, rank, "output_padding")}

    @converts(f"torch.conv{rank}d", f"torch.nn.functional.conv{rank}d")
    def conv(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
        check_batched(input, rank)
        return Call(f"conv{rank}d", [input, weight, bias],
                    **conv_attributes(weight, stride, padding, dilation, groups))

    @converts(f"torch.conv_transpose{rank}d", f"torch.nn.functional.conv_transpose{rank}d")
    def conv_transpose(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
        check_batched(input, rank)
        return Call(f"conv_transpose{rank}d", [input, weight, bias],
                    **transpose_attributes(weight, stride, padding, output_padding, groups, dilation))

    @converts(getattr(nn, f"Conv{rank}d"))
    def conv_module(module, input):
        check_batched(input, rank)
        require(module.padding_mode == "zeros", "padding_mode", module.padding_mode, "'zeros'")
        return Call(f"conv{rank}d", [input], {"weight": module.weight, "bias": module.bias},
                    **conv_attributes(module.weight, module.stride, module.padding, module.dilation, module.groups))

    @converts(getattr(nn, f"ConvTranspose{rank}d"))
    def conv_transpose_module(module, input, output_size=None):
        check_batched(input, rank)
        require(output_size is None, "output_size", output_size, "None")
        return Call(f"conv_transpose{rank}d", [input], {"weight": module.weight, "bias": module.bias},
                    **transpose_attributes(module.weight, module.stride, module.padding, module.output_padding,
                                           module.groups, module.dilation))


def register_pools(rank):

    @converts(f"torch.nn.functional.max_pool{rank}d", f"torch.max_pool{rank}d")
    def max_pool(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
        check_batched(input, rank)
        require(not return_indices, "return_indices", return_indices, "False")
        kernel = ints(kernel_size, rank, "kernel_size")
        return Call(f"max_pool{rank}d", [input], kernel_size=kernel, ceil_mode=ceil_mode,
                    **window_of(rank, stride or kernel, padding, dilation, kernel))

    @converts(f"torch.nn.functional.avg_pool{rank}d", f"torch.avg_pool{rank}d")
    def avg_pool(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True,
                 divisor_override=None):
        check_batched(input, rank)
        require(divisor_override is None, "divisor_override", divisor_override, "None")
        kernel = ints(kernel_size, rank, "kernel_size")
        attributes = window_of(rank, stride or kernel, padding, 1, kernel)
        del attributes["dilation"]
        # Without padding both ways of counting are one.
        return Call(f"avg_pool{rank}d", [input], kernel_size=kernel, ceil_mode=ceil_mode,
                    count_include_pad=count_include_pad and any(attributes["padding"]), **attributes)

    @converts(f"torch.nn.functional.adaptive_avg_pool{rank}d", f"torch.adaptive_avg_pool{rank}d")
    def adaptive_avg_pool(input, output_size):
        check_batched(input, rank)
        sizes = output_size if isinstance(output_size, (list, tuple)) else [output_size] * rank
        sizes = [input.shape[2 + i] if size is None else size for i, size in enumerate(sizes)]
        return Call(f"adaptive_avg_pool{rank}d", [input], output_size=ints(sizes, rank, "output_size"))

    converts(getattr(nn, f"MaxPool{rank}d"))(lambda m, input: max_pool(
        input, m.kernel_size, m.stride, m.padding, m.dilation, m.ceil_mode, m.return_indices))
    converts(getattr(nn, f"AvgPool{rank}d"))(lambda m, input: avg_pool(
        input, m.kernel_size, m.stride, m.padding, m.ceil_mode, m.count_include_pad,
        getattr(m, "divisor_override", None)))
    converts(getattr(nn, f"AdaptiveAvgPool{rank}d"))(lambda m, input: adaptive_avg_pool(input, m.output_size))


for rank in (1, 2, 3):
    register_conv(rank)
    register_pools(rank)


@converts("torch.nn.functional.batch_norm")
def batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    require(not training, "training", training, "False (model.eval())")
    return Call("batch_norm", [input, weight, bias, running_mean, running_var], eps=float(eps))


@converts(nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
def batch_norm_module(module, input):
    require(not module.training, "training", True, "False (model.eval())")
    require(module.running_mean is not None, "track_running_stats", False, "True")
    names = ("weight", "bias", "running_mean", "running_var")
    return Call("batch_norm", [input], {name: getattr(module, name) for name in names}, eps=float(module.eps))


@converts("torch.nn.functional.layer_norm", "torch.layer_norm")
def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5, cudnn_enable=True):
    return Call("layer_norm", [input, weight, bias], normalized_shape=[int(size) for size in normalized_shape],
                eps=float(eps))


@converts(nn.LayerNorm)
def layer_norm_module(module, input):
    return Call("layer_norm", [input], {"weight": module.weight, "bias": getattr(module, "bias", None)},
                normalized_shape=list(module.normalized_shape), eps=float(module.eps))


converts(nn.GroupNorm)(lambda module, input: Call(
    "group_norm", [input], {"weight": module.weight, "bias": module.bias}, num_groups=module.num_groups,
    eps=float(module.eps)))


@converts(nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d)
def instance_norm(module, input):
    require(not module.track_running_stats, "track_running_stats", True, "False")
    return Call("instance_norm", [input], {"weight": module.weight, "bias": module.bias}, eps=float(module.eps))


def register_reduction(op):

    @converts(f"torch.{op}", op)
    def reduction(input, dim=None, keepdim=False, dtype=None):
        require(dtype is None, "dtype", dtype, "None")
        require(op in ("amax", "amin") or input.dtype.is_floating_point or input.dtype == torch.int64, "input",
                type_text(input.dtype, input.shape), "floats or i64, whose sums are of their type")
        dims = [] if dim is None else list(dim) if isinstance(dim, (list, tuple)) else [dim]
        return Call(op, [input], dims=[int(d) for d in dims], keepdim=keepdim)


for op in ("mean", "sum", "prod", "amax", "amin", "logsumexp"):
    register_reduction(op)


def by_index(op, input, index, *operands, dim):
    call = Call(op, [input, index, *operands], dim=int(dim))
    call.other_types = ("index",)
    return call


@converts("torch.index_select", "index_select")
def index_select(input, dim, index):
    return by_index("index_select", input, index, dim=dim)


@converts("torch.gather", "gather")
def gather(input, dim, index, sparse_grad=False):
    return by_index("gather", input, index, dim=dim)


@converts("torch.scatter", "scatter")
def scatter(input, dim, index, src):
    require(isinstance(src, Value), "src", src, "a tensor")
    return by_index("scatter", input, index, src, dim=dim)


@converts("torch.nn.functional.embedding")
def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
    require(max_norm is None, "max_norm", max_norm, "None")
    return by_index("index_select", weight, input, dim=0)


converts(nn.Embedding)(lambda module, input: embedding(input, module.weight.detach(), max_norm=module.max_norm))


@converts("torch.where")
def where(condition, input, other):
    require(any(isinstance(operand, Value) for operand in (input, other)), "input", input, "a tensor, here or as other")
    call = Call("where", [condition, input, other])
    call.other_types = ("condition",)
    return call


converts("where")(lambda input, condition, other: where(condition, input, other))
converts("masked_fill", "torch.masked_fill")(lambda input, mask, value: where(mask, value, input))


@converts("expand")
def expand(input, *sizes):
    sizes = list(sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (list, tuple)) else sizes)
    for i, own in enumerate(reversed(input.shape), 1):
        if sizes[-i] == own:
            sizes[-i] = -1  # Whatever it is: the batch can change.
    return Call("expand", [input], shape=[int(size) for size in sizes])


@converts("torch.nn.functional.interpolate")
def interpolate(input, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None,
                antialias=False):
    kinds = {"nearest": "nearest", "nearest-exact": "nearest", "linear": "linear", "bilinear": "linear",
             "trilinear": "linear", "bicubic": "cubic"}
    require(mode in kinds, "mode", mode, ", ".join(kinds))
    require(not antialias, "antialias", antialias, "False")
    rank = len(input.shape) - 2
    attributes = {"dims": list(range(2, 2 + rank)), "mode": kinds[mode]}
    if size is None:
        scales = [float(s) for s in (scale_factor if isinstance(scale_factor, (list, tuple)) else [scale_factor] * rank)]
        exact = [own * scale for own, scale in zip(input.shape[2:], scales)]
        size = [math.floor(value) for value in exact]
        if not recompute_scale_factor and size != exact:
            attributes["scales"] = scales
    attributes["coordinates"] = "align_corners" if align_corners else "asymmetric" if mode == "nearest" else "half_pixel"
    if kinds[mode] == "nearest":
        attributes["nearest_mode"] = "floor" if mode == "nearest" else "round_prefer_ceil"
    return Call("resize", [input], sizes=ints(size, rank, "size"), **attributes)


converts(nn.Upsample)(lambda module, input: interpolate(
    input, module.size, module.scale_factor, module.mode, module.align_corners,
    getattr(module, "recompute_scale_factor", None)))


@converts("torch.flatten", "flatten")
def flatten(input, start_dim=0, end_dim=-1):
    if end_dim == len(input.shape) - 1:
        end_dim = -1
    return Call("flatten", [input], start_dim=start_dim, end_dim=end_dim)


converts(nn.Flatten)(lambda module, input: flatten(input, module.start_dim, module.end_dim))


@converts("torch.reshape", "reshape", "view")
def reshape(input, *sizes, shape=None):
    sizes = shape if shape is not None else sizes
    if len(sizes) == 1 and isinstance(sizes[0], (list, tuple)):
        sizes = sizes[0]
    require(not any(isinstance(size, torch.dtype) for size in sizes), "dtype", sizes, "sizes")
    sizes = list(sizes)
    for i, size in enumerate(sizes):
        require(isinstance(size, int) and size != 0, "shape", size, "ints that are not 0")
        if isinstance(size, Computed) and i < len(input.shape) and size == input.shape[i]:
            sizes[i] = 0
    computed = [i for i, size in enumerate(sizes) if isinstance(size, Computed)]
    if len(computed) == 1 and -1 not in sizes:
        sizes[computed[0]] = -1
    return Call("reshape", [input], shape=[int(size) for size in sizes])


@converts("torch.squeeze", "squeeze")
def squeeze(input, dim=None):
    if dim is None:
        return Call("squeeze", [input])
    dims = [axis_of(d, len(input.shape)) for d in (dim if isinstance(dim, (list, tuple)) else [dim])]
    dims = [d for d in dims if input.shape[d] == 1]
    return Call("squeeze", [input], dims=dims) if dims else Call("identity", [input])


@converts("torch.unsqueeze", "unsqueeze")
def unsqueeze(input, dim):
    return Call("unsqueeze", [input], dims=[dim])


@converts("torch.permute", "permute")
def permute(input, *sizes, dims=None):
    dims = dims if dims is not None else sizes
    if len(dims) == 1 and isinstance(dims[0], (list, tuple)):
        dims = dims[0]
    return Call("permute", [input], dims=[axis_of(int(d), len(input.shape)) for d in dims])


@converts("torch.transpose", "transpose")
def transpose(input, dim0, dim1):
    dims = list(range(len(input.shape)))
    dims[dim0], dims[dim1] = dims[dim1], dims[dim0]
    return Call("permute", [input], dims=dims)


@converts("torch.t", "t")
def t(input):
    return Call("permute", [input], dims=list(range(len(input.shape)))[::-1])


def get_attribute(input, name):
    require(name == "T", "name", name, "'T', 'shape', 'dtype' and what is no tensor")
    return t(input)


FUNCTIONS[getattr] = ("builtins.getattr", get_attribute)


@converts("torch.cat", "torch.concat")
def cat(tensors, dim=0):
    require(not isinstance(tensors, Value), "tensors", tensors, "a list of tensors")
    return Call("cat", tensors, dim=dim)


def split_sizes(total, part):
    return [part] * (total // part) + ([total % part] if total % part else [])


@converts("torch.split", "split")
def split(input, split_size_or_sections, dim=0):
    sizes = split_size_or_sections
    if not isinstance(sizes, (list, tuple)):
        sizes = split_sizes(input.shape[dim], sizes)
    return Call("split", [input], sizes=[int(size) for size in sizes], dim=dim)


@converts("torch.chunk", "chunk")
def chunk(input, chunks, dim=0):
    return Call("split", [input], sizes=split_sizes(input.shape[dim], -(-input.shape[dim] // chunks)), dim=dim)


@converts("torch.unbind", "unbind")
def unbind(input, dim=0):
    dim = axis_of(dim, len(input.shape))
    call = Call("split", [input], sizes=[1] * input.shape[dim], dim=dim)
    call.unbound = dim
    return call


@converts("operator.getitem")
def getitem(input, index):
    """An element of a tuple; of a tensor, slices and ints: a slice, then a squeeze, then an unsqueeze."""
    if input.is_tuple:
        require(isinstance(index, int), "index", index, "an int")
        element = Call("getitem", [input], index=int(index))
        return element if input.unbound is None else [element, Call("squeeze", [input], dims=[input.unbound])]
    index = list(index) if isinstance(index, tuple) else [index]
    if any(item is Ellipsis for item in index):
        at = [item is Ellipsis for item in index].index(True)
        taken = sum(item is not None and item is not Ellipsis for item in index)
        index[at:at + 1] = [slice(None)] * (len(input.shape) - taken)
    calls, axis, position = [], 0, 0
    starts, ends, axes, steps, squeezed, unsqueezed = [], [], [], [], [], []
    for item in index:
        if item is None:
            unsqueezed.append(position)
            position += 1
            continue
        require(isinstance(item, (int, slice)) and not isinstance(item, bool), "index", item, "ints, slices, None, ...")
        if isinstance(item, int):
            size = input.shape[axis]
            start, end, step = axis_of(item, size), axis_of(item, size) + 1, 1
            squeezed.append(axis)
        else:
            start, end, step = item.start or 0, INT64_MAX if item.stop is None else item.stop, item.step or 1
            position += 1
        if (start, end, step) != (0, INT64_MAX, 1):
            starts, ends, axes, steps = starts + [start], ends + [end], axes + [axis], steps + [step]
        axis += 1
    if axes:
        calls.append(Call("slice", [input], starts=starts, ends=ends, axes=axes,
                          steps=[] if all(step == 1 for step in steps) else steps))
    if squeezed:
        calls.append(Call("squeeze", [input], dims=squeezed))
    if unsqueezed:
        calls.append(Call("unsqueeze", [input], dims=unsqueezed))
    return calls or Call("identity", [input])


@converts("torch.nn.functional.pad")
def pad(input, pad, mode="constant", value=None):
    modes = {"constant": "constant", "replicate": "edge", "reflect": "reflect", "circular": "wrap"}
    require(mode in modes, "mode", mode, ", ".join(modes))
    rank = len(input.shape)
    pads = [0] * (2 * rank)  # Begins, then ends; PyTorch lists pairs from the last axis on.
    for i in range(len(pad) // 2):
        pads[rank - 1 - i], pads[2 * rank - 1 - i] = int(pad[2 * i]), int(pad[2 * i + 1])
    return Call("pad", [input], pads=pads, mode=modes[mode], value=float(value or 0))


# --- The exporter.

VIEWS = {"identity", "dropout", "flatten", "reshape", "squeeze", "unsqueeze", "permute", "slice", "split", "getitem"}


def sanitized(name):
    return re.sub(r"[^A-Za-z0-9_./]", "_", name) or "_"


class Names:
    """Unique names: the wish, or the wish with _1, _2, ... behind it."""

    def __init__(self, *taken):
        self.taken, self.last_suffix = set(taken), {}

    def unique(self, wish):
        wish = name = sanitized(wish)
        while name in self.taken:
            self.last_suffix[wish] = self.last_suffix.get(wish, 0) + 1
            name = f"{wish}_{self.last_suffix[wish]}"
        self.taken.add(name)
        return name


def has_tensor(result):
    if isinstance(result, dict):
        result = list(result.values())
    return isinstance(result, torch.Tensor) or (isinstance(result, (tuple, list)) and any(map(has_tensor, result)))


def is_tensors(result):
    """What a Value can be."""
    results = result if isinstance(result, (tuple, list)) else [result]
    return all(isinstance(item, torch.Tensor) for item in results)


def computed(value):
    """Marks the ints of a value that the traced program computed."""
    if isinstance(value, int) and not isinstance(value, bool):
        return Computed(value)
    return tuple(computed(item) for item in value) if isinstance(value, (tuple, list)) else value


class Exporter:
    """One walk over a traced graph: runs each node on the example inputs, and writes down what it is."""

    def __init__(self, graph_module, example_inputs, name):
        for i, value in enumerate(example_inputs):
            if not isinstance(value, torch.Tensor):
                raise ExportError(f"example input {i}: {type(value).__name__} is not supported; supported: a tensor")
        self.graph_module, self.name = graph_module, sanitized(name)
        self.interpreter = torch.fx.Interpreter(graph_module)
        self.inputs = len(example_inputs)
        self.interpreter.args_iter = iter([x.clone() for x in example_inputs])
        self.values = {}  # fx.Node -> Value, or a Python value.
        self.lines, self.modules, self.parameters = [], {}, {}
        self.node_names, self.parameter_names, self.module_names = Names("output"), Names(), Names()
        self.name_of_tensor, self.versions = {}, {}
        self.first_names = {}
        for full_name, tensor in (*graph_module.named_parameters(), *graph_module.named_buffers()):
            self.first_names.setdefault(self.identity(tensor), full_name)

    def run(self):
        nodes = list(self.graph_module.graph.nodes)
        placeholders = [node for node in nodes if node.op == "placeholder"]
        least, most = sum(not node.args for node in placeholders), len(placeholders)
        if not least <= self.inputs <= most:
            raise ExportError(f"{self.inputs} example inputs; wanted {least if least == most else f'{least} to {most}'}")
        for node in nodes:
            if node.op == "output":
                self.output(node)
                continue
            self.check_mode(node)
            try:
                with torch.no_grad():
                    result = self.interpreter.run_node(node)
            except Exception as error:
                raise ExportError(f"{self.describe(node)}: on the example inputs: {error}") from error
            self.interpreter.env[node] = result
            if not has_tensor(result):
                self.values[node] = computed(result)
            elif node.op == "placeholder":
                self.values[node] = self.emit(node.target, result, "placeholder")
            elif node.op == "get_attr":
                self.values[node] = self.get_attr(result, node.target)
            else:
                self.values[node] = self.call(node, result)
            for used in self.interpreter.user_to_last_uses.get(node, []):
                del self.interpreter.env[used]
        return self.text()

    def text(self):
        lines = [f"graph @{self.name} {{"]
        for name in sorted(self.parameters):
            tensor = self.parameters[name]
            lines.append(f"  param @{name}: {type_text(tensor.dtype, tensor.shape)} = {parameter_text(tensor)}")
        lines += [f"  module @{path} = {self.modules[path]}" for path in sorted(self.modules)]
        return "\n".join(lines + ["  " + line for line in self.lines] + ["}", ""])

    # --- Errors.

    def target_text(self, node):
        if node.op == "call_module":
            module = self.graph_module.get_submodule(node.target)
            return f"'{node.target}' ({torch.typename(module)})"
        return node.target if isinstance(node.target, str) else self.spelling(node)[0]

    def describe(self, node):
        return f"%{node.name}: {node.op} {self.target_text(node)}"

    def check_mode(self, node):
        """Before the node runs: in training mode it would change the model."""
        training = node.kwargs.get("training") is True
        if node.op == "call_module":
            module = self.graph_module.get_submodule(node.target)
            training = module.training and isinstance(module, (nn.modules.batchnorm._BatchNorm, nn.Dropout))
        if training:
            raise ExportError(f"{self.describe(node)}: argument training=True is not supported; supported: False "
                              "(model.eval(), and training=self.training in calls)")

    # --- Parameters.

    def identity(self, tensor):
        """Equal for two names of one tensor."""
        return (tensor.data_ptr() if tensor.numel() else id(tensor), tensor.dtype, tuple(tensor.shape), tensor.stride())

    def parameter(self, tensor, full_name):
        """The name of the tensor's one parameter."""
        key = self.identity(tensor)
        if key not in self.name_of_tensor:
            name = self.parameter_names.unique(self.first_names.get(key, full_name))
            if tensor.dtype not in DTYPES:
                raise ExportError(f"parameter {full_name}: element type {tensor.dtype} is not supported; supported: "
                                  + ", ".join(str(dtype) for dtype in DTYPES))
            self.name_of_tensor[key] = name
            self.parameters[name] = tensor.detach()
        return self.name_of_tensor[key]

    def get_attr(self, tensor, full_name):
        name = self.parameter(tensor, full_name)
        return self.emit(name, tensor, f"get_attr @{name}", parameter=name)

    # --- Nodes.

    def emit(self, wish, result, text, parameter=None, alias_of=None):
        """Adds a node's line. `alias_of`: the Value whose memory the result shares."""
        name = self.node_names.unique(wish)
        for tensor in [result] if isinstance(result, torch.Tensor) else result:
            if tensor.dtype not in DTYPES:
                raise ExportError(f"%{name}: element type {tensor.dtype} is not supported; supported: "
                                  + ", ".join(str(dtype) for dtype in DTYPES))
        storage = alias_of.storage if alias_of else f"@{parameter}" if parameter else name
        value = Value(name, result, parameter, storage, self.versions.get(storage, 0))
        self.lines.append(f"%{name}: {value.type_text()} = {text}")
        return value

    def spelling(self, node):
        """What the IR may call the target, and its conversion; (text, None) where there is none."""
        if node.op == "call_module":
            return node.target, MODULES.get(type(self.graph_module.get_submodule(node.target)))
        if node.op == "call_method":
            if node.target in METHODS:
                return METHODS[node.target]
            return node.target, (by_schema(getattr(torch, node.target, None)) or (None, None))[1]
        name = getattr(node.target, "__name__", str(node.target))
        place = (getattr(node.target, "__module__", None) or "torch").replace("_operator", "operator")
        return FUNCTIONS.get(node.target) or by_schema(node.target) or (f"{place}.{name}", None)

    def check_read(self, node, value):
        if self.versions.get(value.storage, 0) != value.version:
            raise ExportError(f"{self.describe(node)}: reads %{value.name} after it was overwritten in place; "
                              "supported: in-place calls whose target nobody reads afterwards")

    def call(self, node, result):
        spelling, conversion = self.spelling(node)
        if conversion is None:
            table = {"call_module": MODULES, "call_method": METHODS, "call_function": FUNCTIONS}[node.op]
            names = [f"{key.__module__}.{key.__name__}" for key in MODULES] if table is MODULES else [
                entry[0] for entry in table.values()]
            if table is FUNCTIONS:
                names += [alias for alias, _ in aliases().values()]
            raise ExportError(f"{self.describe(node)} is not supported; supported: {', '.join(sorted(set(names)))}")
        arguments = torch.fx.node.map_arg((node.args, node.kwargs), lambda n: self.values[n])
        module = [self.graph_module.get_submodule(node.target)] if node.op == "call_module" else []
        try:
            bound = inspect.signature(conversion).bind(*module, *arguments[0], **arguments[1])
        except TypeError as error:
            raise ExportError(f"{self.describe(node)}: {error}; supported: {inspect.signature(conversion)}") from None
        for used in node.all_input_nodes:
            if isinstance(self.values[used], Value):
                self.check_read(node, self.values[used])
        try:
            calls = conversion(*bound.args, **bound.kwargs)
        except Unsupported as error:
            raise ExportError(f"{self.describe(node)}: {error}") from None
        calls = calls if isinstance(calls, list) else [calls]
        in_place = (spelling.endswith("_") or spelling.startswith("operator.i") or
                    bound.arguments.get("inplace") is True or (module and getattr(module[0], "inplace", False)))
        target = calls[0].operands[0] if calls[0].operands else None
        if in_place:
            if target.storage.startswith("@"):
                raise ExportError(f"{self.describe(node)}: overwrites the parameter {target.storage}; supported: "
                                  "in-place calls on computed values")
            self.versions[target.storage] = self.versions.get(target.storage, 0) + 1
        if not is_tensors(result):
            raise ExportError(f"{self.describe(node)}: a result of {type(result).__name__} is not supported; supported: "
                              "a tensor, or a tuple or list of tensors")
        value = None
        for i, call in enumerate(calls):
            if value is not None:
                call.operands[0] = value
            last = i + 1 == len(calls)
            here = result if last else self.run_between(call)
            if call.unbound is not None:
                here = tuple(element.unsqueeze(call.unbound) for element in here)
            shares = in_place or (call.op in VIEWS and spelling not in ("clone", "torch.clone"))
            value = self.emit_call(node, spelling, call, here, call.operands[0] if shares else None)
            value.unbound = call.unbound
        return value

    def run_between(self, call):
        """The result of a call that is not the last of its node: only its type matters."""
        if call.op == "getitem":
            dtype, shape = call.operands[0].elements[call.attributes["index"]]
            return torch.empty(shape, dtype=dtype, device="meta")
        source = torch.empty(call.operands[0].shape, dtype=call.operands[0].dtype, device="meta")
        if call.op == "slice":
            steps = call.attributes["steps"] or [1] * len(call.attributes["axes"])
            for axis, start, end, step in zip(call.attributes["axes"], call.attributes["starts"],
                                              call.attributes["ends"], steps):
                source = source[(slice(None),) * axis + (slice(start, end, step),)]
            return source
        for dim in sorted(call.attributes["dims"], reverse=True):
            source = source.squeeze(dim)
        return source

    def emit_call(self, node, spelling, call, result, alias_of):
        op = our_ops()[call.op]
        arguments = [f"{key}={attribute_text(value)}" for key, value in sorted(call.attributes.items())
                     if attribute_text(value) != op.defaults.get(key)]
        owner = self.owner(node, call)
        operands = [self.operand(node, operand, call, owner or call.op, op.operand(i))
                    for i, operand in enumerate(call.operands)]
        while operands and operands[-1] is None:
            operands.pop()
        texts = ["none" if operand is None else f"%{operand.name}" for operand in operands]
        if node.op == "call_module":
            path = self.module(node.target, call, arguments)
            return self.emit(owner or call.op, result, f"call_module @{path}({', '.join(texts)})", alias_of=alias_of)
        functional = spelling[:-1] if spelling.endswith("_") else spelling.replace("operator.i", "operator.")
        target = functional if functional in op.aliases else call.op
        text = f"{node.op} {target}({', '.join(texts + arguments)})"
        return self.emit(owner or call.op, result, text, alias_of=alias_of)

    def owner(self, node, call):
        """The module that the call's weight belongs to, as a name: "layer1.0.conv1"."""
        if any(tensor is not None for tensor in call.parameters.values()):
            return node.target
        op = our_ops()[call.op]
        for name, operand in zip(op.operands, call.operands):
            if (name in op.parameters and isinstance(operand, Value) and operand.parameter
                    and "." in operand.parameter):
                return operand.parameter.rpartition(".")[0]
        return None

    def operand(self, node, operand, call, wish, name):
        """The operand as a Value: a number becomes a parameter of the other operands' element type."""
        if isinstance(operand, torch.Tensor):
            return self.get_attr(operand, f"{wish}.{name}")
        if operand is None or name in call.other_types:
            return operand
        op = our_ops()[call.op]
        dtype = next(o.dtype for i, o in enumerate(call.operands)
                     if isinstance(o, (Value, torch.Tensor)) and op.operand(i) not in call.other_types)
        if isinstance(operand, Value):
            if not operand.is_tuple and operand.dtype != dtype:
                raise ExportError(f"{self.describe(node)}: operands of element types {DTYPES[dtype]} and "
                                  f"{DTYPES[operand.dtype]} are not supported; supported: one type")
            return operand
        if not isinstance(operand, (int, float)):
            raise ExportError(f"{self.describe(node)}: argument {name}={operand!r} is not supported; supported: a "
                              "tensor or a number")
        if isinstance(operand, float) and not dtype.is_floating_point:
            raise ExportError(f"{self.describe(node)}: argument {name}={operand!r} with an integer tensor is not "
                              "supported; supported: a float tensor")
        return self.get_attr(torch.tensor(operand, dtype=dtype), f"{wish}.{name}")

    def module(self, full_name, call, arguments):
        parameters = {name: self.parameter(tensor, f"{full_name}.{name}")
                      for name, tensor in call.parameters.items() if tensor is not None}
        arguments = arguments + [f"{name}=@{parameters[name]}" for name in sorted(parameters)]
        text = f"{call.op}({', '.join(arguments)})"
        path = sanitized(full_name)
        if self.modules.get(path) != text:  # Another module of this sanitized name, or one that adapts to its input.
            path = self.module_names.unique(path)
            self.modules[path] = text
        return path

    def output(self, node):
        results = node.args[0]
        results = results if isinstance(results, (tuple, list)) else [results]
        values = [self.values.get(result) if isinstance(result, torch.fx.Node) else None for result in results]
        for result, value in zip(results, values):
            if not isinstance(value, Value) or value.unbound is not None:
                raise ExportError(f"%output: result {result!r} is not supported; supported: a tensor, or a tuple or "
                                  "list of tensors")
            self.check_read(node, value)
        self.lines.append(f"output({', '.join('%' + value.name for value in values)})")


def unpacked(proxy):
    """torch.fx.Proxy.__iter__: `a, b = x.chunk(2)` while tracing. PyTorch 1.13's takes all instructions of the caller for
    two bytes long, which those of Python 3.11 are not."""
    frame = sys._getframe(1)
    instruction = next(i for i in dis.get_instructions(frame.f_code) if i.offset == frame.f_lasti)
    if instruction.opname == "UNPACK_SEQUENCE":
        return (proxy[i] for i in range(instruction.argval))
    return proxy.tracer.iter(proxy)


def export(model, example_inputs, stem, name=None):
    """Writes <stem>.ir and <stem>.safetensors. `model` is a Module in eval mode, or a traced GraphModule; `name` is the
    graph's, by default the last part of `stem`."""
    stem = pathlib.Path(stem)
    if isinstance(model, torch.fx.GraphModule):
        graph_module = model
    else:
        try:
            with unittest.mock.patch.object(torch.fx.Proxy, "__iter__", unpacked):
                graph_module = torch.fx.symbolic_trace(model)
        except Exception as error:
            raise ExportError(f"{type(model).__name__}: torch.fx cannot trace it: {error}") from error
    exporter = Exporter(graph_module, example_inputs, name or stem.name)
    text = exporter.run()
    data = {key: tensor for key, tensor in exporter.parameters.items() if tensor.numel() > MOST_INLINE_VALUES}
    write_safetensors(f"{stem}.safetensors", data)
    pathlib.Path(f"{stem}.ir").write_text(text, encoding="ascii")


def main():
    parser = argparse.ArgumentParser(description="Exports a PyTorch model to <stem>.ir and <stem>.safetensors.")
    parser.add_argument("build", help="FILE.py:FUNCTION, which returns the model and a tuple of example inputs")
    parser.add_argument("stem", help="the path of the files to write, without extension")
    arguments = parser.parse_args()
    path, _, function = arguments.build.rpartition(":")
    if not pathlib.Path(path).is_file():
        parser.error(f"{arguments.build}: wanted FILE.py:FUNCTION, found no file '{path}'")
    spec = importlib.util.spec_from_file_location(pathlib.Path(path).stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if not hasattr(module, function):
        parser.error(f"{arguments.build}: {path} has no '{function}'")
    try:
        export(*getattr(module, function)(), arguments.stem)
    except ExportError as error:
        sys.exit(f"export_fx: {error}")


if __name__ == "__main__":
    main()
