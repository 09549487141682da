"""Checks that each code block of a guide that names its file (<!-- path --> on the line above) stands in that file.

    snippets_test.py docs/adding_a_pass.md passes/cse/cse.h ...
"""

import re
import sys

BLOCK = re.compile(r"<!-- (\S+) -->\n```\w*\n(.*?)```", re.S)


def main():
    guide, files = sys.argv[1], sys.argv[2:]
    blocks = BLOCK.findall(open(guide, encoding="utf-8").read())
    failures = 0
    for path, code in blocks:
        if path not in files:
            print(f"{guide}: names {path}, which the test does not list")
            failures += 1
        elif code not in open(path, encoding="utf-8").read():
            print(f"{guide}: this block is not in {path}:\n{code}")
            failures += 1
    if not blocks:
        print(f"{guide}: no block names its file")
        failures += 1
    print(f"{len(blocks)} blocks, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
