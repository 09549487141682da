#!/bin/sh
# Any Python from 3.11 on; what it lacks goes into a virtual environment of its own.
exec python3 -B "$0.runfiles/fuselage/tools/peers/peers.py" "$@"
