"""Exports networks from PyTorch, runs each through the harness, and writes what came out as a table.

    bazel run //tools/zoo -- [--only=GLOB] [--small] [--out=FOLDER] [--table=docs/models.md]
    bazel run //tools/zoo -- --sample=70 [--seed=1] [--out=FOLDER] [--table=docs/models.md]

For each network of networks.py whose package can be imported: seeded weights, batch norms with statistics that are not
trivial, seeded inputs; PyTorch's outputs for them; the ONNX file of torch.onnx.export. The harness loads it, runs FP32 and
INT8 (calibrated on these inputs and more), and checks every pass with the interpreter where inputs are small. A sample of
timm's other networks runs in FP32 alone. What a run that was broken off left in FOLDER is kept where it is newer than what
it was made from.
"""

import argparse
import fnmatch
import functools
import importlib
import json
import math
import os
import pathlib
import signal
import subprocess
import sys
import time
import warnings

import numpy
import torch
from torch._subclasses import FakeTensorMode

import networks

SAMPLES, CALIBRATION = 2, 6
FIRST_OPSET, LAST_OPSET = 13, 16
MOST_DIFFERENCE = 1e-4  # From PyTorch, of the largest output.
MOST_PARAMETERS = 30_000_000  # Of networks that are drawn.
MOST_CHECKED = 3 * 128 * 128  # Elements of an input with which every pass is checked.
PIPELINE = ("Normalize", "ConvBn", "Fusion", "Volumes", "Quantize", "QuantLift", "Lower", "Int8Fusion", "Cleanup")
EXPORTED, MEASURED = "export.json", "row.json"  # What is kept in a network's folder.
NOT_EXPORTED = "PyTorch does not export it:"
PLACE = "<!-- written by tools/zoo: the {0} -->\n", "<!-- the {0} ends -->\n"


# What PyTorch 1.13's exporter lacks and later ones have: x.zero_(), in Swin V2.
torch.onnx.register_custom_op_symbolic(
    "aten::zero", lambda g, x: g.op("Mul", x, g.op("Constant", value_t=torch.tensor(0.0))), FIRST_OPSET)


class TookTooLong(BaseException):
    """No Exception: what tries another way after one would catch it."""


def size(module):
    return sum(parameter.numel() for parameter in module.parameters())


def size_without_memory(network):
    """Of the module; 0 where its constructor looks at values."""
    try:
        with FakeTensorMode():
            return size(network.build())
    except Exception:
        return 0


def seeded(network):
    torch.manual_seed(1)
    module = network.build()
    for layer in module.modules():
        if not isinstance(layer, torch.nn.modules.batchnorm._BatchNorm):
            continue
        if layer.running_mean is not None:
            torch.nn.init.normal_(layer.running_mean, 0, 0.1)
            torch.nn.init.uniform_(layer.running_var, 0.5, 1.5)
        if layer.affine:
            torch.nn.init.uniform_(layer.weight, 0.5, 1.5)
            torch.nn.init.normal_(layer.bias, 0, 0.1)
    for parameter in module.parameters():
        if parameter.dim() > 1 and not parameter.any():  # A fresh ViT's head answers nothing.
            torch.nn.init.normal_(parameter, 0, 0.1)
    return module.eval()


def inputs_of(network, seed):
    generator = torch.Generator().manual_seed(seed)
    if network.vocabulary:
        return [torch.randint(network.vocabulary, shape, generator=generator) for shape in network.shapes]
    return [torch.randn(shape, generator=generator) for shape in network.shapes]


def samples_of(network):
    return SAMPLES + (0 if network.only_fp32 else CALIBRATION)


def tensors(outputs):
    return [outputs] if isinstance(outputs, torch.Tensor) else list(outputs)


def export(network, folder):
    """Writes model.onnx, inputs.npz and outputs.npz; returns the number of parameters. None: too many for a drawn one."""
    if network.only_fp32 and size_without_memory(network) > MOST_PARAMETERS:
        return None
    module = seeded(network)
    parameters = size(module)
    if network.only_fp32 and parameters > MOST_PARAMETERS:
        return None
    network.shapes = network.shapes or networks.shapes_of(module)
    samples = [inputs_of(network, seed) for seed in range(samples_of(network))]
    with torch.no_grad():
        outputs = [tensors(module(*sample)) for sample in samples[:SAMPLES]]
    names = [f"input{i}" for i in range(len(network.shapes))]
    results = [f"output{i}" for i in range(len(outputs[0]))]
    for opset in range(FIRST_OPSET, LAST_OPSET + 1):
        try:
            torch.onnx.export(module, tuple(samples[0]), str(folder / "model.onnx"), input_names=names,
                              output_names=results, opset_version=opset)
            break
        except Exception:  # An operator that only a later opset has.
            if opset == LAST_OPSET:
                raise
    stack = lambda rows, i: numpy.concatenate([row[i].numpy() for row in rows])
    numpy.savez(folder / "inputs.npz", **{name: stack(samples, i) for i, name in enumerate(names)})
    numpy.savez(folder / "outputs.npz", **{name: stack(outputs, i) for i, name in enumerate(results)})
    return parameters


