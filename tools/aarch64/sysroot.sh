#!/usr/bin/env bash
# Makes a folder of the libraries that tools/packages/debian.txt names and of what they depend on, as Debian builds them
# for arm64. It asks apt in a state of its own: nothing of the system changes, and root is not needed.
#   tools/aarch64/sysroot.sh FOLDER
set -euo pipefail
sysroot=$1
packages=$(grep -e '-dev$' "$(dirname "${BASH_SOURCE[0]}")/../packages/debian.txt")
if [ "$(cat "$sysroot/packages" 2>/dev/null)" = "$packages" ]; then exit; fi

mkdir -p "$(dirname "$sysroot")"
work=$(mktemp -d "$sysroot.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/apt/lists/partial" "$work/apt/archives/partial" "$work/root"
touch "$work/apt/status"
apt() {
  apt-get -q -y -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User= -o Debug::NoLocking=true \
    -o Dir::State="$work/apt" -o Dir::State::status="$work/apt/status" -o Dir::Cache="$work/apt" "$@"
}
apt update
# shellcheck disable=SC2086
apt install --no-install-recommends --download-only $packages
for package in "$work"/apt/archives/*.deb; do dpkg-deb --extract "$package" "$work/root"; done
# Their links name places below /.
find "$work/root" -lname '/*' -exec sh -c 'for l; do ln -sfn "$0$(readlink "$l")" "$l"; done' "$sysroot" {} +
echo "$packages" > "$work/root/packages"
rm -rf "$sysroot"
mv "$work/root" "$sysroot"
