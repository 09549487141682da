#!/bin/sh
echo "coverage reports need Bazel's remote_coverage_tools, which this workspace does not install" >&2
exit 1
