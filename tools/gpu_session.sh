#!/usr/bin/env bash
# A session on a machine with a GPU, by programs that were built on another: it needs no Bazel, compiler or network.
#   tools/gpu_session.sh pack [FILE]           here: builds them, and packs them into FILE (gpu_session.tar.xz) with the
#                                              libraries and data that a checkout lacks; --archs=90 has code for that
#                                              architecture alone
#   tools/gpu_session.sh run STAGE FILE OUT    there, in a checkout of the same commit
#   tools/gpu_session.sh gather FILE PROGRAM...   packs these programs, as `pack` does
# A stage takes at most ten minutes (--minutes=N); what becomes of a step does not keep the next ones from running.
#   correctness   every kernel's test on the device, the runtime's, gpu_check's cases and ResNet18 layer by layer
#   timings       compute-sanitizer's four tools over the shapes that find races; the time of every tiling
#   targets       the shipped configs whole, on the CPU and on CUDA: the same bits, and ResNet18 as fast as wanted
#   peers         ResNet18 beside cuDNN's convolutions and PyTorch, where they are (docs/peers.md)
# OUT gets <stage>.md, a table of the steps, <stage>.log, what they printed, and, as `harness merge` makes them of
# runs/*.json, results.json and report.html of all stages so far.
# Exit codes: 0 ok, 1 a step failed or ran out of time, 2 usage, no GPU, or something else is missing.
set -euo pipefail
caller=$PWD
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
die() { echo "gpu_session: $*" >&2; exit 2; }
usage() { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"; }

# --- Before.

# The first samples of a gzipped IDX file (all are copied where there are no more).
first_samples() {  # first_samples FROM TO COUNT
  python3 -c 'import gzip, sys
idx = gzip.open(sys.argv[1]).read()
rank, count = idx[3], int(sys.argv[3])
dims = [int.from_bytes(idx[4 + 4 * i:8 + 4 * i], "big") for i in range(rank)]
count, begin = min(count, dims[0]), 4 + 4 * rank
end = begin + (len(idx) - begin) // dims[0] * count
gzip.open(sys.argv[2], "wb").write(idx[:4] + count.to_bytes(4, "big") + idx[8:begin] + idx[begin:end])' "$@"
}

# The configs' data, as far as they look at it: $limit test images, and the first training images, to calibrate on.
limit=1000
gather_data() {  # gather_data FOLDER
  local images image folder=$1/share/datasets/fashion-mnist
  images=$(find /usr/local/share /usr/share -path '*/datasets/fashion-mnist/*-ubyte.gz' 2>/dev/null) || true
  [ -n "$images" ] || echo "gpu_session: without Fashion-MNIST (dataset-fashion-mnist): configs of images will not run" >&2
  mkdir -p "$folder" "$1/models"
  for image in $images; do first_samples "$image" "$folder/$(basename "$image")" $limit; done
  if [ -f models/bible_kjv.txt ]; then
    cp models/bible_kjv.txt "$1/models/"
  elif ! bible -l80 gen1:1-rev22:21 </dev/null >"$1/models/bible_kjv.txt" 2>/dev/null; then
    echo "gpu_session: without a text (bible-kjv): configs of language models will not run" >&2
  fi
}

# Large programs first: what they have in common is then within reach of the compressor.
gather() {  # gather FILE PROGRAM...
  local archive=$1 folder program
  shift
  folder=$(mktemp -d)
  mkdir "$folder/bin" "$folder/lib"
  for program in "$@"; do strip -o "$folder/bin/$(basename "$program")" "$program" 2>/dev/null ||
    cp "$program" "$folder/bin/"; done
  # All but the C library, which belongs to the machine's kernel and driver.
  { ldd "$@" 2>/dev/null || true; } | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u |
    { grep -vE '/(libc|libm|libdl|librt|libpthread)\.so' || true; } | xargs -r cp -Lt "$folder/lib"
  gather_data "$folder"
  # The harness finds the commit of its build where it finds a checkout's.
  mkdir "$folder/.git"
  { git rev-parse HEAD 2>/dev/null || true; } >"$folder/.git/HEAD"
  (cd "$folder" && { ls -S bin/*; find .git lib share models -type f; } | XZ_OPT=${XZ_OPT:--9} tar -cJf "$archive" -T -)
  rm -rf "$folder"
  echo "gpu_session: $# programs in $archive, $(($(stat -c %s "$archive") >> 20)) MiB"
}

pack() {  # pack FILE
  # By DT_RPATH, which libraries' own libraries are looked for by too.
  local flags=(--config=cuda '--linkopt=-Wl,-rpath,$ORIGIN/../lib,--disable-new-dtags') targets files
  [ -z "$archs" ] || flags+=("--repo_env=CUDA_ARCHS=$archs")
  targets="//harness //tools/gpu_check //runtime/cuda:backend_test
    //tools/peers:prepare //tools/peers:fuselage_worker //tools/peers:cudnn_worker
    //kernels/int8/conv2d/cuda:tiling_bench //kernels/int8/conv2d/cuda:conv2d_cuda_test
    $(./bazelw query 'filter("_device_test$", //kernels/...)')"
  ./bazelw build "${flags[@]}" $targets
  files=$(./bazelw cquery "${flags[@]}" --output=starlark --starlark:expr='"\n".join([f.path for f in target.files.to_list()])' \
    "set($(tr '\n' ' ' <<<"$targets"))")
  gather "$1" $files
}

# --- On the machine.

# Runs a command for at most so many seconds, or what is left of the stage.
step() {  # step NAME SECONDS COMMAND...
  local name=$1 seconds=$2 left=$((deadline - SECONDS)) begun=$SECONDS code=0 what=ok
  shift 2
  [ "$seconds" -le "$left" ] || seconds=$left
  printf '\n=== %s: %s\n' "$name" "$*" >>"$log"
  if [ "$seconds" -le 0 ]; then
    what="no time left"
  else
    timeout --kill-after=5 "$seconds" "$@" >>"$log" 2>&1 </dev/null || code=$?
    case $code in
      0) ;;
      124|137) what="stopped after $seconds s" ;;
      *) what="FAILED: $code" ;;
    esac
  fi
  echo "| $name | $what | $((SECONDS - begun)) |" | tee -a "$table"
  [ "$what" = ok ] || failed=1
  last=$code
}

# The same beside others, whose times nobody asks for; `all_together` waits for them, and tells of them in order.
together=()
beside() {  # beside NAME SECONDS COMMAND...
  local part=$work/together/${#together[@]}
  mkdir -p "$work/together"
  : >"$part.log" >"$part.md"
  (log=$part.log table=$part.md; step "$@" >/dev/null) &
  together+=("$part")
}
all_together() {
  local part
  wait
  for part in "${together[@]}"; do
    cat "$part.log" >>"$log"
    tee -a "$table" <"$part.md"
    grep -q '| ok |' "$part.md" || failed=1
  done
  together=()
}

correctness() {
  local program
  step nvidia-smi 20 nvidia-smi -q
  # The rest first where it finds no device.
  step "gpu_check, a few cases" 120 "$bin/gpu_check" --quick
  [ "$last" -ne 2 ] || die "no CUDA device: $(tail -n 1 "$log")"
  beside backend_test 60 "$bin/backend_test"
  beside "backend_test, twenty times" 60 "$bin/backend_test" --gtest_repeat=20
  for program in "$bin"/*_device_test; do beside "$(basename "$program")" 60 "$program"; done
  beside "conv2d_cuda_test, three times" 200 "$bin/conv2d_cuda_test" --gtest_repeat=3
  all_together
  step "gpu_check, ResNet18" 300 "$bin/gpu_check" --batches=1,64,256
}

timings() {
  local tool sanitizer=${CUDA_PATH:-/usr/local/cuda}/bin/compute-sanitizer
  [ -x "$sanitizer" ] || sanitizer=compute-sanitizer
  for tool in memcheck racecheck initcheck synccheck; do
    beside "$tool, gpu_check" 120 "$sanitizer" --tool "$tool" --error-exitcode 1 "$bin/gpu_check" --quick
    beside "$tool, tilings" 180 "$sanitizer" --tool "$tool" --error-exitcode 1 "$bin/conv2d_cuda_test" \
      '--gtest_filter=*EveryTile*:*Pools*:*PooledStems*'
  done
  all_together
  step tilings 300 "$bin/tiling_bench" 1 64 256
}

# Every variant but the baseline has the bits on CUDA that it has on the CPU.
same_bits() {  # same_bits CPU CUDA
  python3 -c 'import json, sys
cpu, cuda = (json.load(open(path))["variants"][1:] for path in sys.argv[1:])
bits = [(a["name"], b["backend"], a["logits_fingerprint"], b["logits_fingerprint"]) for a, b in zip(cpu, cuda)]
print(bits)
sys.exit(not bits or any(backend != "cuda" or not a or a != b for _, backend, a, b in bits))' "$@"
}

# The last variant takes no longer on the device: median, at the run's first batch size.
meets() {  # meets RESULTS MS
  python3 -c 'import json, sys
m, wanted = json.load(open(sys.argv[1]))["variants"][-1]["measurements"][0], float(sys.argv[2])
ms = m["device_ms"]["median"]
print("batch %s: %.4f ms, %.0f images/s, wanted %.4f ms" % (m["batch"], ms, 1e3 * m["batch"] / ms, wanted))
sys.exit(ms > wanted)' "$@"
}
export -f same_bits meets

# What a run wrote is among what is merged.
keep() {  # keep NAME
  [ ! -f "$work/out/$1/results.json" ] || cp "$work/out/$1/results.json" "$runs/$1.json"
}

# A run of the harness.
harness() {  # harness NAME SECONDS CONFIG FLAGS...
  local name=$1 seconds=$2 config=$3
  shift 3
  step "$name" "$seconds" "$bin/harness" --config="harness/configs/$config.textproto" --limit=$limit \
    --out="$work/out/$name" "$@"
  keep "$name"
}

targets() {
  local batch config
  for batch in 1 64 256; do harness resnet18-$batch 90 resnet18 --backend=cuda --batch=$batch; done
  # With kernels that do not begin before the one ahead of them has ended.
  FUSELAGE_CUDA_OVERLAP=0 harness resnet18-1-apart 90 resnet18 --backend=cuda --batch=1
  step "apart, same bits" 10 bash -c 'same_bits "$@"' same_bits "$runs/resnet18-1.json" "$runs/resnet18-1-apart.json"
  # ms a batch: 65 us; 160 and 200 thousand images a second.
  step "batch 1" 10 bash -c 'meets "$@"' meets "$runs/resnet18-1.json" 0.065
  step "batch 64" 10 bash -c 'meets "$@"' meets "$runs/resnet18-64.json" 0.4
  step "batch 256" 10 bash -c 'meets "$@"' meets "$runs/resnet18-256.json" 1.28
  for config in resnet18 mobilenet_v2 vit llama_dynamic llama llama_mxfp4; do
    harness $config-cpu 60 $config --batch=1
    harness $config-cuda 60 $config --batch=1 --backend=cuda
    step "$config, same bits" 10 bash -c 'same_bits "$@"' same_bits "$runs/$config-cpu.json" "$runs/$config-cuda.json"
  done
  # An image's bytes from the host, by one session and by eight at once.
  harness resnet18-bytes 200 resnet18 --backend=cuda --batch=256 --pixels --streams=8
}

peers() {
  # Its programs lie where Bazel puts them beside the scripts.
  local batch tool=$work/runfiles/tools/peers
  mkdir -p "$tool" "$work/runfiles/harness"
  cp tools/peers/*.py tools/peers/requirements.txt "$tool"
  ln -s "$bin"/{prepare,fuselage_worker,cudnn_worker} "$tool"
  ln -s "$bin/harness" "$work/runfiles/harness"
  for batch in 1 256; do
    step "batch $batch" 290 python3 -B "$tool/peers.py" --config=harness/configs/resnet18.textproto --batches=$batch \
      --threads=1 --contestants="fuselage cuda,cudnn,torch" --out="$work/out/peers-$batch"
    keep "peers-$batch"
  done
}

# The stage's steps as results.json has them (harness/results.proto); of what a step printed the end.
write_steps() {  # write_steps STAGE TABLE LOG FILE
  python3 -c 'import json, sys
stage, table, log, path = sys.argv[1:]
printed = open(log, errors="replace").read()
rows = [line.strip("| \n").split(" | ") for line in open(table).readlines()[2:]]
steps, begins = [], [0]
for name, *_ in rows:
    begins.append(printed.index("\n=== " + name + ": ", begins[-1]) + 1)
for (name, outcome, seconds), begin, end in zip(rows, begins[1:], begins[2:] + [None]):
    steps.append({"stage": stage, "name": name, "outcome": outcome, "seconds": float(seconds),
                  "printed": printed[begin:end].strip()[-30000:]})
json.dump({"status": "complete", "steps": steps}, open(path, "w"))' "$@"
}

run() {  # run STAGE FILE OUT
  local stage=$1 file out runs libraries
  file=$(cd "$caller" && realpath "$2") out=$(cd "$caller" && realpath -m "$3")
  [ -f "$file" ] || die "no $2: tools/gpu_session.sh pack makes it"
  runs=$out/runs
  mkdir -p "$runs"
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  python3 -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2])' "$file" "$work"
  bin=$work/bin log=$out/$stage.log table=$out/$stage.md deadline=$((SECONDS + 60 * minutes)) failed=0 last=0
  printf '| step | | s |\n| --- | --- | --- |\n' | tee "$table"
  : >"$log"
  # cuBLASLt and cuDNN are opened where they are installed, by pip too.
  libraries=$(python3 -c 'import glob, sys
print(":".join(lib for path in sys.path for lib in glob.glob(path + "/nvidia/*/lib")))')
  export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}:$libraries:${CUDA_PATH:-/usr/local/cuda}/lib64
  export FUSELAGE_REQUIRE_GPU=1 CUDA_MODULE_LOADING=EAGER XDG_CACHE_HOME=$work/cache
  # Where the harness looks for data: Debian's folders are below share, the text is no part of a checkout.
  export XDG_DATA_DIRS=$work/share BUILD_WORKSPACE_DIRECTORY=$work
  "$stage"
  write_steps "$stage" "$table" "$log" "$runs/$stage.json"
  timeout 60 "$bin/harness" merge "$out" "$runs"/*.json || failed=1
  exit $failed
}

minutes=10 archs="" arguments=()
for argument in "$@"; do
  case "$argument" in
    --minutes=*) minutes=${argument#*=} ;;
    --archs=*) archs=${argument#*=} ;;
    -h|--help) usage; exit 0 ;;
    -*) die "unknown argument $argument (see --help)" ;;
    *) arguments+=("$argument") ;;
  esac
done
set -- "${arguments[@]}"
cd "$here"
[ "${1:-}" != gather ] || [ $# -ge 3 ] || { usage >&2; exit 2; }
case "${1:-}:$#:${2:-}" in
  pack:[12]:*) pack "$(cd "$caller" && realpath -m "${2:-gpu_session.tar.xz}")" ;;
  gather:*)
    file=$(cd "$caller" && realpath -m "$2")
    shift 2
    cd "$caller"
    programs=$(realpath "$@")
    cd "$here"
    gather "$file" $programs ;;
  run:4:correctness|run:4:timings|run:4:targets|run:4:peers) run "$2" "$3" "$4" ;;
  *) usage >&2; exit 2 ;;
esac
