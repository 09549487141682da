#!/usr/bin/env bash
# gpu_session_test.sh GPU_SESSION_SH HARNESS [PROGRAM...]: what a session makes of programs that pass, fail and hang; and
# real ones where there is no GPU.
set -euo pipefail
session=$PWD/$1
harness=$(realpath "$2")
shift 2
programs=${1:+$(realpath "$@")}
cd "$TEST_TMPDIR"
export XZ_OPT=-0 CUDA_PATH=$PWD/nowhere
fail() { echo "$*" >&2; exit 1; }
wants() { grep -qF -- "$2" "$1" || { cat "$1" >&2; fail "$1 lacks: $2"; }; }
exits() {  # exits CODE COMMAND...
  local code=0 wanted=$1
  shift
  "$@" >said 2>&1 || code=$?
  [ $code -eq "$wanted" ] || { cat said >&2; fail "exit code $code, wanted $wanted: $*"; }
}

mkdir stubs
stub() { printf '#!/usr/bin/env bash\n%s\n' "$2" >"stubs/$1"; chmod +x "stubs/$1"; }
stub gpu_check 'echo "checked $*"'
stub backend_test 'echo "$FUSELAGE_REQUIRE_GPU"; [ $# -gt 0 ] || exit 3'
stub add_cuda_device_test 'sleep 600'
stub conv2d_cuda_test 'true'
stub tiling_bench 'true'
# A variant with the bits of its config, timed at its batch: 0.05 ms, and a hundred times that at 64.
# Results are merged, and drawn, by the real one.
stub harness 'case "$1" in merge|report) exec '"$harness"' "$@" ;; esac
for argument; do eval "${argument#--}" 2>/dev/null; done
mkdir -p "$out"
config=$(basename "$config" .textproto)
bits=$config; [ "$config$backend" != vitcuda ] || bits=other
variant="{\"name\": \"int8\", \"backend\": \"$backend\", \"logits_fingerprint\": \"$bits\", \"measurements\":
  [{\"batch\": $batch, \"device_ms\": {\"median\": $([ $batch = 64 ] && echo 5 || echo 0.05)}}]}"
machine="{\"cpu\": \"one\", \"git_commit\": \"$(cat "$BUILD_WORKSPACE_DIRECTORY/.git/HEAD")\"}"
echo "{\"status\": \"complete\", \"environment\": $machine, \"variants\": [{}, $variant]}" >"$out/results.json"'
# Of the peers ours takes part, and takes a microsecond.
stub prepare 'mkdir -p "$1"; echo "{\"status\": \"complete\", \"variants\": [{\"max_abs_error\": null, \"measurements\": []}]}" >"$1/results.json"'
stub fuselage_worker 'echo ready this sm_90
while read -r command runs; do
  [ "$command" = outputs ] && echo || printf "1000 %.0s" $(seq "$runs"); echo
done'
stub cudnn_worker 'echo error no CUDA device; exit 1'
exits 0 "$session" gather stubs.tar.xz stubs/*

exits 1 "$session" run correctness stubs.tar.xz out --minutes=0
wants out/correctness.md "| gpu_check, a few cases | no time left | 0 |"
sed -i 's/sleep 600/exit 137/' stubs/add_cuda_device_test
exits 0 "$session" gather stubs.tar.xz stubs/*
exits 1 "$session" run correctness stubs.tar.xz out
wants out/correctness.md "| gpu_check, a few cases | ok |"
wants out/correctness.md "| backend_test | FAILED: 3 |"
wants out/correctness.md "| backend_test, twenty times | ok |"
wants out/correctness.md "| add_cuda_device_test | stopped after 60 s |"
wants out/correctness.md "| gpu_check, ResNet18 | ok |"
wants out/correctness.log "checked --batches=1,64,256"

exits 1 "$session" run timings stubs.tar.xz out
wants out/timings.md "| racecheck, tilings | FAILED: 127 |"  # There is no compute-sanitizer here.
wants out/timings.md "| tilings | ok |"

exits 1 "$session" run targets stubs.tar.xz out
wants out/targets.md "| batch 1 | ok |"
wants out/targets.md "| batch 64 | FAILED: 1 |"
wants out/targets.log "batch 1: 0.0500 ms, 20000 images/s, wanted 0.0650 ms"
wants out/targets.md "| apart, same bits | ok |"
wants out/targets.log "batch 64: 5.0000 ms, 12800 images/s, wanted 0.4000 ms"
wants out/targets.md "| llama_mxfp4, same bits | ok |"
wants out/targets.md "| vit, same bits | FAILED: 1 |"
wants out/runs/llama-cuda.json '"llama"'

exits 0 "$session" run peers stubs.tar.xz out
wants out/peers.log "cudnn int8 convolutions does not take part: no CUDA device"
wants out/runs/peers-256.json '"name": "fuselage cuda int8"'
sed -i 's/ready/error no CUDA device/' stubs/fuselage_worker
exits 0 "$session" gather stubs.tar.xz stubs/*
exits 1 "$session" run peers stubs.tar.xz out
wants out/peers.md "| batch 1 | FAILED: 3 |"
wants out/peers.log "nobody takes part"

# All stages are in one page.
python3 -c 'import json
results = json.load(open("out/results.json"))
runs = {run["name"]: run["results"] for run in results["runs"]}
steps = {(step["stage"], step["name"]): step for step in results["steps"]}
assert len(runs) == 19 and "resnet18-bytes" in runs and runs["vit-cuda"]["variants"][1]["logits_fingerprint"] == "other", runs.keys()
assert {stage for stage, _ in steps} == {"correctness", "timings", "targets", "peers"}, steps.keys()
assert steps["correctness", "gpu_check, ResNet18"]["printed"].endswith("checked --batches=1,64,256"), steps
assert steps["targets", "batch 64"]["outcome"] == "FAILED: 1", steps
assert "batch 64: 5.0000 ms" in steps["targets", "batch 64"]["printed"], steps'
wants out/report.html "<title>"
sed 's/"one"/"another"/' out/runs/vit-cpu.json >out/runs/elsewhere.json
exits 1 "$session" run timings stubs.tar.xz out --minutes=0
wants said 'found cpu "one", wanted "another" as in elsewhere'

exits 2 "$session" run targets missing.tar.xz out
wants said "no missing.tar.xz"
exits 2 "$session" run no_such_stage stubs.tar.xz out

[ -n "$programs" ] || exit 0
if [ -e /dev/nvidia0 ]; then exit 0; fi
exits 0 "$session" gather programs.tar.xz $programs
exits 2 "$session" run correctness programs.tar.xz out
wants said "no CUDA device"
