"""cuda_library: a cc_library whose sources nvcc compiles; without a toolkit, an empty one.

    cuda_library(
        name = "conv2d_cuda",
        srcs = ["conv2d_cuda.cu", "conv2d_cuda_sm90a.cu", "tile.cuh"],
        hdrs = ["conv2d_cuda.h"],
        deps = [":conv2d"],
    )

Each .cu holds code for sm_80, sm_86, sm_89 and sm_90, for sm_100 and sm_120 where the toolkit is 12.8 or later, and PTX of
compute_90 for other GPUs; one that ends in _sm90a.cu holds code for sm_90a only. The arithmetic is that of the rest: no contraction to fused multiply-add, no fast math.
Beside the library there are the filegroups
    <name>_ptxas     what ptxas -v says of each source: registers, spills
    <name>_ptx       PTX of each source, for compute_90 or compute_90a
Without a toolkit a dependent compiles with FUSELAGE_NO_CUDA defined and must not call the library; lists of
libraries to call ask CUDA_IS_CONFIGURED.
"""

load("@local_config_cuda//:defs.bzl", "CUDA_ARCHS", "CUDA_IS_CONFIGURED", "CUDA_VERSION", "NVCC")
load("@rules_cc//cc:defs.bzl", "cc_library")

_ARCHS = CUDA_ARCHS or ["80", "86", "89", "90"]

def _toolkit():
    """[13, 0] of CUDA_VERSION's "Build cuda_13.0.r13.0/compiler.36424714_0"."""
    return [int(number) for number in CUDA_VERSION.partition("cuda_")[2].partition(".r")[0].split(".")]

# Without PTX of their own: that of compute_90 runs on what lies between them, too.
_BLACKWELL = ["100", "120"] if CUDA_IS_CONFIGURED and not CUDA_ARCHS and _toolkit() >= [12, 8] else []

_FLAGS = [
    "-std=c++17",
    "-O3",
    "-lineinfo",
    "--fmad=false",
    "--threads=2",
    "-Xcompiler=-fPIC,-ffp-contract=off,-Wall",
    "-Xptxas=-v",
]

# nvcc mixes what ptxas says with warnings; those are also shown.
_COMPILE = """\
log=$1; shift
"$@" >"$log" 2>&1 || { grep -v '^ptxas info\\|^    [0-9]* bytes stack frame' "$log" >&2; exit 1; }
grep -A 4 'warning' "$log" >&2 || true
"""

def _gencode(archs):
    last = archs[-1]
    further = _BLACKWELL if archs == _ARCHS else []
    return ["-gencode=arch=compute_%s,code=sm_%s" % (a, a) for a in archs[:-1] + further] + \
           ["-gencode=arch=compute_%s,code=[sm_%s,compute_%s]" % (last, last, last)]

def _cuda_objects_impl(ctx):
    compilation = cc_common.merge_cc_infos(cc_infos = [dep[CcInfo] for dep in ctx.attr.deps]).compilation_context

    # nvcc has its own copy of these, and there are two thousand.
    headers = [h for h in compilation.headers.to_list() if h.owner.workspace_name != "local_config_cuda"]
    includes = ["-I."] + ["-I" + path for path in [ctx.genfiles_dir.path] + compilation.includes.to_list()] + \
               ["-I" + path for path in compilation.quote_includes.to_list() if path != "."] + \
               ["-isystem=" + path for path in compilation.system_includes.to_list() if "local_config_cuda" not in path]
    defines = ["-D" + define for define in compilation.defines.to_list() + ctx.attr.local_defines]

    shared = [f for f in ctx.files.srcs if f.extension != "cu"] + ctx.files.hdrs + headers
    objects, logs, ptx = [], [], []
    for source in ctx.files.srcs:
        if source.extension != "cu":
            continue
        base = source.basename[:-len(".cu")]
        archs = ["90a"] if base.endswith("_sm90a") else ctx.attr.archs
        stem = "_%s/%s" % (ctx.label.name, base)
        inputs = depset([source] + shared)
        flags = _FLAGS + includes + defines + [source.path]

        object = ctx.actions.declare_file(stem + ".pic.o")
        log = ctx.actions.declare_file(stem + ".ptxas")
        ctx.actions.run_shell(
            mnemonic = "CudaCompile",
            progress_message = "Compiling %s for %s" % (source.short_path, " ".join(["sm_" + a for a in archs])),
            inputs = inputs,
            outputs = [object, log],
            command = _COMPILE,
            arguments = [log.path, NVCC, "-c", "-o", object.path] + _gencode(archs) + flags,
            env = {"FUSELAGE_CUDA_VERSION": CUDA_VERSION},  # Another toolkit makes another object.
            use_default_shell_env = True,
        )
        objects.append(object)
        logs.append(log)

        text = ctx.actions.declare_file(stem + ".ptx")
        ctx.actions.run(
            mnemonic = "CudaPtx",
            inputs = inputs,
            outputs = [text],
            executable = NVCC,
            arguments = ["-ptx", "-o", text.path, "-arch=compute_" + archs[-1]] + flags,
            env = {"FUSELAGE_CUDA_VERSION": CUDA_VERSION},
            use_default_shell_env = True,
        )
        ptx.append(text)

    return [
        DefaultInfo(files = depset(objects)),
        OutputGroupInfo(ptxas = depset(logs), ptx = depset(ptx)),
    ]

