#!/usr/bin/env bash
# Runs bazelw as on other systems: which list it takes, and what it does with it. The commands that it calls are stand-ins.
set -euo pipefail
commands=$TEST_TMPDIR/commands
mkdir "$commands"
stand_in() { printf '#!/bin/bash\n%s\n' "$2" > "$commands/$1"; chmod +x "$commands/$1"; }
stand_in dpkg-query 'case "$3" in g++|zlib1g-dev) exit 1 ;; *) printf "install ok installed\\ninstall ok not-installed\\n" ;; esac'
stand_in rpm 'case "$3" in gcc-c++) exit 1 ;; esac'
stand_in id 'echo 0'
for name in apt-get dnf bazel; do stand_in $name "echo $name \"\$@\" >> $TEST_TMPDIR/calls"; done

failures=0
# expect <lines of os-release> <calls>: what `bazelw build //x` calls there.
expect() {
  : > "$TEST_TMPDIR/calls"
  printf "$1" > "$TEST_TMPDIR/os-release"
  OS_RELEASE=$TEST_TMPDIR/os-release PATH=$commands:$PATH "$BAZELW" build //x 2>"$TEST_TMPDIR/errors" || cat "$TEST_TMPDIR/errors"
  if ! diff <(printf "$2") "$TEST_TMPDIR/calls"; then echo "on: $1"; failures=$((failures + 1)); fi
}
apt='apt-get update -q\napt-get install -y -q --no-install-recommends g++ zlib1g-dev\nbazel build //x\n'
dnf='dnf install -y -q --setopt=install_weak_deps=False gcc-c++\nbazel build //x\n'
BAZELW=$PWD/bazelw
expect 'ID=debian\n' "$apt"
expect 'ID=ubuntu\nID_LIKE=debian\n' "$apt"
expect 'ID=linuxmint\nID_LIKE="ubuntu debian"\n' "$apt"
expect 'ID=fedora\n' "$dnf"
expect 'ID=nobara\nID_LIKE="rhel centos fedora"\n' "$dnf"
expect 'ID=arch\n' 'bazel build //x\n'
grep -q 'no list of packages for this system' "$TEST_TMPDIR/errors" || failures=$((failures + 1))
exit "$failures"
