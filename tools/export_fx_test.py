"""Tests of export_fx.py, and that the checked-in examples are what it writes. Needs torch; without it, it is skipped."""

import importlib.util
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import unittest

if importlib.util.find_spec("torch") is None:
    print("SKIPPED: /usr/bin/python3 has no torch (Debian: apt-get install python3-torch)")
    sys.exit(0)

import torch
import torch.nn.functional as F
from torch import nn

ROOT = pathlib.Path(__file__).absolute().parents[1]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "frontend/fx/examples")]
import examples  # noqa: E402
import export_fx  # noqa: E402
from fuselage_fx.text import DTYPES, attribute_text, shortest  # noqa: E402


class Model(nn.Module):
    """A forward, and modules by keyword."""

    def __init__(self, forward, **modules):
        super().__init__()
        self.function = forward
        for name, module in modules.items():
            setattr(self, name, module)

    def forward(self, x):
        return self.function(self, x)


class ExportTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def export(self, forward, inputs=None, **modules):
        """The text."""
        model = forward if isinstance(forward, nn.Module) else Model(forward, **modules).eval()
        export_fx.export(model, inputs or (torch.ones(2, 4),), self.folder / "model")
        return (self.folder / "model.ir").read_text()

    def error(self, *arguments, **modules):
        with self.assertRaises(export_fx.ExportError) as raised:
            self.export(*arguments, **modules)
        return str(raised.exception)

    # --- The checked-in examples.

    def test_examples_are_what_it_writes(self):
        for name in examples.EXAMPLES:
            expected = examples.write(name, self.folder)
            for suffix in ("ir", "safetensors"):
                written = (self.folder / f"{name}.{suffix}").read_bytes()
                stored = (ROOT / "frontend/fx/examples" / f"{name}.{suffix}").read_bytes()
                self.assertEqual(written, stored, f"{name}.{suffix}: run frontend/fx/examples/examples.py")
            stored = read_safetensors(ROOT / "frontend/fx/examples" / f"{name}.expected.safetensors")
            self.assertEqual(stored.keys(), expected.keys())
            for key, tensor in expected.items():  # Sums of floats: their last bits depend on the CPU.
                self.assertEqual(stored[key].dtype, tensor.dtype)
                want = tensor.double()
                torch.testing.assert_close(stored[key].double(), want, rtol=1e-5, atol=1e-5 * float(want.abs().max()))

    # --- Rules.

    def test_tied_weights_are_one_parameter(self):
        a, b = nn.Linear(4, 4), nn.Linear(4, 4)
        b.weight = a.weight
        text = self.export(lambda m, x: F.linear(m.b(m.a(x)), m.b.weight), a=a, b=b)
        self.assertEqual(len(re.findall("param .*weight", text)), 1)
        self.assertEqual(text.count("weight=@a.weight"), 2)
        self.assertIn("get_attr @a.weight", text)

    def test_shared_modules_are_one_module(self):
        text = self.export(lambda m, x: m.fc(m.fc(x)), fc=nn.Linear(4, 4))
        self.assertEqual(text.count("module @fc ="), 1)
        self.assertIn("%fc_1: f32[2,4] = call_module @fc(%fc)", text)

    def test_weights_at_depth_and_keywords(self):
        inner = nn.Sequential(nn.Sequential(nn.Conv2d(4, 6, 2, groups=2, bias=False)))
        text = self.export(
            lambda m, x: F.conv2d(groups=2, weight=m.inner[0][0].weight, dilation=(2, 1), input=x, padding="same"),
            (torch.ones(1, 4, 6, 6),), inner=inner)
        self.assertIn("%inner.0.0: f32[1,6,6,6] = call_function torch.conv2d(%x, %inner.0.0.weight, dilation=[2, 1], "
                      "groups=2, padding=[1, 0, 1, 1])", text)

    def test_computed_sizes(self):
        self.assertIn("shape=[0, -1, 2]", self.export(lambda m, x: x.view(x.shape[0], x.size(1) // 2, 2)))
        self.assertIn("shape=[4, 2]", self.export(lambda m, x: x.reshape(x.size(0) * 2, x.size(1) // 2)))
        self.assertIn("shape=[1, 8]", self.export(lambda m, x: x.view(1, 8)))
        self.assertIn("shape=[-1, 0]", self.export(lambda m, x: x.view(-1, x.size(1))))

    def test_tuples_are_unpacked(self):
        for forward in (lambda m, x: torch.chunk(x, 2), lambda m, x: x.chunk(2, dim=1), lambda m, x: x.split([3, 1], 1),
                        lambda m, x: torch.split(x, 1)):

            def both(m, x, forward=forward):
                a, b = forward(m, x)
                return a.relu(), b

            text = self.export(both)
            self.assertEqual(text.count("= call_function operator.getitem(%split, index="), 2, text)
            self.assertIn("output(%relu, %getitem_1)", text)

            self.assertIn("output(%getitem, %getitem_1, %relu)", self.export(lambda m, x: (forward(m, x), x.relu())))

        def sizes(m, x):
            rows, columns = x.shape
            return x.view(columns, rows)

        self.assertIn("%reshape: f32[4,2]", self.export(sizes))

        def rest(m, x):
            first, *others = torch.split(x, 1)
            return first

        self.assertIn("cannot be iterated", self.error(rest))

    def test_unbind_is_a_split(self):

        def forward(m, x):
            a, b = torch.unbind(x)
            return a + b, x.unbind(-1)[2]

        text = self.export(forward)
        self.assertIn("%split: (f32[1,4], f32[1,4]) = call_function split(%x, sizes=[1, 1])", text)
        self.assertIn("%squeeze: f32[4] = call_function squeeze(%getitem, dims=[0])", text)
        self.assertIn("split(%x, dim=1, sizes=[1, 1, 1, 1])", text)
        self.assertIn("result", self.error(lambda m, x: torch.unbind(x)))

    @unittest.skipUnless(hasattr(F, "scaled_dot_product_attention"), "this PyTorch has no scaled_dot_product_attention")
    def test_attention(self):
        attend = lambda m, x: F.scaled_dot_product_attention(x, x, x, torch.ones(3, 3).tril().bool()) + \
            F.scaled_dot_product_attention(x, x, x, is_causal=True, scale=0.25)
        text = self.export(attend, (torch.ones(1, 2, 3, 4),))
        self.assertIn("call_function torch.nn.functional.scaled_dot_product_attention(%x, %x, %x, %", text)
        self.assertIn("scale=0.5)", text)
        self.assertIn("(%x, %x, %x, is_causal=true, scale=0.25)", text)
        self.assertIn("dropout_p=0.1", self.error(lambda m, x: F.scaled_dot_product_attention(x, x, x, dropout_p=0.1)))

    def test_a_traced_graph_module(self):
        traced = torch.fx.symbolic_trace(Model(lambda m, x: torch.relu(x)))
        self.assertIn("%relu: f32[2,4] = call_function torch.relu(%x)", self.export(traced))

    def test_in_place_forms_that_nobody_sees(self):
        text = self.export(lambda m, x: F.relu(m.act(x.view(8).tanh()), inplace=True).sigmoid_(),
                           act=nn.SiLU(inplace=True))
        self.assertIn("call_function torch.nn.functional.relu(%silu)", text)
        self.assertIn("call_method sigmoid(%relu)", text)

    def test_a_copy_keeps_what_is_overwritten(self):
        text = self.export(lambda m, x: (x.t().reshape(8), x.clone(), x.relu_())[0])
        self.assertIn("output(%reshape)", text)

    def test_numbers(self):
        for value, text in ((0.0, "0"), (-0.0, "-0"), (0.1, "0.1"), (1e6, "1e+06"), (1 / 3, "0.3333333333333333")):
            self.assertEqual(shortest(value), text)
        self.assertEqual(shortest(struct.unpack("f", struct.pack("f", 0.1))[0], is_double=False), "0.1")
        self.assertEqual([attribute_text(v) for v in (1, 1.0, True, "a", [1, 2], [0.5], float("inf"), 1e-5)],
                         ["1", "1.0", "true", '"a"', "[1, 2]", "[0.5]", "inf", "1e-05"])

    def test_command_line(self):
        (self.folder / "net.py").write_text(
            "import torch\ndef build():\n    return torch.nn.Linear(3, 2).eval(), (torch.ones(1, 3),)\n"
            "def broken():\n    return torch.nn.LSTM(3, 2).eval(), (torch.ones(1, 3),)\n"
            "def alone():\n    return torch.nn.Linear(3, 2).eval()\n")

        def run(function, stem="net"):
            return subprocess.run([sys.executable, str(ROOT / "tools/export_fx.py"),
                                   f"{self.folder}/net.py:{function}", f"{self.folder}/{stem}"],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)

        self.assertEqual(run("build").returncode, 0)
        self.assertIn("graph @net {", (self.folder / "net.ir").read_text())
        self.assertIn("net.py has no 'missing'", run("missing").stderr)
        self.assertIn("wanted the model and a tuple of example inputs, found Linear", run("alone").stderr)
        for failed in [run("broken"), run("build", "missing/net")]:
            self.assertEqual(failed.returncode, 1)
            self.assertRegex(failed.stderr, "^export_fx: ")

    # --- Errors.

    def test_unknown_targets(self):
        self.assertRegex(
            self.error(lambda m, x: m.rnn(x)[0], rnn=nn.LSTM(4, 4)),
            r"^%rnn: call_module 'rnn' \(torch\.nn\.modules\.rnn\.LSTM\) is not supported; supported: .*Conv2d, .*Linear")
        self.assertRegex(self.error(lambda m, x: torch.sort(x)[0]),
                         r"^%sort: call_function torch\.sort is not supported; supported: .*torch\.conv2d.*torch\.cumsum")
        self.assertRegex(self.error(lambda m, x: x.sort()[0]),
                         r"^%sort: call_method sort is not supported; supported: .*view")

    def test_unknown_arguments(self):
        planes = (torch.ones(1, 2, 4, 4),)
        index = nn.Parameter(torch.zeros(1, 2, 4, 4, dtype=torch.int64), requires_grad=False)
        for forward, modules, message in (
            (lambda m, x: m.conv(x), {"conv": nn.Conv2d(2, 2, 3, padding=1, padding_mode="reflect")},
             "%conv: call_module 'conv' (torch.nn.modules.conv.Conv2d): argument padding_mode='reflect' is not supported; "
             "supported: 'zeros'"),
            (lambda m, x: m.pool(x)[0], {"pool": nn.MaxPool2d(2, return_indices=True)},
             "argument return_indices=True is not supported; supported: False"),
            (lambda m, x: F.avg_pool2d(x, 2, divisor_override=3), {},
             "%avg_pool2d: call_function torch.nn.functional.avg_pool2d: argument divisor_override=3 is not supported"),
            (lambda m, x: torch.sub(x, x, alpha=2), {}, "argument alpha=2 is not supported; supported: 1"),
            (lambda m, x: x.softmax(1, dtype=torch.float64), {}, "argument dtype=torch.float64"),
            (lambda m, x: torch.clamp(x, min=x), {}, "argument min=%x is not supported; supported: a number"),
            (lambda m, x: x[x > 0], {}, "argument index=%gt is not supported; supported: ints, slices"),
            (lambda m, x: F.log_softmax(x), {}, "argument dim=None is not supported; supported: one int"),
            (lambda m, x: F.softplus(x, 2), {}, "too many positional arguments; supported: (input)"),
            (lambda m, x: x.scatter(1, m.index, 2.0), {"index": index}, "argument src=2.0 is not supported; supported: a tensor"),
            (lambda m, x: torch.where(x > 0, 1.0, 0.0), {}, "argument input=1.0 is not supported; supported: a tensor, here"),
            (lambda m, x: F.interpolate(x, 2, mode="area"), {}, "argument mode='area' is not supported; supported: nearest"),
            (lambda m, x: torch.sum(x > 0), {}, "argument input='bool[1,2,4,4]' is not supported; supported: floats or i64"),
            (lambda m, x: x.argmax(), {}, "missing a required argument: 'dim'"),
            (lambda m, x: F.instance_norm(x, momentum=0.5), {}, "argument momentum=0.5 is not supported; supported: 0.1"),
            (lambda m, x: m.conv(x[0]), {"conv": nn.Conv2d(2, 2, 3)}, "supported: a batch, of rank 4"),
            (lambda m, x: x.mean((2, 3), dtype=torch.float64), {}, "argument dtype"),
            (lambda m, x: torch.add(x, x, out=x), {}, "unexpected keyword argument 'out'; supported: (input, other"),
        ):
            self.assertIn(message, self.error(forward, planes, **modules))

    def test_the_errors_that_the_guide_shows(self):
        guide = (ROOT / "docs/exporting_from_pytorch.md").read_text()
        shown = re.findall("^export_fx: (.*?)(?:, [.]{3})?$", guide, re.M)
        conv = nn.Conv2d(2, 2, 3, padding=1, padding_mode="reflect")
        errors = [self.error(lambda m, x: m.conv(x), (torch.ones(1, 2, 4, 4),), conv=conv),
                  self.error(lambda m, x: torch.sort(x)[0]),
                  self.error(lambda m, x: F.dropout(x)),
                  self.error(lambda m, x: torch.tanh(x.relu_()) + x)]
        self.assertEqual(len(shown), len(errors))
        for line, error in zip(shown, errors):
            self.assertTrue(error.startswith(line), error)

    def test_training_mode(self):
        bn = nn.BatchNorm1d(4)
        message = self.error(Model(lambda m, x: m.bn(x), bn=bn).train())
        self.assertIn("%bn: call_module 'bn' (torch.nn.modules.batchnorm.BatchNorm1d): argument training=True", message)
        self.assertEqual(int(bn.num_batches_tracked), 0, "the model is left as it was")
        self.assertIn("training=self.training", self.error(lambda m, x: F.dropout(x)))

    def test_overwritten_values_that_are_read_later(self):
        message = "was overwritten in place; supported: in-place calls whose target nobody reads afterwards"
        for forward, reader, read in (
            (lambda m, x: torch.tanh(x.relu_()) + x, "%add", "%x"),
            (lambda m, x: (x.view(8), x.relu_())[0].tanh(), "%tanh", "%reshape"),
            (lambda m, x: (x.chunk(2)[0], x.relu_())[0].tanh(), "%tanh", "%getitem"),
            (lambda m, x: (x, F.relu(x, inplace=True)), "%output", "%x")):
            self.assertRegex(self.error(forward), f"^{reader}: .*: reads {read} after it {message}$")
        self.assertRegex(self.error(lambda m, x: x + m.identity(m.p).relu_(), p=nn.Parameter(torch.ones(4)),
                                    identity=nn.Identity()), "^%relu_: call_method relu_: overwrites the parameter @p")

    def test_inputs_and_results(self):
        relu = Model(lambda m, x: torch.relu(x))
        self.assertEqual(self.error(relu, (torch.ones(1), torch.ones(1))), "2 example inputs; wanted 1")
        self.assertEqual(self.error(relu, (3,)), "example input 0: int is not supported; supported: a tensor")
        with self.assertRaisesRegex(export_fx.ExportError, "^0 example inputs; wanted 1$"):
            export_fx.export(relu, (), self.folder / "model")
        self.assertIn("%fc: call_module 'fc' (torch.nn.modules.linear.Linear): on the example inputs: mat1 and mat2",
                      self.error(lambda m, x: m.fc(x), fc=nn.Linear(3, 3)))
        self.assertIn("%output: result", self.error(lambda m, x: {"a": x}))
        self.assertIn("torch.fx cannot trace it", self.error(lambda m, x: x if x.sum() > 0 else -x))
        self.assertIn("element type torch.bfloat16 is not supported",
                      self.error(lambda m, x: torch.relu(x), (torch.ones(2, dtype=torch.bfloat16),)))
        self.assertIn("operands of element types f32 and i64 are not supported; supported: one type",
                      self.error(lambda m, x: x + m.index, index=nn.Parameter(torch.arange(4), requires_grad=False)))


def read_safetensors(path):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    dtypes = {text.upper(): dtype for dtype, text in DTYPES.items()}
    entries = re.findall(rb'"([^"]+)":\{"dtype":"(\w+)","shape":\[([\d,]*)\],"data_offsets":\[(\d+),(\d+)\]',
                         data[8:8 + size])
    tensors = {}
    for name, dtype, shape, begin, end in entries:
        values = torch.frombuffer(bytearray(data[8 + size + int(begin):8 + size + int(end)]),
                                  dtype=dtypes[dtype.decode()])
        tensors[name.decode()] = values.reshape([int(dim) for dim in shape.split(b",") if dim])
    return tensors


if __name__ == "__main__":
    unittest.main()
