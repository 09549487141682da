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
The files of fuselage_fx/conversions say how functions, methods and modules become calls; a new one is found. What has no
expression is an ExportError, which names the node, its target and the argument, and says what is supported.
"""

import argparse
import dis
import importlib
import importlib.util
import inspect
import pathlib
import pkgutil
import re
import sys
import unittest.mock

import torch
import torch.fx
from torch import nn

import fuselage_fx.conversions
from fuselage_fx.calls import (FUNCTIONS, METHODS, MODULES, Computed, ExportError, Unsupported, Value, aliases,
                               by_schema, our_ops)
from fuselage_fx.text import DTYPES, MOST_INLINE_VALUES, attribute_text, parameter_text, type_text, write_safetensors

for module in pkgutil.iter_modules(fuselage_fx.conversions.__path__):
    importlib.import_module(f"fuselage_fx.conversions.{module.name}")


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


def memory(result):
    """Where the elements of what a Value can be are stored."""
    tensors = [result] if isinstance(result, torch.Tensor) else result
    return {tensor.storage().data_ptr() for tensor in tensors if tensor.numel()}


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
        sources = [self.interpreter.env[used] for used in node.all_input_nodes if self.values[used] is target]
        shares = any(memory(result) & memory(source) for source in sources)
        value = None
        for i, call in enumerate(calls):
            if value is not None:
                call.operands[0] = value
            last = i + 1 == len(calls)
            here = result if last else self.run_between(call)
            if call.unbound is not None:
                here = tuple(element.unsqueeze(call.unbound) for element in here)
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
        tensors = [tensor for value in values for tensor in (self.elements(value) if value.is_tuple else [value])]
        self.lines.append(f"output({', '.join('%' + tensor.name for tensor in tensors)})")

    def elements(self, value):
        """The tensors of a tuple, for a network gives back nothing else."""
        for i, (dtype, shape) in enumerate(value.elements):
            yield self.emit("getitem", torch.empty(shape, dtype=dtype, device="meta"),
                            f"call_function operator.getitem(%{value.name}, index={i})", alias_of=value)


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
    built = getattr(module, function)()
    if not isinstance(built, tuple) or len(built) != 2:
        parser.error(f"{arguments.build}: wanted the model and a tuple of example inputs, found {type(built).__name__}")
    try:
        export(*built, arguments.stem)
    except (ExportError, OSError) as error:
        sys.exit(f"export_fx: {error}")


if __name__ == "__main__":
    main()
