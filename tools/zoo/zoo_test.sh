#!/bin/sh
# zoo_test.sh ZOO HARNESS: the small networks load, and FP32 agrees with PyTorch.
exec "$1" "$2" --small --out="$TEST_TMPDIR/zoo"
