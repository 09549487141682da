#!/bin/sh
exec /usr/bin/python3 "$@"