def is_large(network):
    """The interpreter, in double, would run for minutes."""
    return any(math.prod(shape) > MOST_CHECKED for shape in network.shapes)


def config(network, folder):
    check = "" if is_large(network) or network.only_fp32 else "numeric_check { samples: 1 }"
    passes = PIPELINE[:PIPELINE.index("Quantize")] if network.only_fp32 else PIPELINE
    steps = "\n".join(f"  steps {{ pass {{ [type.googleapis.com/fuselage.{name}Options] {{}} }} }}" for name in passes)
    int8 = "" if network.only_fp32 else 'variants { name: "int8" }'
    return f"""model {{ path: "{folder}/model.onnx" }}
inputs: "{folder}/inputs.npz"
save_outputs: "{folder}/found.npz"
calibration {{ images: {samples_of(network)} }}
evaluation {{ batch: 1 }}
pipeline {{
{steps}
}}
{check}
variants {{ name: "fp32" after: "fusion" }}
{int8}
benchmark {{ batches: [1] threads: [1] warmup: 1 repetitions: 3 min_time_ms: 1 }}
"""


def relative_error(folder, variant):
    """The largest difference from PyTorch, in parts of the largest value; NaN where one is not a number."""
    wanted, found = numpy.load(folder / "outputs.npz"), numpy.load(folder / "found.npz")
    worst = 0.0
    for name in wanted.files:
        y = found[f"{variant}/{name}"][: len(wanted[name])].astype(numpy.float64)
        difference = numpy.abs(y.reshape(wanted[name].shape) - wanted[name]).max(initial=0)
        worst = max(worst, difference / max(numpy.abs(wanted[name]).max(initial=0), 1e-30))
        if math.isnan(difference):
            return math.nan
    return worst


def run(harness, arguments, limit):
    try:
        done = subprocess.run([harness, *arguments], capture_output=True, text=True, timeout=limit)
        return done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired:
        return None, f"took more than {limit} s"


def exported(network, folder, limit):
    """{"parameters"}; or {"declined"}, why PyTorch does not export it, or {"skipped"}, why a drawn one is passed over."""

    def too_long(*_):
        raise TookTooLong(f"took more than {limit:.0f} s")

    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(math.ceil(limit))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parameters = export(network, folder)
    except (Exception, TookTooLong) as error:
        return {"declined": f"{NOT_EXPORTED} {str(error).split('. ')[0].strip() or type(error).__name__}"}
    finally:
        signal.alarm(0)
    return {"parameters": parameters} if parameters is not None else {
        "skipped": f"more than {MOST_PARAMETERS // 10**6} million parameters"}


def measured(harness, network, folder, limit):
    """What the harness finds; "declined" says why where the network does not load or run."""
    (folder / "run.textproto").write_text(config(network, folder))
    started = time.monotonic()
    code, text = run(harness, [f"--config={folder}/run.textproto", f"--out={folder}/out"], limit)
    row = {"seconds": time.monotonic() - started}
    (folder / "log.txt").write_text(text)
    results_path = folder / "out" / "results.json"
    if code != 0 or not results_path.exists():
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        first = next((i for i, line in enumerate(lines) if line.startswith("error:")), len(lines) - 1)
        row["declined"] = "; ".join(lines[first:first + 4]).replace(f"{folder}/", "") or f"exit code {code}"
        return row
    results = json.loads(results_path.read_text())
    variants = {variant["name"]: variant for variant in results["variants"]}
    row["fp32_error"] = relative_error(folder, "fp32")
    row["int8_snr"] = variants.get("int8", {}).get("snr_db")
    row["ms"] = {name: variant["measurements"][0]["latency_ms"]["median"] for name, variant in variants.items()}
    if network.only_fp32:
        return row
    code, text = run(harness, ["explain", f"--config={folder}/run.textproto", f"--out={folder}/explained"], limit)
    if code == 0:
        explanation = json.loads((folder / "explained" / "results.json").read_text())["explanation"]
        row["ops"] = [int(explanation.get(f"{kind}_ops", 0)) for kind in ("int8", "fp32", "reference")]
        row["by_reference"] = sorted({p["op"] for p in explanation.get("placements", []) if p["runs_in"] == "reference"})
    return row


def row_or_none(network, folder):
    """The network's row, as the files in its folder have it; "skipped" where it was drawn and is too large."""
    row = {"name": network.name, "package": network.package}
    for name in (EXPORTED, MEASURED):
        if not (folder / name).exists():
            return None
        row.update(json.loads((folder / name).read_text()))
        if "declined" in row or "skipped" in row:
            break
    return row


def judge(network, harness, folder, limit):
    """Brings the files in the network's folder up to date, says its row and returns it."""

    def update(path, sources, make):
        if not path.exists() or any(path.stat().st_mtime < os.stat(source).st_mtime for source in sources):
            path.write_text(json.dumps(make(network, folder, limit)))
        return json.loads(path.read_text())

    folder.mkdir(parents=True, exist_ok=True)
    export_row = update(folder / EXPORTED, [__file__, networks.__file__], exported)
    if not export_row.keys() & {"declined", "skipped"}:
        update(folder / MEASURED, [folder / EXPORTED, harness], functools.partial(measured, harness))
    row = row_or_none(network, folder)
    print(f"{row['name']}:", row.get("declined") or row.get("skipped") or
          f"FP32 {row['fp32_error']:.1e}, INT8 {row['int8_snr']} dB, ops {row.get('ops')} "
          f"{' '.join(row.get('by_reference', []))} [{row['seconds']:.0f} s]", flush=True)
    return row


