#!/usr/bin/env bash
# gpu_check_test.sh GPU_CHECK: a few cases on the GPU. Without one: SKIPPED, or a failure with FUSELAGE_REQUIRE_GPU=1.
"$1" --quick
code=$?
if [ $code -eq 2 ] && [ "${FUSELAGE_REQUIRE_GPU:-}" != 1 ]; then
  echo "SKIPPED: no CUDA device"
  exit 0
fi
exit $code
