"""test_summary.py EVENTS STATUS: what a `bazel test --build_event_json_file=EVENTS` that exited with STATUS has shown.

The last line is "N passed, N failed, N skipped", in targets; the one before says what was skipped, and why. Exits with
STATUS, or with 1 where no test ran.

A test that cannot run on a machine says so: GTEST_SKIP() << why, or, in a script, a line "SKIPPED: why". A target is
skipped where all that it has was: each case of GoogleTest, or the script. Single cases of others are listed beside it.
"""

import collections
import json
import re
import sys
import urllib.parse
import urllib.request

_CASE = re.compile(r"^\[  SKIPPED \] \S+.* \(\d+ ms\)$", re.MULTILINE)
# What GTEST_SKIP was given stands below the place that it was called from.
_REASON = re.compile(r"^(?:\S+: Skipped\n|SKIPPED: )(.+)$", re.MULTILINE)
_ALL = re.compile(r"^(?:SKIPPED: .|\[  PASSED  \] 0 tests\.$)", re.MULTILINE)
_NO_CASE = re.compile(r"^\[=+\] Running 0 tests", re.MULTILINE)  # A shard may have none.


def skipped(logs):
    """(the whole target was skipped, cases skipped, why) of the logs of a target's shards."""
    logs = [log for log in logs if not _NO_CASE.search(log)]
    cases = sum(len(_CASE.findall(log)) for log in logs)
    reasons = [reason for log in logs for reason in _REASON.findall(log)]
    return bool(logs) and all(_ALL.search(log) for log in logs), cases, reasons[0] if reasons else "no reason given"


def read(uri):
    with open(urllib.request.url2pathname(urllib.parse.urlparse(uri).path), errors="replace") as log:
        return log.read()


def summary(events, status):
    """The lines to print and the exit code."""
    passed = failed = 0
    whole, single = collections.defaultdict(list), []
    for event in events:
        if "testSummary" not in event:
            continue
        label = event["id"]["testSummary"]["label"]
        if event["testSummary"].get("overallStatus") != "PASSED":
            failed += 1
            continue
        all_of_it, cases, reason = skipped([read(log["uri"]) for log in event["testSummary"].get("passed", [])])
        if all_of_it:
            whole[reason].append(label)
            continue
        passed += 1
        if cases > 0:
            single.append(f"{cases} of {label} ({reason})")
    if status != 0 and failed == 0:
        failed = 1  # The build itself failed.
    parts = [f"{', '.join(sorted(labels))} ({reason})" for reason, labels in sorted(whole.items())]
    if single:
        parts.append("cases: " + ", ".join(sorted(single)))
    count = sum(map(len, whole.values()))
    lines = ["skipped: " + "; ".join(parts)] if parts else []
    return lines + [f"{passed} passed, {failed} failed, {count} skipped"], status if passed > 0 else status or 1


def main():
    with open(sys.argv[1]) as events:
        lines, status = summary([json.loads(line) for line in events], int(sys.argv[2]))
    print("\n".join(lines))
    sys.exit(status)


if __name__ == "__main__":
    main()
