"""Functions of each element, softmax, casts."""

import math

import torch
from torch import nn

from fuselage_fx.calls import Call, Value, both, converts, require
from fuselage_fx.text import DTYPES, DType


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


@converts("torch.where")
def where(condition, input, other):
    require(any(isinstance(operand, Value) for operand in (input, other)), "input", input, "a tensor, here or as other")
    call = Call("where", [condition, input, other])
    call.other_types = ("condition",)
    return call


converts("where")(lambda input, condition, other: where(condition, input, other))
converts("masked_fill", "torch.masked_fill")(lambda input, mask, value: where(mask, value, input))
