"""What moves elements: shapes, axes, parts."""

import torch
from torch import nn

from fuselage_fx.calls import FUNCTIONS, Call, Computed, Value, axis_of, converts, require
from fuselage_fx.text import INT64_MAX


@converts("expand")
def expand(input, *sizes):
    sizes = list(sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (list, tuple)) else sizes)
    for i, own in enumerate(reversed(input.shape), 1):
        if sizes[-i] == own:
            sizes[-i] = -1  # Whatever it is: the batch can change.
    return Call("expand", [input], shape=[int(size) for size in sizes])


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
