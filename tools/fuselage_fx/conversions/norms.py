"""Norms and reductions."""

import torch
from torch import nn

from fuselage_fx.calls import Call, converts, require
from fuselage_fx.text import type_text


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
