"""This compiler beside its peers, in one run on one machine: docs/peers.md.

    bazel run //tools/peers -- --config=resnet18.textproto
    bazel run //tools/peers -- --model=networks/     a table, a network a line
"""

import argparse
import copy
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).absolute().parent
sys.path.insert(0, str(HERE))  # The folder of the workers, which need not be that of the source.
import packages  # noqa: E402
from contestants import ALL, BINDABLE, NATIVE, ONEDNN_ISAS, Worker, WorkerError  # noqa: E402

TURN_MS = 50  # A turn is so many runs that they take about this long,
TURN_RUNS = 2  # and at least so many.
QUIET_CORES = 0.1  # As harness/base/machine_load.h has it.
MIN_WITHIN_ONE = 99.9  # Percent of codes.
BASELINE = "fuselage fp32"  # What speedups are over.
OF_HARNESS = "shape", "constant", "output", "inputs"  # Flags that say what the network is, and is run on.
MOST_SAMPLES = 500  # As harness/results.proto has it.


def say(text):
    print(text, file=sys.stderr, flush=True)


def percentile(ordered, p):
    """Type 7 of Hyndman and Fan, as harness/base/statistics.h has it."""
    position = p / 100 * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])


def summary(times):
    ordered = sorted(times)
    return {
        "min": ordered[0],
        "median": percentile(ordered, 50),
        "mean": statistics.fmean(ordered),
        "p90": percentile(ordered, 90),
        "p99": percentile(ordered, 99),
    }


def measure_in_turns(workers, repetitions, min_time_ms):
    """A B C A B C ..., until each has its repetitions and its time. Returns the milliseconds of each worker's runs."""
    counts = [max(TURN_RUNS, math.ceil(TURN_MS / statistics.median(worker.run(3)))) for worker in workers]
    times = [[] for _ in workers]
    while any(len(taken) < repetitions or sum(taken) < min_time_ms for taken in times):
        for worker, count, taken in zip(workers, counts, times):
            taken += worker.run(count)
    return times


class Load:
    """Cores that neither the workers nor this process kept busy."""

    def __init__(self, workers):
        self.workers = workers
        self.start = self._now()

    def _now(self):
        fields = [int(field) for field in pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:]]
        # user, nice, system, irq, softirq, steal: all but idle and waiting (proc(5)).
        busy = sum(fields[i] for i in (0, 1, 2, 5, 6, 7)) / os.sysconf("SC_CLK_TCK")
        own = os.times()
        ours = own.user + own.system + sum(worker.cpu_seconds() for worker in self.workers)
        return own.elapsed, busy, ours

    def other_cores(self):
        wall, busy, ours = (end - start for end, start in zip(self._now(), self.start))
        return max(0.0, (busy - ours) / wall)


def without_twins(workers):
    """Where a bound is no less than what the machine has, the contestant is another one again, and is left out."""
    unbounded = {worker.contestant.runs: worker.isa for worker in workers if not worker.contestant.bounded}
    return [worker for worker in workers
            if not worker.contestant.bounded or unbounded.get(worker.contestant.runs) != worker.isa]


def start_workers(contestants, bundle, batch, cpus, python):
    workers = []
    for contestant in contestants:
        try:
            workers.append(Worker(contestant, bundle, batch, cpus, python))
        except WorkerError as error:
            say(f"{contestant.name} does not take part: {error}")
    kept = without_twins(workers)
    for worker in workers:
        if worker not in kept:
            worker.close()
    if not kept:
        raise WorkerError("nobody takes part")
    return kept


def largest_difference(found, wanted):
    """NaN, infinities and another number of values differ by infinity. None where there is nothing to compare."""
    if not found or not wanted:
        return None
    if len(found) != len(wanted):
        return math.inf
    differences = [0 if a == b else abs(a - b) for a, b in zip(found, wanted)]
    return max(math.inf if math.isnan(difference) else difference for difference in differences)


