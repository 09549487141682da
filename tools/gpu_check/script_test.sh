#!/usr/bin/env bash
# script_test.sh GPU_CHECK_SH: it builds from the sources that Bazel builds the same program from.
set -e
"$1" --build_only --build="$TEST_TMPDIR/build"
code=0
"$TEST_TMPDIR/build/gpu_check" --batches=none 2>"$TEST_TMPDIR/usage" || code=$?
[ $code -eq 2 ] && grep -q usage "$TEST_TMPDIR/usage" || { echo "the program that it built does not run" >&2; exit 1; }