def table(rows):
    def cell(row):
        if "declined" in row:
            return f"| {row['name']} | {row['package']} | | declined | | | {row['declined'].replace('|', '/')} |"
        ops = row.get("ops")
        notes = f"by reference: {', '.join(row['by_reference'])}" if row.get("by_reference") else ""
        snr = row["int8_snr"]
        return " | ".join([f"| {row['name']}", row["package"], f"{row['parameters'] / 1e6:.1f}", f"{row['fp32_error']:.1e}",
                           "" if snr is None else f"{float(snr):.0f}", "/".join(map(str, ops)) if ops else "",
                           f"{notes} |"])

    head = ("| network | from | parameters, M | FP32 against PyTorch | INT8 SNR, dB | ops in INT8/FP32/reference | notes |\n"
            "| --- | --- | --- | --- | --- | --- | --- |\n")
    loaded = [row for row in rows if "declined" not in row]
    agree = [row for row in loaded if row["fp32_error"] <= MOST_DIFFERENCE]
    summary = (f"\n{len(loaded)} of {len(rows)} load, {len(agree)} of them agree with PyTorch to {MOST_DIFFERENCE:.0e} of the "
               "largest output.\n")
    return head + "".join(cell(row) + "\n" for row in rows) + summary


def sample_text(rows, seed):
    """What became of a sample, in words."""
    tried = [row for row in rows if "skipped" not in row]
    exported = [row for row in tried if not row.get("declined", "").startswith(NOT_EXPORTED)]
    loaded = [row for row in exported if "declined" not in row]
    differ = [row for row in loaded if not row["fp32_error"] <= MOST_DIFFERENCE]
    lines = [f"Of {len(tried)} networks (seed {seed}) PyTorch exports {len(exported)}; {len(loaded)} of these load, and "
             f"{len(loaded) - len(differ)} agree with PyTorch to {MOST_DIFFERENCE:.0e} of the largest output. "
             f"{len(rows) - len(tried)} more were drawn and passed over: more than {MOST_PARAMETERS // 10**6} million parameters."]
    lines += [f"- {row['name']}: {row['declined']}" for row in tried if "declined" in row]
    lines += [f"- {row['name']}: differs by {row['fp32_error']:.1e}" for row in differ]
    return "\n".join(lines) + "\n"


def rewrite(path, what, text):
    start, end = (mark.format(what) for mark in PLACE)
    before, rest = path.read_text().split(start)
    path.write_text(before + start + text + end + rest.split(end)[1])


def judge_sample(count, seed, harness, out, limit):
    """Rows of networks that are drawn until `count` are not too large."""
    rows = []
    for network in networks.sample(seed):
        if sum("skipped" not in row for row in rows) == count:
            break
        rows.append(judge(network, harness, out / network.name, limit))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--harness", required=True)
    parser.add_argument("--only", default="*", help="names, with * and ?; the table keeps the rows of others that --out has")
    parser.add_argument("--small", action="store_true", help="those that a test runs")
    parser.add_argument("--out", default="fuselage-out/zoo")
    parser.add_argument("--table", help="the Markdown file whose table is rewritten")
    parser.add_argument("--limit", type=float, default=900, help="seconds for one network")
    parser.add_argument("--sample", type=int, default=0, help="that many of timm's networks that the table has not")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    flags = parser.parse_args()
    where = pathlib.Path(os.environ.get("BUILD_WORKING_DIRECTORY", "."))
    out = (where / flags.out).absolute()
    harness = os.path.abspath(flags.harness)
    path = flags.table and where / flags.table
    if flags.sample:
        text = sample_text(judge_sample(flags.sample, flags.seed, harness, out / "sample", flags.limit), flags.seed)
        print(text, end="")
        if path:
            rewrite(path, "sample", text)
        return 0
    rows, missing = [], set()
    for network in networks.TABLE:
        if not fnmatch.fnmatch(network.name, flags.only) or (flags.small and not network.small):
            continue
        try:
            importlib.import_module(network.package)
        except ImportError:
            missing.add(network.package)
            continue
        rows.append(judge(network, harness, out / network.name, flags.limit))
    for package in sorted(missing):
        print(f"SKIPPED: {package} cannot be imported")
    if path:  # What earlier runs left is kept: a network that is not run again stays in the table.
        known = [row_or_none(network, out / network.name) for network in networks.TABLE]
        rewrite(path, "table", table([row for row in known if row]))
    bad = [row["name"] for row in rows if "declined" in row or not row["fp32_error"] <= MOST_DIFFERENCE]
    print(f"{len(rows) - len(bad)} of {len(rows)} load and agree" + (f"; not: {', '.join(bad)}" if bad else ""))
    return 1 if bad or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
