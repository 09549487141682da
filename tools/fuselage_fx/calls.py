"""Calls of our ops, and the tables by which PyTorch's functions, methods and modules become them."""

import functools
import inspect
import json
import operator
import pathlib

import torch

from fuselage_fx.text import type_text


class ExportError(Exception):
    """Names the node, its target, what was found and what is supported."""


class Unsupported(Exception):
    """What a conversion finds in its arguments; the exporter adds the node."""

    def __init__(self, argument, value, supported):
        super().__init__(f"argument {argument}={value!r} is not supported; supported: {supported}")


def require(condition, argument, value, supported):
    if not condition:
        raise Unsupported(argument, value, supported)


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
    """By name. What //tools:ops_json says: beside this file in the wheel and where Bazel runs it, or where Bazel
    builds it."""
    here = pathlib.Path(__file__).absolute().parent
    for path in (here / "ops.json", here.parents[1] / "bazel-bin/tools/fuselage_fx/ops.json"):
        if path.exists():
            return {name: Op(**schema) for name, schema in json.loads(path.read_text()).items()}
    raise ExportError(f"{path} is missing: bazel build //tools:ops_json writes it")


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
