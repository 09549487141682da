#!/bin/bash
# Four processes at once, and then one more, find what Bazel's actions found: example_test.sh HARNESS SWEEP MERGED
set -euo pipefail
for rank in 0 1 2 3; do
  PMI_RANK=$rank PMI_SIZE=4 "$1" sweep --no_cache --config="$2" --out="$TEST_TMPDIR/sweep" &
done
wait
cmp "$TEST_TMPDIR/sweep/sweep.json" "$3/sweep.json"
"$1" sweep --no_cache --config="$2" --out="$TEST_TMPDIR/alone" >"$TEST_TMPDIR/alone.txt"
cmp "$TEST_TMPDIR/alone/sweep.json" "$3/sweep.json"
grep -q 'seed 3 .* folded' "$TEST_TMPDIR/alone.txt"
! "$1" sweep --config="$2" --unit=3 2>"$TEST_TMPDIR/error.txt"
grep -q -- "--unit=3: want less than the sweep's 3" "$TEST_TMPDIR/error.txt"
