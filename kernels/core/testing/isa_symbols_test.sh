#!/bin/bash
# Fails where an object file or archive defines a weak function (an inline function or a template instance).
set -euo pipefail
status=0
checked=0
for file in "$@"; do
  case "${file}" in *.a | *.o | *.lo) ;; *) continue ;; esac
  checked=1
  if weak=$(nm --defined-only --demangle "${file}" | grep ' W '); then
    echo "${file} defines shared symbols, which may run on machines without its instruction set:"
    echo "${weak}"
    status=1
  fi
done
if [[ ${checked} == 0 ]]; then
  echo "no object file among: $*"
  status=1
fi
exit ${status}
