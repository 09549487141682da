#!/usr/bin/env bash
# The package holds what install.sh installs, names packages that are there, and is the same each time.
set -euo pipefail
deb=$1 install=$2 library=$3 header=$4
if ! command -v dpkg-shlibdeps > /dev/null; then
  echo "SKIPPED: dpkg-dev is not installed"
  exit 0
fi
cp -L "$library" "$TEST_TMPDIR/library"
for name in first second; do "$deb" "$install" "$TEST_TMPDIR/library" "$header" "$TEST_TMPDIR/$name.deb"; done
cd "$TEST_TMPDIR"
cmp first.deb second.deb
dpkg-deb -x first.deb found
DESTDIR=$PWD/wanted "$OLDPWD/$install" library "$OLDPWD/$header" --prefix=/usr
diff -r --no-dereference found wanted
dpkg-deb -f first.deb Depends | tr ',' '\n' | sed 's/ *(.*//' | tee depends
grep -q '^ *libstdc++6' depends
dpkg-query -W $(cat depends)
if "$OLDPWD/$deb" "$OLDPWD/$install" library "$OLDPWD/$header"; then exit 1; fi