_cuda_objects = rule(
    implementation = _cuda_objects_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".cu", ".cuh", ".h"], mandatory = True),
        "hdrs": attr.label_list(allow_files = [".cuh", ".h"]),
        "deps": attr.label_list(providers = [CcInfo]),
        "archs": attr.string_list(default = _ARCHS),
        "local_defines": attr.string_list(),
    },
)

def cuda_library(name, srcs, hdrs = [], deps = [], archs = _ARCHS, local_defines = [], testonly = False, visibility = None):
    """See the top of this file.

    Args:
      name: of the library.
      srcs: .cu, one compilation each, and the .cuh and .h that they share.
      hdrs: for dependents; those that cc_library includes must be plain C++.
      deps: cc_library or cuda_library.
      archs: compute capabilities, ascending: code for each, PTX of the last.
      local_defines: preprocessor definitions of this library alone.
      testonly: as in cc_library.
      visibility: as in cc_library.
    """
    if not CUDA_IS_CONFIGURED:
        cc_library(
            name = name,
            hdrs = hdrs,
            defines = ["FUSELAGE_NO_CUDA"],
            testonly = testonly,
            visibility = visibility,
            deps = deps,
        )
        return
    objects = name + "_objects"
    cudart = ["@local_config_cuda//:cudart"]
    _cuda_objects(
        name = objects,
        srcs = srcs,
        hdrs = hdrs,
        archs = archs,
        local_defines = local_defines,
        testonly = testonly,
        visibility = ["//visibility:private"],
        deps = deps,
    )
    cc_library(
        name = name,
        srcs = [objects],
        hdrs = hdrs,
        testonly = testonly,
        visibility = visibility,
        deps = deps + cudart,
    )
    for group in ["ptxas", "ptx"]:
        native.filegroup(
            name = "%s_%s" % (name, group),
            srcs = [objects],
            output_group = group,
            testonly = testonly,
            tags = ["manual"],  # Made where a test asks.
            visibility = visibility,
        )

def with_cuda(rule, **attrs):
    """rule(**attrs), only where there is a toolkit."""
    if CUDA_IS_CONFIGURED:
        rule(**attrs)

def cuda_code_test(name, library, fma_from = [], ptx_has = [], ptx_lacks = []):
    """What the compiler made of a cuda_library, on any machine with a toolkit: no register spills, and its PTX.

    Args:
      name: of the test.
      library: a cuda_library.
      ptx_has: extended regular expressions, each of which some line of the PTX must match.
      ptx_lacks: those that no line may match.
      fma_from: the sources whose lines with __fmaf_rn or __builtin_fmaf every fma of f32 must come from; without them
        there is none. See docs/arithmetic.md.
    """
    if not CUDA_IS_CONFIGURED:
        return
    native.sh_test(
        name = name,
        size = "small",
        srcs = ["//third_party/cuda:code_test.sh"],
        args = ["$(rootpaths %s_ptxas)" % library, "$(rootpaths %s_ptx)" % library] +
               ["--fma-from=$(rootpath %s)" % source for source in fma_from] +
               ["'--has=%s'" % pattern for pattern in ptx_has] +
               ["'--lacks=%s'" % pattern for pattern in ptx_lacks],
        data = [library + "_ptxas", library + "_ptx"] + fma_from,
    )

def _require_cuda_impl(ctx):
    if not CUDA_IS_CONFIGURED:
        fail("--config=cuda needs the CUDA toolkit: no nvcc in $CUDA_PATH/bin or /usr/local/cuda/bin. " +
             "Install it or set CUDA_PATH, or build without --config=cuda.")
    return [CcInfo()]

# What everything that --config=cuda selects depends on: an error that says what is missing.
require_cuda = rule(implementation = _require_cuda_impl)
