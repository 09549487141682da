#!/usr/bin/env bash
# On a machine with a GPU: are the CUDA kernels right, and how fast? Needs nvcc, g++, Python 3 and Abseil; no Bazel, no network.
#   tools/gpu_check.sh                     random shapes and ResNet18's layers against the scalar kernels, bit for bit;
#                                          a table of times; ResNet18 as one CUDA graph
#   tools/gpu_check.sh --batches=1,64      of these batch sizes
#   tools/gpu_check.sh --sanitize          compute-sanitizer over a few cases: memcheck, racecheck, initcheck, synccheck
#   tools/gpu_check.sh --build_only        builds, for sm_90 or --arch
# Options:
#   --arch=sm_90        by default that of the GPU
#   --absl=FOLDER       an unpacked libabsl-dev (dpkg -x), where it is not installed
#   --build=FOLDER      where objects go; by default a temporary folder
# Exit codes: 0 ok, 1 a mismatch or an error, 2 usage, no GPU or something else is missing.
set -euo pipefail
caller=$PWD
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
die() { echo "gpu_check: $*" >&2; exit 2; }

mode=run arch="" absl="" build="" arguments=()
for argument in "$@"; do
  case "$argument" in
    --build_only) mode=build ;;
    --sanitize) mode=sanitize ;;
    --arch=*) arch=${argument#*=} ;;
    --absl=*) absl=$(cd "$caller" && realpath "${argument#*=}") ;;
    --build=*) build=$(cd "$caller" && realpath -m "${argument#*=}") ;;
    --quick|--batches=*) arguments+=("$argument") ;;
    -h|--help) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"; exit 0 ;;
    *) die "unknown argument $argument (see --help)" ;;
  esac
done
cd "$here"

# --- What is here?
nvcc=${CUDA_PATH:-/usr/local/cuda}/bin/nvcc
[ -x "$nvcc" ] || nvcc=$(command -v nvcc) || die "no nvcc: set CUDA_PATH to the CUDA toolkit"
toolkit=$(dirname "$(dirname "$(realpath "$nvcc")")")
command -v g++ >/dev/null || die "no g++"
command -v python3 >/dev/null || die "no python3"
if [ -n "$absl" ]; then
  config=$(find "$absl" -path '*/absl/base/config.h' -print -quit)
  [ -n "$config" ] || die "no Abseil headers below $absl"
  include="-isystem ${config%/absl/base/config.h}"
  libraries=$(find "$absl" -name 'libabsl_*.a')
else
  include=""
  echo '#include "absl/status/statusor.h"' | g++ -std=c++17 -fsyntax-only -xc++ - 2>/dev/null ||
    die "no Abseil: install libabsl-dev, or unpack it (dpkg -x libabsl-dev*.deb FOLDER) and pass --absl=FOLDER"
  libraries=$(find /usr/lib /usr/local/lib -name 'libabsl_*.a' 2>/dev/null || true)
fi
[ -n "$libraries" ] || die "Abseil has headers here, but no libabsl_*.a"
libraries=$(grep -v '_flags\|_test\|_leak_check\|_failure_signal' <<<"$libraries")
if [ -z "$arch" ]; then
  arch=sm_90
  if [ "$mode" != build ]; then
    capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d '.' || true)
    [ -n "$capability" ] || die "nvidia-smi names no GPU; --build_only builds without one"
    arch=sm_$capability
  fi
fi
if [ -z "$build" ]; then
  build=$(mktemp -d)
  trap 'rm -rf "$build"' EXIT
fi
mkdir -p "$build"

