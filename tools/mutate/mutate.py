#!/usr/bin/env python3
"""Changes the code by one small mistake at a time, and asks the tests: docs/testing.md.

    tools/mutate/mutate.py --results=mutants.jsonl            judges mutants until 100 are, and prints their table
    tools/mutate/mutate.py --results=mutants.jsonl --again=3  judges the third once more, with the tests of this tree
    tools/mutate/mutate.py --results=mutants.jsonl --table    prints the table, judging nothing

It writes into the sources of the tree that it lies in, and puts back what it found; use a worktree of its own. What was
judged is kept, a line of JSON each: the next run goes on from there. A mutant that does not compile is no mutant: another
one is drawn.
"""

import argparse
import collections
import json
import pathlib
import random
import re
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).absolute().parents[2]
sys.path.insert(0, str(pathlib.Path(__file__).absolute().parent))
import sites  # noqa: E402

LAYERS = ["ir", "passes", "frontend", "runtime", "kernels"]
NOT_SCALAR = re.compile(r"_avx2|_avx512|_amx|cuda|cudnn|/testing")
BATCH = 4  # Tests that one command builds and runs, after those of the own package.

CAUGHT, SURVIVED, NO_MUTANT = "caught", "survived", "does not compile"


def query(expression, *options):
    command = ["bazel", "query", "--noshow_progress", "--noimplicit_deps", expression, *options]
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True).stdout.splitlines()


def path_of(label):
    return label.removeprefix("//").replace(":", "/").removeprefix("/")


def product_sources():
    """{path: label} of what is compiled for every machine and ends up in a product."""
    folders = " + ".join(f"//{layer}/..." for layer in LAYERS)
    labels = query(f'labels(srcs, kind(cc_library, {folders}) except attr(testonly, 1, {folders}))')
    paths = {path_of(label): label for label in labels if label.endswith(".cc") and not NOT_SCALAR.search(label)}
    return {path: paths[path] for path in sorted(paths) if (ROOT / path).is_file()}


class Tests:
    """Who tests what."""

    def __init__(self):
        universe = "kind('cc_binary|.*_test rule|library', //...)"
        self.readers = collections.defaultdict(set)
        for line in query(f"deps({universe})", "--output=graph", "--nograph:factored", "--nohost_deps"):
            edge = re.fullmatch(r'\s*"(.*)" -> "(.*)"', line)
            if edge:
                self.readers[edge[2]].add(edge[1])
        # Benchmarks that run as tests only show that they run.
        self.tests = set(query("kind('.*_test rule', //...) except attr(tags, manual, //...)"
                               " except filter('_bench$|_symbols_test$|cuda|gpu_check', //...)"))

    def batches(self, label):
        """Those that depend on a source: its own package's first, then its layer's, then others, each nearest first."""
        distance, queue = {label: 0}, collections.deque([label])
        while queue:
            target = queue.popleft()
            for reader in self.readers[target] - distance.keys():
                distance[reader] = distance[target] + 1
                queue.append(reader)
        package, layer = label.split(":")[0], label.split("/")[2].split(":")[0]

        def nearness(test):
            return (not test.startswith(f"//{layer}/"), distance[test], test)
        tests = self.tests & distance.keys()
        own = sorted(test for test in tests if test.startswith(package + ":"))
        others = sorted(tests - set(own), key=nearness)
        return ([own] if own else []) + [others[i:i + BATCH] for i in range(0, len(others), BATCH)]


def places_by_kind(sources):
    places = collections.defaultdict(list)
    for path in sources:
        for site in sites.sites((ROOT / path).read_text()):
            places[site.kind].append((path, site))
    return [places[kind] for kind in sorted(places)]


def draw(rng, places):
    """A random mutant: each kind of mistake alike, each place of a kind alike."""
    path, site = rng.choice(rng.choice(places))
    return describe(path, (ROOT / path).read_text(), site)


def describe(path, source, site):
    begin = source.rfind("\n", 0, site.begin) + 1
    end = source.find("\n", site.end)
    return {"file": path, "line": source.count("\n", 0, site.begin) + 1, "kind": site.kind,
            "before": source[begin:end], "after": source[begin:site.begin] + site.text + source[site.end:end]}


def mutated(mutant, source):
    """The source with the mutant's line changed: of equal lines the nearest to where it was. None: there is none."""
    lines = source.split("\n")
    places = [i for i, line in enumerate(lines) if line == mutant["before"]]
    if not places:
        return None
    nearest = min(places, key=lambda i: abs(i + 1 - mutant["line"]))
    return "\n".join(lines[:nearest] + [mutant["after"]] + lines[nearest + 1:])


