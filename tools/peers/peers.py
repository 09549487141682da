"""This compiler beside its peers, in one run on one machine: docs/peers.md.

    bazel run //tools/peers -- --config=resnet18.textproto
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
from contestants import ALL, Worker, WorkerError  # noqa: E402

TURN_MS = 50  # A turn is so many runs that they take about this long,
TURN_RUNS = 2  # and at least so many.
QUIET_CORES = 0.1  # As harness/base/machine_load.h has it.
MIN_WITHIN_ONE = 99.9  # Percent of codes.


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


def start_workers(contestants, bundle, batch, cpus, python):
    workers = []
    for contestant in contestants:
        try:
            workers.append(Worker(contestant, bundle, batch, cpus, python))
        except WorkerError as error:
            say(f"{contestant.name} does not take part: {error}")
    return workers


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
            ours = "fuselage fp32" if contestant.model == "fp32" else "fuselage int8"
            if contestant.name != ours:
                self.compare(worker, outputs[contestant.name], outputs.get(ours, []))
            over = None if contestant.ours else medians.get(contestant.compared_with)
            entry["measurements"].append({
                "batch": batch,
                "threads": threads,
                "repetitions": len(taken),
                "latency_ms": summary(taken),
                "images_per_second": 1e3 * batch / medians[contestant.name],
                "ratio": over and medians[contestant.name] / over,
                "other_cores_busy": others,
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


def parse_arguments():
    parser = argparse.ArgumentParser(prog="peers", description="Measures this compiler beside its peers.")
    parser.add_argument("--config", required=True, help="a config of //harness, found as it finds it")
    parser.add_argument("--out", help="folder of the results; default: fuselage-out/<config>-peers")
    parser.add_argument("--batches", type=numbers, default=[1, 16])
    parser.add_argument("--threads", type=numbers, default=[1, 2])
    parser.add_argument("--repetitions", type=int, default=20, help="timed runs of each, at least,")
    parser.add_argument("--min_time_ms", type=float, default=1000, help="that take at least so long together")
    parser.add_argument("--contestants", default="", help="only those whose names begin with one of these, by comma")
    return parser.parse_args()


def chosen(prefixes):
    wanted = [prefix for prefix in prefixes.split(",") if prefix]
    return [contestant for contestant in ALL if not wanted or any(map(contestant.name.startswith, wanted))]


def main():
    arguments = parse_arguments()
    caller = pathlib.Path(os.environ.get("BUILD_WORKING_DIRECTORY", os.getcwd()))
    bundle = caller / (arguments.out or f"fuselage-out/{pathlib.Path(arguments.config).stem}-peers")
    samples = max(arguments.batches)
    code = subprocess.run([str(HERE / "prepare"), arguments.config, str(bundle), str(samples)]).returncode
    if code != 0:
        return code
    contestants = chosen(arguments.contestants)
    wanted = sorted({contestant.program for contestant in contestants} - {"fuselage", "onednn"})
    python, had = packages.install(wanted, say) if wanted else (None, [])
    contestants = [contestant for contestant in contestants if contestant.program in ("fuselage", "onednn", *had)]

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
    lines, well = check_codes(contestants, bundle, samples, python, table)
    lines += table.off.values()
    well = well and not table.off

    results["variants"] = [entry for name, entry in table.entries.items() if not entry["compared_with"]]
    results["peers"] = [entry for name, entry in table.entries.items() if entry["compared_with"]]
    (bundle / "results.json").write_text(json.dumps(results, indent=2) + "\n")
    text = "Milliseconds. Ratio: a peer's median over ours. Off by: largest difference of outputs to ours.\n\n" + "\n\n".join([*report, markdown(table.overview()), "\n".join(lines)]) + "\n"
    (bundle / "report.txt").write_text(text)
    print(f"\n{text}\nresults: {bundle}/results.json")
    return 0 if well else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except WorkerError as error:
        say(f"error: {error}")
        sys.exit(3)
    except KeyboardInterrupt:
        sys.exit(130)
