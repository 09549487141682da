#!/usr/bin/env bash
# Installs the library, its header, and what pkg-config and CMake find it by.
#   bazel run //:install -- --prefix=/usr/local        $DESTDIR stands before it, as elsewhere
set -euo pipefail
library=$1 header=$2
shift 2
prefix=/usr/local
for flag in "$@"; do
  case $flag in
    --prefix=/*) prefix=${flag#--prefix=} ;;
    *) echo "found \"$flag\", wanted --prefix=FOLDER, from the root" >&2; exit 2 ;;
  esac
done
root=${DESTDIR:-}$prefix
version=$(sed -n 's/^#define FUSELAGE_VERSION "\(.*\)"$/\1/p' "$header")
install -d "$root/include" "$root/lib/pkgconfig" "$root/lib/cmake/Fuselage"
install -m 644 "$header" "$root/include/fuselage.h"
install -m 755 "$library" "$root/lib/libfuselage.so.$version"
ln -sf "libfuselage.so.$version" "$root/lib/libfuselage.so.0"
ln -sf libfuselage.so.0 "$root/lib/libfuselage.so"
cat > "$root/lib/pkgconfig/fuselage.pc" <<EOF
Name: fuselage
Description: INT8 inference compiler
Version: $version
Cflags: -I$prefix/include
Libs: -L$prefix/lib -lfuselage
EOF
cat > "$root/lib/cmake/Fuselage/FuselageConfig.cmake" <<'EOF'
get_filename_component(_fuselage "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET Fuselage::Fuselage)
  add_library(Fuselage::Fuselage SHARED IMPORTED)
  set_target_properties(Fuselage::Fuselage PROPERTIES
    IMPORTED_LOCATION "${_fuselage}/lib/libfuselage.so"
    IMPORTED_SONAME libfuselage.so.0
    INTERFACE_INCLUDE_DIRECTORIES "${_fuselage}/include")
endif()
EOF
cat > "$root/lib/cmake/Fuselage/FuselageConfigVersion.cmake" <<EOF
set(PACKAGE_VERSION "$version")
string(REGEX MATCH "^[0-9]+\\\\.[0-9]+" _wanted "\${PACKAGE_FIND_VERSION}")
if(NOT _wanted OR "\${PACKAGE_VERSION}" MATCHES "^\${_wanted}(\\\\.|\$)")
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
endif()
EOF
echo "installed Fuselage $version in $root"
