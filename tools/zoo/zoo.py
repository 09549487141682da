"""Exports networks from PyTorch, runs each through the harness, and writes what came out as a table.

    bazel run //tools/zoo -- [--only=GLOB] [--small] [--out=FOLDER] [--table=docs/models.md]

For each network of networks.py whose package can be imported: seeded weights, batch norms with statistics that are not
trivial, seeded inputs; PyTorch's outputs for them; the ONNX file of torch.onnx.export. The harness loads it, runs FP32 and
INT8 (calibrated on these inputs and more), and checks every pass with the interpreter where inputs are small.
"""

import argparse
import fnmatch
import importlib
import json
import math
import os
import pathlib
import subprocess
import sys
import time
import warnings

import numpy
import torch

import networks

SAMPLES, CALIBRATION = 2, 6
FIRST_OPSET, LAST_OPSET = 13, 16
MOST_CHECKED = 3 * 128 * 128  # Elements of an input with which every pass is checked.
PIPELINE = ("Normalize", "ConvBn", "Fusion", "Quantize", "QuantLift", "Lower", "Int8Fusion", "Cleanup")
START = "<!-- written by tools/zoo: the table -->\n"
END = "<!-- the table ends -->\n"


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


def tensors(outputs):
    return [outputs] if isinstance(outputs, torch.Tensor) else list(outputs)


def export(network, folder):
    """Writes model.onnx, inputs.npz and outputs.npz; returns the number of parameters."""
    module = seeded(network)
    samples = [inputs_of(network, seed) for seed in range(SAMPLES + CALIBRATION)]
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
    return sum(parameter.numel() for parameter in module.parameters())


def is_large(network):
    """The interpreter, in double, would run for minutes."""
    return any(math.prod(shape) > MOST_CHECKED for shape in network.shapes)


def config(network, folder):
    check = "" if is_large(network) else "numeric_check { samples: 1 }"
    steps = "\n".join(f"  steps {{ pass {{ [type.googleapis.com/fuselage.{name}Options] {{}} }} }}" for name in PIPELINE)
    return f"""model {{ path: "{folder}/model.onnx" }}
inputs: "{folder}/inputs.npz"
save_outputs: "{folder}/found.npz"
calibration {{ images: {SAMPLES + CALIBRATION} }}
evaluation {{ batch: 1 }}
pipeline {{
{steps}
}}
{check}
variants {{ name: "fp32" after: "fusion" }}
variants {{ name: "int8" }}
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


def judge(network, harness, folder, limit):
    """One row of the table, as a dictionary; 'declined' says why where the network does not load or run."""
    row = {"name": network.name, "package": network.package}
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            row["parameters"] = export(network, folder)
    except Exception as error:
        row["declined"] = f"PyTorch does not export it: {str(error).split('. ')[0].strip() or type(error).__name__}"
        return row
    (folder / "run.textproto").write_text(config(network, folder))
    started = time.monotonic()
    code, text = run(harness, [f"--config={folder}/run.textproto", f"--out={folder}/out"], limit)
    row["seconds"] = time.monotonic() - started
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
    row["int8_snr"] = variants["int8"].get("snr_db")
    row["ms"] = {name: variant["measurements"][0]["latency_ms"]["median"] for name, variant in variants.items()}
    code, text = run(harness, ["explain", f"--config={folder}/run.textproto", f"--out={folder}/explained"], limit)
    if code == 0:
        explanation = json.loads((folder / "explained" / "results.json").read_text())["explanation"]
        row["ops"] = [int(explanation.get(f"{kind}_ops", 0)) for kind in ("int8", "fp32", "reference")]
        row["by_reference"] = sorted({p["op"] for p in explanation.get("placements", []) if p["runs_in"] == "reference"})
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
    agree = [row for row in loaded if row["fp32_error"] <= 1e-4]
    summary = f"\n{len(loaded)} of {len(rows)} load, {len(agree)} of them agree with PyTorch to 1e-4 of the largest output.\n"
    return head + "".join(cell(row) + "\n" for row in rows) + summary


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--harness", required=True)
    parser.add_argument("--only", default="*", help="names, with * and ?; the table keeps the rows of the others")
    parser.add_argument("--small", action="store_true", help="those that a test runs")
    parser.add_argument("--out", default="fuselage-out/zoo")
    parser.add_argument("--table", help="the Markdown file whose table is rewritten")
    parser.add_argument("--limit", type=float, default=900, help="seconds for one network")
    flags = parser.parse_args()
    where = pathlib.Path(os.environ.get("BUILD_WORKING_DIRECTORY", "."))
    out = (where / flags.out).absolute()
    kept = out / "rows.json"  # What earlier runs left: a network that is not run again stays in the table.
    known = {row["name"]: row for row in json.loads(kept.read_text())} if kept.exists() else {}
    rows, missing = [], set()
    for network in networks.TABLE:
        if not fnmatch.fnmatch(network.name, flags.only) or (flags.small and not network.small):
            continue
        try:
            importlib.import_module(network.package)
        except ImportError:
            missing.add(network.package)
            continue
        row = judge(network, os.path.abspath(flags.harness), out / network.name, flags.limit)
        rows.append(row)
        print(row.get("declined") and f"{row['name']}: {row['declined']}" or
              f"{row['name']}: FP32 {row['fp32_error']:.1e}, INT8 {row['int8_snr']} dB, ops {row.get('ops')} "
              f"{' '.join(row.get('by_reference', []))} [{row['seconds']:.0f} s]", flush=True)
    for package in sorted(missing):
        print(f"SKIPPED: {package} cannot be imported")
    known.update((row["name"], row) for row in rows)
    everything = [known[network.name] for network in networks.TABLE if network.name in known]
    kept.write_text(json.dumps(everything, indent=1))
    if flags.table:
        path = where / flags.table
        before, rest = path.read_text().split(START)
        path.write_text(before + START + table(everything) + END + rest.split(END)[1])
    bad = [row["name"] for row in rows if "declined" in row or not row["fp32_error"] <= 1e-4]
    print(f"{len(rows) - len(bad)} of {len(rows)} load and agree" + (f"; not: {', '.join(bad)}" if bad else ""))
    return 1 if bad or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
