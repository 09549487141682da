#!/usr/bin/env bash
# What install.sh installs, below /usr, as a Debian package.
#   bazel run //:deb -- fuselage.deb
set -euo pipefail
[ $# -eq 4 ] || { echo "found $(($# - 3)) arguments, wanted the package's name: fuselage.deb" >&2; exit 2; }
install=$(realpath "$1") library=$(realpath "$2") header=$(realpath "$3")
package=$(cd "${BUILD_WORKING_DIRECTORY:-.}" && realpath "$4")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
DESTDIR=$folder/root "$install" "$library" "$header" --prefix=/usr > /dev/null
version=$(sed -n 's/^#define FUSELAGE_VERSION "\(.*\)"$/\1/p' "$header")
# Which packages have the shared libraries that the library needs.
mkdir debian root/DEBIAN
printf 'Source: fuselage\n\nPackage: fuselage\nArchitecture: any\n' > debian/control
depends=$(dpkg-shlibdeps -O "root/usr/lib/libfuselage.so.$version" 2> errors) || { cat errors >&2; exit 1; }
cat > root/DEBIAN/control <<EOF
Package: fuselage
Version: $version
Architecture: $(dpkg --print-architecture)
Maintainer: The Fuselage authors
Section: libs
Priority: optional
Depends: ${depends#shlibs:Depends=}
Installed-Size: $(du -sk root/usr | cut -f1)
Description: INT8 inference compiler
 Reads a trained network, quantizes it, runs it: a shared library for C and C++,
 and what pkg-config and CMake find it by.
EOF
echo 'activate-noawait ldconfig' > root/DEBIAN/triggers
# The same library, the same package to the byte.
SOURCE_DATE_EPOCH=0 dpkg-deb --root-owner-group --build root "$package" > /dev/null
echo "wrote $package"
