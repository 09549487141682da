#!/usr/bin/env bash
# my_harness_test.sh MY_HARNESS CONFIG: it runs the pass of this workspace.
set -e
harness=$PWD/$1
cd "$(dirname "$2")"
"$harness" --config="$(basename "$2")" --out="$TEST_TMPDIR/out"
grep -q '"matches": *1' "$TEST_TMPDIR/out/results.json" || { echo "double_relu matched nothing" >&2; exit 1; }
