#!/usr/bin/env bash
# Writes compile_commands.json (for clangd, clang-tidy) from Bazel's own compile actions.
#   tools/compile_commands.sh [target pattern, default //...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
bazel aquery "mnemonic(CppCompile, ${1:-//...})" --output=jsonproto --include_artifacts=false 2>/dev/null |
python3 -c '
import json, sys
root = sys.argv[1]
commands = {}
for action in json.load(sys.stdin).get("actions", []):
    arguments = action["arguments"]
    source = arguments[arguments.index("-c") + 1] if "-c" in arguments else None
    if source and source not in commands:
        commands[source] = {"directory": root, "file": source, "arguments": arguments}
json.dump(sorted(commands.values(), key=lambda c: c["file"]), open("compile_commands.json", "w"), indent=1)
print(f"compile_commands.json: {len(commands)} files")
' "$root"
