#!/bin/sh
# zoo.sh HARNESS FLAGS...: with Debian's Python, which has Debian's PyTorch, or the one that FUSELAGE_PYTHON names.
python=${FUSELAGE_PYTHON:-/usr/bin/python3}
harness=$1
shift
if ! "$python" -c 'import torch, torchvision' 2>/dev/null; then
  echo "SKIPPED: $python has no torch and torchvision (Debian: python3-torch, python3-torchvision)"
  exit 0
fi
exec "$python" -B -W ignore tools/zoo/zoo.py --harness="$harness" "$@"
