#!/bin/bash
# size_test.sh PROGRAM WEIGHTS MOST: what a network costs a program beside its weights is at most MOST bytes of instructions.
# That is what linking kernels that nobody calls would cost; `size -A` says what the rest is.
set -euo pipefail
program=$1 weights=$(stat -Lc %s "$2") most=$3
size -A "$program"
text=$(size -A "$program" | awk '$1 == ".text" { print $2 }')
all=$(size -A "$program" | awk '$3 > 0 && $1 != ".bss" { sum += $2 } END { printf "%d", sum }')
echo "$text bytes of instructions, $((all - weights)) of all without the weights"
if [[ $most == unlimited ]]; then
  echo "SKIPPED: not an optimized build"
elif ((text > most)); then
  echo "wanted at most $most bytes of instructions"
  exit 1
fi
