#!/usr/bin/env bash
# Rewrites the expected graphs of text cases from what the passes now do. Read the diff before you commit it.
#   tools/update_cases.sh //passes/conv_bn:cases_test
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[ $# -gt 0 ] || { echo "usage: tools/update_cases.sh TARGET..." >&2; exit 2; }
bazel test --spawn_strategy=local --nocache_test_results --test_env=FUSELAGE_UPDATE_CASES="$PWD" "$@"
git --no-pager diff --stat -- '*/cases/*'
