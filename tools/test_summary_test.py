"""What test_summary.py makes of a run's events and logs."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).absolute().parent))
import test_summary  # noqa: E402

RAN = "[==========] Running 2 tests from 1 test suite.\n[       OK ] A.B (0 ms)\n[  PASSED  ] 2 tests.\n"
SKIP = "a/b_test.cc:7: Skipped\nno CUDA device\n\n[  SKIPPED ] {} (0 ms)\n"
SOME = "[==========] Running 2 tests from 1 test suite.\n" + SKIP.format("A.B") + (
    "[       OK ] A.C (0 ms)\n[  PASSED  ] 1 test.\n[  SKIPPED ] 1 test, listed below:\n[  SKIPPED ] A.B\n")
ALL = "[==========] Running 1 test from 1 test suite.\n" + SKIP.format("A.B, where GetParam() = 3") + (
    "[  PASSED  ] 0 tests.\n[  SKIPPED ] 1 test, listed below:\n[  SKIPPED ] A.B\n")
NO_CASE = "[==========] Running 0 tests from 0 test suites.\n[  PASSED  ] 0 tests.\n"
SCRIPT = "SKIPPED: no torch\n"


class SummaryTest(unittest.TestCase):

    def summary(self, targets, status=0):
        """Of {label: (overall status, logs)}."""
        with tempfile.TemporaryDirectory() as folder:
            events = [{"id": {"pattern": {}}}]
            for i, (label, (overall, logs)) in enumerate(targets.items()):
                paths = [pathlib.Path(folder) / f"{i} {k}.log" for k in range(len(logs))]
                for path, log in zip(paths, logs):
                    path.write_text(log)
                events.append({"id": {"testSummary": {"label": label}},
                               "testSummary": {"overallStatus": overall, "passed": [{"uri": p.as_uri()} for p in paths]}})
            return test_summary.summary(events, status)

    def test_skipped_is_not_passed(self):
        lines, status = self.summary({"//a": ("PASSED", [RAN]), "//b": ("PASSED", [ALL]), "//c": ("PASSED", [SCRIPT]),
                                      "//d": ("PASSED", [SOME]), "//e": ("PASSED", [ALL])})
        self.assertEqual(lines, ["skipped: //b, //e (no CUDA device); //c (no torch); cases: 1 of //d (no CUDA device)",
                                 "2 passed, 0 failed, 3 skipped"])
        self.assertEqual(status, 0)

    def test_shards(self):
        self.assertEqual(self.summary({"//a": ("PASSED", [ALL, RAN, NO_CASE])})[0][-1], "1 passed, 0 failed, 0 skipped")
        self.assertEqual(self.summary({"//a": ("PASSED", [ALL, ALL, NO_CASE])})[0][-1], "0 passed, 0 failed, 1 skipped")

    def test_failures(self):
        targets = {"//a": ("PASSED", [RAN]), "//b": ("FAILED", []), "//c": ("TIMEOUT", []), "//d": ("FLAKY", [])}
        self.assertEqual(self.summary(targets, 3), (["1 passed, 3 failed, 0 skipped"], 3))
        self.assertEqual(self.summary({"//a": ("PASSED", [RAN])}, 1), (["1 passed, 1 failed, 0 skipped"], 1))

    def test_nothing_ran(self):
        self.assertEqual(self.summary({}), (["0 passed, 0 failed, 0 skipped"], 1))
        self.assertEqual(self.summary({"//a": ("PASSED", [ALL])})[1], 1)


if __name__ == "__main__":
    unittest.main()