def judge(mutant, batches, arguments):
    """Builds and runs tests until one fails. Adds to the mutant what came of it."""
    path = ROOT / mutant["file"]
    source = path.read_text()
    changed = mutated(mutant, source)
    if changed is None:
        sys.exit(f"mutate: {mutant['file']} has no line {mutant['before'].strip()!r} any more")
    start = time.monotonic()
    mutant.update(verdict=SURVIVED, by=None, tests=0, of_tests=sum(map(len, batches)))
    try:
        path.write_text(changed)
        for batch in batches:
            if time.monotonic() - start > arguments.limit:
                return
            # A mutant may run for ever, or take all memory.
            command = ["bazel", "test", "--notest_keep_going", "--build_tests_only", "--test_output=summary",
                       f"--test_timeout={arguments.test_timeout}",
                       f"--run_under=prlimit --as={arguments.test_memory << 30}", *batch]
            run = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            failed = re.search(r"^(FAIL|TIMEOUT): (//\S+) \(", run.stdout, re.MULTILINE)  # A shard's, too.
            if failed:
                mutant.update(verdict=CAUGHT, by=failed[2], timed_out=failed[1] == "TIMEOUT")
                return
            if re.search(r"^ERROR: .*(compilation of rule|Compiling .* failed)", run.stdout, re.MULTILINE):
                mutant["verdict"] = NO_MUTANT
                return
            if run.returncode != 0:
                sys.exit("mutate: bazel test fails, and no test does:\n" + run.stdout[-4000:])
            mutant["tests"] += len(batch)
    finally:
        path.write_text(source)
        mutant["seconds"] = round(time.monotonic() - start)


def table(mutants):
    judged = [mutant for mutant in mutants if mutant["verdict"] != NO_MUTANT]
    print("| folder | mutants | caught | |\n| --- | --- | --- | --- |")
    for layer in LAYERS + [""]:
        some = [mutant for mutant in judged if mutant["file"].startswith(layer)]
        caught = sum(mutant["verdict"] == CAUGHT for mutant in some)
        print(f"| {layer or 'all'} | {len(some)} | {caught} | {100 * caught / max(len(some), 1):.0f} % |")
    print(f"\n{len(mutants) - len(judged)} did not compile. Survivors:\n")
    for number, mutant in enumerate(mutants, 1):
        if mutant["verdict"] == SURVIVED:
            print(f"{number}. {mutant['file']}:{mutant['line']} ({mutant['tests']} of {mutant['of_tests']} tests)\n"
                  f"   - {mutant['before'].strip()}\n   + {mutant['after'].strip()}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=pathlib.Path, required=True, help="file of what was judged")
    parser.add_argument("--count", type=int, default=100, help="of mutants that compile")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=int, default=900, help="seconds after which no more tests are begun for a mutant")
    parser.add_argument("--test_timeout", type=int, default=300, help="seconds that a test may take")
    parser.add_argument("--test_memory", type=int, default=16, help="GiB of address space that a test may take")
    parser.add_argument("--again", type=int, nargs="*", default=[], help="numbers of mutants to judge once more")
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args()
    # `finally` must put the source back.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))

    mutants = []
    if arguments.results.exists():
        mutants = [json.loads(line) for line in arguments.results.read_text().splitlines()]
    if not arguments.table:
        if subprocess.run(["git", "diff", "--quiet", "HEAD", "--", *LAYERS], cwd=ROOT).returncode != 0:
            sys.exit("mutate: the tree has changes; commit them, or restore what an interrupted run left")
        sources, tests = product_sources(), Tests()
        for number in arguments.again:
            mutant = mutants[number - 1]
            judge(mutant, tests.batches(sources[mutant["file"]]), arguments)
            write(arguments.results, mutants)
        rng, places = random.Random(arguments.seed), places_by_kind(sources)
        seen = {(mutant["file"], mutant["before"], mutant["after"]) for mutant in mutants}
        while not arguments.again and sum(m["verdict"] != NO_MUTANT for m in mutants) < arguments.count:
            mutant = draw(rng, places)
            key = (mutant["file"], mutant["before"], mutant["after"])
            if key in seen:
                continue
            seen.add(key)
            judge(mutant, tests.batches(sources[mutant["file"]]), arguments)
            mutants.append(mutant)
            write(arguments.results, mutants)
            print(f"{len(mutants)}. {mutant['file']}:{mutant['line']} {mutant['verdict']} {mutant['by'] or ''}"
                  f" {mutant['seconds']} s", flush=True)
    table(mutants)


def write(path, mutants):
    path.write_text("".join(json.dumps(mutant) + "\n" for mutant in mutants))


if __name__ == "__main__":
    main()
