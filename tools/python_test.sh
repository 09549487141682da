#!/bin/sh
# Debian's Python, which has Debian's modules, whatever PATH says.
exec /usr/bin/python3 -B -W ignore "$@"
