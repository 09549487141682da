#!/usr/bin/env bash
# As somebody would who has the installed library and a C compiler, and no Bazel.
set -euo pipefail
install=$PWD/$1 library=$PWD/$2 header=$PWD/$3 example=$PWD/$4 model=$PWD/$5
folder=$TEST_TMPDIR/prefix
"$install" "$library" "$header" "--prefix=$folder"

# What is exported is what the header declares.
declared=$(grep -o 'fuselage_[a-z_]*(' "$header" | tr -d '(' | sort -u)
exported=$(nm -D --defined-only "$folder/lib/libfuselage.so" | awk '$2 == "T" { sub("@.*", "", $3); print $3 }' | sort -u)
diff <(echo "$declared") <(echo "$exported")
[ "$(nm -D --defined-only "$folder/lib/libfuselage.so" | awk '$2 != "A" && $3 !~ /^fuselage_/' | wc -l)" -eq 0 ]

# In C11 and in C++, with all warnings.
export LD_LIBRARY_PATH=$folder/lib
cd "$TEST_TMPDIR"
flags=$(sed -n 's/^Cflags: //p; s/^Libs: //p' "$folder/lib/pkgconfig/fuselage.pc" | tr '\n' ' ')
cc -std=c11 -Wall -Wextra -Wpedantic -Werror "$example" $flags -o example
./example "$model" | tee first
grep -Eq '^[^ ]+:( -?[0-9.e+-]+){10}$' first
echo '#include <fuselage.h>
int main() { return fuselage_version()[0] == 0; }' > plain.cc
c++ -Wall -Wextra -Wpedantic -Werror plain.cc $flags -o plain
./plain

# In FP32 too, on oneDNN, a session of one thread has no other.
cat > threads.c <<'EOF'
#include <fuselage.h>
#include <stdlib.h>
int main(int argc, char** argv) {
  fuselage_model* model;
  fuselage_session* session;
  int32_t count;
  if (argc != 2 || fuselage_load(argv[1], &model) || fuselage_prepare(model, NULL, &session)) return 1;
  fuselage_tensor image = *fuselage_session_inputs(session, &count), logits = *fuselage_session_outputs(session, &count);
  image.data = calloc(224 * 224 * 3, 4);
  logits.data = calloc(1000, 4);
  return fuselage_run(session, &image, 1, &logits, 1) ? 1 : system("exit $(ls /proc/$PPID/task | wc -l)") / 256;
}
EOF
cc -std=c11 threads.c $flags -o threads
status=0
./threads "$model" || status=$?
if [ "$status" -ne 1 ]; then echo "found $status threads after a run of one" >&2; exit 1; fi

# A missing file is an error, and no crash.
if ./example nothing.onnx 2> errors; then exit 1; fi
grep -q 'nothing.onnx' errors

if ! command -v pkg-config > /dev/null; then
  echo "pkg-config is not installed: not tried"
else
  [ "$(PKG_CONFIG_PATH=$folder/lib/pkgconfig pkg-config --modversion fuselage)" = \
    "$(sed -n 's/^#define FUSELAGE_VERSION "\(.*\)"$/\1/p' "$header")" ]
fi
if ! command -v cmake > /dev/null; then
  echo "CMake is not installed: not tried"
else
  mkdir project
  cp "$example" project/example.c
  echo 'cmake_minimum_required(VERSION 3.13)
project(example C)
find_package(Fuselage 0.1 REQUIRED)
add_executable(example example.c)
target_link_libraries(example PRIVATE Fuselage::Fuselage)' > project/CMakeLists.txt
  cmake -S project -B build -DCMAKE_PREFIX_PATH="$folder" > cmake.log || { cat cmake.log; exit 1; }
  cmake --build build > cmake.log || { cat cmake.log; exit 1; }
  build/example "$model" > second
  diff first second
  sed -i 's/0\.1 REQUIRED/9.0 REQUIRED/' project/CMakeLists.txt
  if cmake -S project -B other -DCMAKE_PREFIX_PATH="$folder" > cmake.log 2>&1; then exit 1; fi
fi
echo PASS
