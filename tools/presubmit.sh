#!/usr/bin/env bash
# What to run before a commit: format, the tests of what changed in a quick form, and the rules a machine can check.
#   tools/presubmit.sh          everything
#   tools/presubmit.sh --fix    rewrites the formatting of changed C++ files
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
failures=0
fail() { echo "presubmit: $*" >&2; failures=$((failures + 1)); }

mapfile -t changed < <( { git diff --name-only --diff-filter=ACMR HEAD; git ls-files --others --exclude-standard; } | sort -u)
cpp=()
for file in "${changed[@]}"; do case "$file" in *.cc|*.h|*.cu) cpp+=("$file") ;; esac; done
if command -v clang-format >/dev/null && [ ${#cpp[@]} -gt 0 ]; then
  if [ "${1:-}" = "--fix" ]; then clang-format -i "${cpp[@]}"; fi
  clang-format --dry-run -Werror "${cpp[@]}" 2>&1 | grep -m 20 'error:' && fail "formatting (tools/presubmit.sh --fix)"
elif [ ${#cpp[@]} -gt 0 ]; then
  echo "presubmit: no clang-format here; formatting not checked" >&2
fi

while read -r lines file; do
  if [ "$lines" -gt 600 ]; then fail "$file has $lines lines: split it by idea"; fi
done < <(git ls-files '*.cc' '*.h' '*.cu' '*BUILD' | xargs -r wc -l | awk '$2 != "total" {print $1, $2}')
git grep -nE '\b(TODO|FIXME|XXX)\b' -- '*.cc' '*.h' '*.cu' '*.proto' '*.py' '*.sh' ':!tools/presubmit.sh' && fail "unfinished work (above)"
git ls-files -s | awk '$1 == "120000"' | grep . && fail "symbolic links (above)"

git grep -n 'default_visibility = \["//visibility:public' -- frontend harness ir/ops kernels passes runtime tools \
  ':!*/core/*' ':!*/testing/*' && fail "a layer that everybody sees (above): docs/architecture.md, who may see whom"

bazel query "kind('_test rule', //...)" --output=build 2>/dev/null |
  awk 'BEGIN {RS = ""} !/\n  size = / {print $2; found = 1} END {exit !found}' && fail "tests without a size (above)"

bazel test --test_size_filters=small,medium //... || fail "tests"
if [ "$failures" -gt 0 ]; then echo "presubmit: $failures failed" >&2; exit 1; fi
echo "presubmit: all good"