class Table:
    """The contestants' entries of results.json."""

    def __init__(self, template):
        self.template = template
        self.entries = {}
        self.off = {}  # By contestant, what is wrong with its outputs.

    def entry(self, worker):
        contestant = worker.contestant
        if contestant.name not in self.entries:
            self.entries[contestant.name] = dict(
                copy.deepcopy(self.template), name=contestant.name, version=worker.version,
                isa="" if worker.isa == "-" else worker.isa, backend=contestant.program,
                compared_with="" if contestant.ours else contestant.compared_with)
        return self.entries[contestant.name]

    def compare(self, worker, found, wanted):
        """Keeps the largest difference of all batches, and remembers where it is beyond what is allowed."""
        name, entry = worker.contestant.name, self.entry(worker)
        difference = largest_difference(found, wanted)
        if difference is None:
            return
        entry["max_abs_error"] = max(difference, entry["max_abs_error"] or 0)
        allowed, largest = worker.contestant.allowed(worker.isa), max(map(abs, wanted))
        if allowed is not None and not difference <= allowed * largest:
            self.off[name] = f"{name}: outputs of up to {largest:.3g} are OFF by {difference:.3g}, " \
                             f"allowed is {allowed:.2g} relative"

    def add(self, workers, times, batch, threads, others):
        medians = {worker.contestant.name: statistics.median(taken) for worker, taken in zip(workers, times)}
        outputs = {worker.contestant.name: worker.outputs() for worker in workers}
        for worker, taken in zip(workers, times):
            contestant, entry = worker.contestant, self.entry(worker)
            ours = BASELINE if contestant.model == "fp32" else "fuselage int8"
            if contestant.name != ours:
                self.compare(worker, outputs[contestant.name], outputs.get(ours, []))
            baseline = medians.get(BASELINE)
            over = None if contestant.ours else medians.get(contestant.compared_with)
            entry["measurements"].append({
                "batch": batch,
                "threads": threads,
                "repetitions": len(taken),
                "latency_ms": summary(taken),
                "device_ms": summary(taken) if contestant.gpu else None,
                "images_per_second": 1e3 * batch / medians[contestant.name],
                "speedup": baseline and baseline / medians[contestant.name],
                "ratio": over and medians[contestant.name] / over,
                "other_cores_busy": others,
                "samples_ms": [taken[i * len(taken) // kept] for kept in [min(len(taken), MOST_SAMPLES)] for i in range(kept)],
            })

    def rows(self, batch, threads):
        yield ["batch %d, threads %d" % (batch, threads), "version", "isa", "min", "median", "p99", "ratio", "to",
               "output off by"]
        for name, entry in self.entries.items():
            for measurement in entry["measurements"]:
                if (measurement["batch"], measurement["threads"]) != (batch, threads):
                    continue
                latency = [f"{measurement['latency_ms'][key]:.2f}" for key in ("min", "median", "p99")]
                ratio, off = measurement["ratio"], entry["max_abs_error"]
                yield [name, entry["version"], entry["isa"], *latency, f"{ratio:.2f}" if ratio else "",
                       entry["compared_with"] if ratio else "", "" if off is None else f"{off:.2g}"]

    def overview(self):
        """Medians and ratios, a column for each batch size and thread count."""
        columns = list(dict.fromkeys((measurement["batch"], measurement["threads"])
                                     for entry in self.entries.values() for measurement in entry["measurements"]))
        yield ["median ms (ratio)", *(f"batch {batch}, threads {threads}" for batch, threads in columns)]
        for name, entry in self.entries.items():
            cells = {(measurement["batch"], measurement["threads"]): cell(measurement)
                     for measurement in entry["measurements"]}
            yield [name, *(cells.get(column, "") for column in columns)]


def cell(measurement):
    median, ratio = measurement["latency_ms"]["median"], measurement["ratio"]
    text = f"{median:#.3g}".rstrip(".")
    return f"{text} ({ratio:.2f})" if ratio else text


def markdown(rows):
    """Aligned, so that it also reads as plain text."""
    rows = list(rows)
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    rows.insert(1, ["-" * width for width in widths])
    return "\n".join("| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |" for row in rows)


def check_codes(contestants, bundle, samples, python, table):
    """The agreement of what runs the same quantized graph. Returns the lines to print, and whether all is well."""
    lines, well = [], True
    for contestant in contestants:
        if contestant.model != "int8" or contestant.name not in table.entries or contestant.ours or contestant.mode:
            continue
        try:
            worker = Worker(contestant, bundle, samples, {min(os.sched_getaffinity(0))}, python, model="int8_codes")
            codes = worker.codes()
            worker.close()
        except WorkerError as error:
            lines.append(f"{contestant.name}: its codes could not be compared: {error}")
            well = False
            continue
        table.entries[contestant.name]["codes_within_one"] = codes["within_one"]
        verdict = "" if codes["within_one"] >= MIN_WITHIN_ONE else f"; BELOW {MIN_WITHIN_ONE} %"
        well = well and not verdict
        lines.append(f"{contestant.name}: {codes['within_one']:.3f} % of {codes['values']:,} codes within one of ours, "
                     f"{codes['equal']:.3f} % equal, largest difference {codes['largest']}{verdict}")
    return lines, well


def numbers(text):
    values = [int(part) for part in text.split(",")]
    if min(values) < 1:
        raise argparse.ArgumentTypeError("want whole numbers of at least 1")
    return values


def quantize_their_way(bundle, python):
    """own_int8.onnx, by onnxruntime's quantizer."""
    command = [str(python), "-B", str(HERE / "own_quantizer.py"), *(str(bundle / name) for name in
               ("fp32.onnx", "samples.safetensors", "own_int8.onnx"))]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        say(f"onnxruntime does not quantize it: {packages.last_line(done)}")


def parse_arguments():
    parser = argparse.ArgumentParser(prog="peers", description="Measures this compiler beside its peers.")
    parser.add_argument("--config", default="default.textproto", help="a config of //harness, found as it finds it")
    parser.add_argument("--model", help="an .onnx file in the place of the config's, or a folder of them")
    for flag in OF_HARNESS:
        parser.add_argument(f"--{flag}", action="append", default=[], help="as //harness takes it")
    parser.add_argument("--out", help="folder of the results; default: fuselage-out/<config or model>-peers")
    parser.add_argument("--table", help="a file in which a folder's table stands, between the comments that begin and end it")
    parser.add_argument("--batches", type=numbers, default=[1, 16])
    parser.add_argument("--threads", type=numbers, default=[1, 2])
    parser.add_argument("--repetitions", type=int, default=20, help="timed runs of each, at least,")
    parser.add_argument("--min_time_ms", type=float, default=1000, help="that take at least so long together")
    parser.add_argument("--isa", choices=ONEDNN_ISAS,
                        help="an instruction set that bounds ours, oneDNN and OpenVINO; others do not take part")
    parser.add_argument("--contestants", default="", help="only those whose names begin with one of these, by comma")
    return parser.parse_args()


def chosen(prefixes, isa=None):
    """Those on a GPU without being asked for only where NVIDIA's driver is. With `isa` those that it bounds, once each."""
    wanted = [prefix for prefix in prefixes.split(",") if prefix]
    if isa:
        candidates = [contestant for contestant in chosen(prefixes) if not contestant.bounded and not contestant.gpu]
        for program in sorted({contestant.program for contestant in candidates} - {*BINDABLE}):
            say(f"{program} does not take part: nothing bounds it to {isa}")
        return [contestant.within(isa) for contestant in candidates if contestant.program in BINDABLE]
    if not wanted:
        return [contestant for contestant in ALL if not contestant.gpu or pathlib.Path("/dev/nvidiactl").exists()]
    return [contestant for contestant in ALL if any(map(contestant.name.startswith, wanted))]


def measure(arguments, model, bundle):
    """One network. Returns its table, or None and the exit code of what did not work."""
    command = [str(HERE / "prepare"), str(bundle), str(max(arguments.batches)), f"--config={arguments.config}",
               *([f"--model={model}"] * bool(model)), *([f"--isa={arguments.isa}"] * bool(arguments.isa)),
               *(f"--{flag}={value}" for flag in OF_HARNESS for value in getattr(arguments, flag))]
    code = subprocess.run(command).returncode
    if code != 0:
        return None, code
    contestants = chosen(arguments.contestants, arguments.isa)
    wanted = {contestant.program for contestant in contestants if not contestant.gpu} - {*NATIVE}
    if any(contestant.model == "own_int8" for contestant in contestants):
        wanted.add("onnxruntime")  # Its quantizer.
    python, had = packages.install(sorted(wanted), say) if wanted else (None, [])
    contestants = [contestant for contestant in contestants if contestant.gpu or contestant.program in (*NATIVE, *had)]
    if "onnxruntime" in had and any(contestant.model == "own_int8" for contestant in contestants):
        quantize_their_way(bundle, python)
    contestants = [contestant for contestant in contestants
                   if contestant.model != "own_int8" or (bundle / "own_int8.onnx").exists()]

    results = json.loads((bundle / "results.json").read_text())
    table = Table(results["variants"][0])
    cpus = sorted(os.sched_getaffinity(0))
    report = []
    for batch in arguments.batches:
        for threads in arguments.threads:
            if threads > len(cpus):
                say(f"threads {threads}: this process may use {len(cpus)} cores")
                continue
            say(f"batch {batch}, threads {threads}")
            workers = start_workers(contestants, bundle, batch, set(cpus[:threads]), python)
            try:
                load = Load(workers)
                times = measure_in_turns(workers, arguments.repetitions, arguments.min_time_ms)
                others = load.other_cores()
                table.add(workers, times, batch, threads, others)
            finally:
                for worker in workers:
                    worker.close()
            report.append(markdown(table.rows(batch, threads)))
            if others > QUIET_CORES:
                report[-1] += f"\nother programs kept {others:.1f} cores busy: not to be trusted"
    lines, well = check_codes(contestants, bundle, max(arguments.batches), python, table)
    lines += table.off.values()
    write_results(bundle, results, table, [*report, markdown(table.overview()), "\n".join(lines)])
    return table, 0 if well and not table.off else 1


def write_results(bundle, results, table, report):
    ours = [entry for entry in table.entries.values() if not entry["compared_with"]]
    results["variants"] = sorted(ours, key=lambda entry: entry["name"] != BASELINE)  # The baseline is first.
    results["peers"] = [entry for name, entry in table.entries.items() if entry["compared_with"]]
    (bundle / "results.json").write_text(json.dumps(results, indent=2) + "\n")
    text = "Milliseconds. Ratio: a peer's median over ours. Off by: largest difference of outputs to ours.\n\n" + "\n\n".join(report) + "\n"
    (bundle / "report.txt").write_text(text)
    print(f"\n{text}\nresults: {bundle}/results.json", flush=True)
    subprocess.run([str(HERE.parent.parent / "harness/harness"), "report", str(bundle / "results.json")], check=True)


def network_row(name, table, batch, threads):
    """One line of a folder's table; the best INT8 time of each program, whoever quantized the network."""
    def best(program, models):
        medians = [measurement["latency_ms"]["median"]
                   for contestant in ALL if contestant.program == program and contestant.model in models
                   and not contestant.bounded and not contestant.gpu and contestant.name in table.entries
                   for measurement in table.entries[contestant.name]["measurements"]
                   if (measurement["batch"], measurement["threads"]) == (batch, threads)]
        return min(medians, default=None)

    ours = {model: best("fuselage", [model]) for model in ("fp32", "int8", "fastest")}
    peers = [best(program, models) for program in ("onnxruntime", "openvino")
             for models in (["fp32"], ["int8", "int8_sums", "own_int8"])]
    fastest = min([time for time in peers if time], default=None)
    ratio = fastest and ours["fastest"] and fastest / ours["fastest"]
    times = [f"{time:#.3g}".rstrip(".") if time else "" for time in (*ours.values(), *peers)]
    return [name, *times, f"{ratio:.2f}" if ratio else ""], ratio


def folder_table(tables, batch, threads):
    rows = [[f"batch {batch}, threads {threads}: ms", "our FP32", "our INT8", "our fastest", "onnxruntime FP32", "INT8",
             "OpenVINO FP32", "INT8", "best peer / our fastest"]]
    ratios = []
    for name, table in tables.items():
        row, ratio = network_row(name, table, batch, threads)
        rows.append(row)
        ratios += [ratio] if ratio else []
    if ratios:
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
        rows.append(["geometric mean", *[""] * 7, f"{mean:.2f}"])
    return markdown(rows)


def replace_table(path, text):
    """What stands between the two comments."""
    before, begin, rest = path.read_text().partition("<!-- written by tools/peers: the table -->\n")
    _, end, after = rest.partition("<!-- the table ends -->")
    if not begin or not end:
        raise SystemExit(f"{path}: want the comments that begin and end the table")
    path.write_text(before + begin + text + "\n" + end + after)


def main():
    arguments = parse_arguments()
    caller = pathlib.Path(os.environ.get("BUILD_WORKING_DIRECTORY", os.getcwd()))
    model = caller / arguments.model if arguments.model else None
    stem = (model or pathlib.Path(arguments.config)).stem
    out = caller / (arguments.out or f"fuselage-out/{stem}-peers")
    if model is None or not model.is_dir():
        return measure(arguments, model, out)[1]
    tables, worst = {}, 0
    networks = sorted(model.glob("*.onnx"))
    if not networks:
        say(f"error: {model} has no .onnx file")
        return 2
    for network in networks:
        say(f"--- {network.stem}")
        table, code = measure(arguments, network, out / network.stem)
        worst = max(worst, code)
        if table is not None:
            tables[network.stem] = table
    text = "\n\n".join(folder_table(tables, batch, threads) for batch in arguments.batches for threads in arguments.threads)
    print(f"\n{text}")
    if arguments.table:
        replace_table(caller / arguments.table, text)
    return worst


if __name__ == "__main__":
    try:
        sys.exit(main())
    except WorkerError as error:
        say(f"error: {error}")
        sys.exit(3)
    except KeyboardInterrupt:
        sys.exit(130)
