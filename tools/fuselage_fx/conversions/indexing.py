"""Elements by index, and resampling."""

import math

from torch import nn

from fuselage_fx.calls import Call, Value, converts, ints, require


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
