#!/usr/bin/env bash
# code_test.sh <.ptxas and .ptx files> [--has=REGEX] [--lacks=REGEX]: see cuda_code_test in cuda_library.bzl.
set -uo pipefail
logs=() ptx=() has=() lacks=()
for argument in "$@"; do
  case "$argument" in
    *.ptxas) logs+=("$argument") ;;
    *.ptx) ptx+=("$argument") ;;
    --has=*) has+=("${argument#*=}") ;;
    --lacks=*) lacks+=("${argument#*=}") ;;
    *) echo "code_test: unknown argument $argument" >&2; exit 2 ;;
  esac
done
failures=0
fail() { echo "code_test: $*" >&2; failures=$((failures + 1)); }

functions=$(cat "${logs[@]}" | grep -c 'bytes spill stores')
[ "$functions" -gt 0 ] || fail "ptxas reported no function in: ${logs[*]}"
# "Function properties for k", then "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads".
spills=$(grep -h -B 2 'bytes spill stores' "${logs[@]}" | grep -B 2 -E '[1-9][0-9]* bytes spill (stores|loads)')
[ -z "$spills" ] || fail $'register spills:\n'"$spills"

for pattern in "${has[@]}"; do
  grep -qhE "$pattern" "${ptx[@]}" || fail "no line of the PTX matches: $pattern"
done
for pattern in "${lacks[@]}"; do
  found=$(grep -nE -m 3 "$pattern" "${ptx[@]}") && fail "the PTX must not have: $pattern"$'\n'"$found"
done
[ "$failures" -eq 0 ] || exit 1
echo "$functions compiled functions without spills, ${#has[@]} patterns found, ${#lacks[@]} absent"
