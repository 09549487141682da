#!/usr/bin/env bash
# code_test.sh <.ptxas and .ptx files> [--fma-from=SOURCE] [--has=REGEX] [--lacks=REGEX]: see cuda_code_test in
# cuda_library.bzl.
set -uo pipefail
fma='fma\.r[nzmp](\.ftz)?\.f32'
logs=() ptx=() has=() lacks=() fma_from=()
for argument in "$@"; do
  case "$argument" in
    *.ptxas) logs+=("$argument") ;;
    *.ptx) ptx+=("$argument") ;;
    --fma-from=*) fma_from+=("${argument#*=}") ;;
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

if [ ${#fma_from[@]} -eq 0 ]; then
  lacks+=("$fma")
else
  # Each fma must come from a line that says so: the last .loc before it. The files' numbers are at the end of the PTX.
  has+=("$fma")
  # "path:line path:line "
  asked=$(grep -HnE '__fmaf_rn|__builtin_fmaf' "${fma_from[@]}" | cut -d: -f1,2 | tr '\n' ' ')
  for file in "${ptx[@]}"; do
    strays=$(awk -v sources="${fma_from[*]}" -v asked=" $asked" -v fma="$fma" '
        BEGIN { count = split(sources, source, " ") }
        FNR == NR { for (i = 1; i <= count; ++i) if ($1 == ".file" && index($3, source[i])) from[$2] = source[i]; next }
        $1 == ".loc" { file = $2; line = $3 }
        $0 ~ fma && !((file in from) && index(asked, " " from[file] ":" line " ")) { print FNR ": " $0 }' \
      "$file" "$file" | head -3)
    [ -z "$strays" ] || fail "$file has an fma that ${fma_from[*]} does not ask for:"$'\n'"$strays"
  done
fi
for pattern in "${has[@]}"; do
  grep -qhE "$pattern" "${ptx[@]}" || fail "no line of the PTX matches: $pattern"
done
for pattern in "${lacks[@]}"; do
  found=$(grep -nE -m 3 "$pattern" "${ptx[@]}") && fail "the PTX must not have: $pattern"$'\n'"$found"
done
[ "$failures" -eq 0 ] || exit 1
echo "$functions compiled functions without spills, ${#has[@]} patterns found, ${#lacks[@]} absent"