# --- What Bazel generates from the lists in kernels/BUILD: "//kernels/int8/add" and, of those that run on CUDA,
# "//kernels/int8/conv2d/cuda:conv2d_cuda". The INT8 kernels, and the others that CUDA has.
mkdir -p "$build/kernels"
register_all() {  # register_all STEM FUNCTION CALLS LABELS...
  local stem=$1 function=$2 calls=$3 label folder
  shift 3
  printf '#include "kernels/core/registry.h"\nnamespace fuselage::kernels {\nvoid %s(KernelRegistry& registry);\n}\n' \
    "$function" > "$build/kernels/$stem.h"
  echo "#include \"kernels/$stem.h\"" > "$build/kernels/$stem.cc"
  for label in "$@"; do
    folder=${label%%:*}
    echo "#include \"$folder/${label##*[:/]}.h\""
  done >> "$build/kernels/$stem.cc"
  echo "void fuselage::kernels::$function(KernelRegistry& registry) {" >> "$build/kernels/$stem.cc"
  for label in "$@"; do
    folder=${label%%:*}
    folder=${folder#kernels/}
    echo "  fuselage::${folder//\//::}::$calls(registry);"
  done >> "$build/kernels/$stem.cc"
  echo "}" >> "$build/kernels/$stem.cc"
}
folders='int8/[a-z0-9_]+'$(sed -nE 's#.*"//kernels/([^/]*)/cuda:.*#|\1#p' kernels/BUILD | tr -d '\n')
labels=$(sed '/reproducible_kernels/,/^)/d' kernels/BUILD | grep -oE "\"//kernels/($folders)(/cuda:[a-z0-9_]+)?\"" |
  tr -d '"' | sed 's|^//||')
register_all register_all RegisterAll Register $(grep -v : <<<"$labels")
register_all register_all_cuda RegisterAllCuda RegisterCuda $(grep : <<<"$labels")

# --- And from the instruction sets of isas.bzl.
mkdir -p "$build/kernels/core"
isa_flags=$(python3 -c 'import sys, types
scope = {"struct": types.SimpleNamespace}
exec(open("kernels/core/isas.bzl").read(), scope)
open(sys.argv[1], "w").write(scope["isas_text"]())
for isa, row in scope["ISAS"].items(): print(isa, *row.copts)' "$build/kernels/core/isas.h")

# --- Compile. The other flags are those of .bazelrc and third_party/cuda/cuda_library.bzl.
common="-std=c++17 -I. -I$build $include"
compile() {  # compile SOURCE: makes $build/SOURCE.o, with / as _.
  local source=$1 object isa options flags=""
  object=$build/$(tr '/' '_' <<<"${source#"$build/"}").o
  while read -r isa options; do
    if [[ "$source" == *_"$isa".cc ]]; then flags=$options; fi
  done <<<"$isa_flags"
  case "$source" in
    *_sm90a.cu) "$nvcc" $common -O3 --fmad=false -Xcompiler=-ffp-contract=off -arch=sm_90a -c "$source" -o "$object" ;;
    *.cu) "$nvcc" $common -O3 --fmad=false -Xcompiler=-ffp-contract=off -arch="$arch" -lineinfo -c "$source" -o "$object" ;;
    *) g++ $common -O2 -ffp-contract=off $flags -isystem "$toolkit/include" -c "$source" -o "$object" ;;
  esac || { echo "gpu_check: $source does not compile" >&2; return 255; }
}
export -f compile
export nvcc arch isa_flags common toolkit build

# kernels/attention multiplies as kernels/reproducible does.
sources=$(find -L ir/base kernels runtime/thread_pool.cc tools/gpu_check -name '*.cc' -o -name '*.cu' |
  grep -E "^(ir/base|kernels/(core(/placement)?|cuda|reproducible|($folders)(/[a-z0-9_/]*)?)|runtime|tools/gpu_check)/[a-z0-9_]+\.c[cu]\$" |
  grep -vE '_(test|bench)\.cc$')
# CUDA sources first: they take longest.
started=$SECONDS
{ grep '\.cu$' <<<"$sources"; grep '\.cc$' <<<"$sources"; ls "$build"/kernels/*.cc; } |
  xargs -P "$(nproc)" -I{} bash -c 'compile {}' || { echo "gpu_check: the build failed" >&2; exit 1; }
libs="$toolkit/lib64"
[ -d "$libs" ] || libs="$toolkit/lib"
# From an archive, so that what only tests need stays out.
rm -f "$build/objects.a"
ar rc "$build/objects.a" "$build"/*.o
g++ -o "$build/gpu_check" "$build/tools_gpu_check_gpu_check.cc.o" -Wl,--start-group "$build/objects.a" $libraries -Wl,--end-group \
  -L"$libs" -lcudart_static -ldl -lrt -lpthread || { echo "gpu_check: linking failed" >&2; exit 1; }
echo "gpu_check: built for $arch in $((SECONDS - started)) s"

case "$mode" in
  build) ;;
  run) "$build/gpu_check" "${arguments[@]}" ;;
  sanitize)
    sanitizer=$toolkit/bin/compute-sanitizer
    [ -x "$sanitizer" ] || sanitizer=$(command -v compute-sanitizer) || die "no compute-sanitizer in $toolkit/bin"
    for tool in memcheck racecheck initcheck synccheck; do
      echo "compute-sanitizer --tool $tool"
      "$sanitizer" --tool "$tool" --error-exitcode 1 "$build/gpu_check" --quick
    done
    ;;
esac
