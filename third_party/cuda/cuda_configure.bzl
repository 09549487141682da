"""Finds the CUDA toolkit: $CUDA_PATH, then /usr/local/cuda. Without one, or with CUDA_PATH=none, it leaves stubs.
$CUDA_ARCHS, such as 80,90, are the only architectures to compile for.

The repository it makes has
  //:cudart        headers and the static runtime; an empty library without a toolkit
  //:defs.bzl      CUDA_IS_CONFIGURED (bool); CUDA_PATH, CUDA_VERSION and NVCC (strings, empty without a toolkit);
                   CUDA_ARCHS (strings, ascending; empty: all that cuda_library.bzl knows)
"""

_BUILD = """\
load("@rules_cc//cc:defs.bzl", "cc_library")

package(default_visibility = ["//visibility:public"])

cc_library(
    name = "cudart",
    hdrs = glob(["include/**"], allow_empty = True),
    includes = ["include"],
    linkopts = [{linkopts}],
)
"""

_DEFS = """\
CUDA_IS_CONFIGURED = {configured}
CUDA_PATH = "{path}"
CUDA_VERSION = "{version}"
NVCC = "{nvcc}"
CUDA_ARCHS = {archs}
"""

def _toolkit(repository_ctx):
    wanted = repository_ctx.os.environ.get("CUDA_PATH", "")
    if wanted == "none":
        return ""
    for path in [wanted, "/usr/local/cuda"]:
        if path and repository_ctx.path(path + "/bin/nvcc").exists:
            return path
    return ""

def _version(repository_ctx, path):
    """The last line of nvcc --version: "Build cuda_13.0.r13.0/compiler.36424714_0"."""
    result = repository_ctx.execute([path + "/bin/nvcc", "--version"])
    if result.return_code != 0:
        fail("%s/bin/nvcc --version failed: %s" % (path, result.stderr or result.stdout))
    return result.stdout.strip().split("\n")[-1]

def _archs(repository_ctx):
    archs = [arch for arch in repository_ctx.os.environ.get("CUDA_ARCHS", "").split(",") if arch]
    for arch in archs:
        if not arch.isdigit():
            fail("CUDA_ARCHS=%s: want numbers, such as 80,90" % ",".join(archs))
    return sorted(archs, key = int)

def _cuda_configure_impl(repository_ctx):
    path = _toolkit(repository_ctx)
    linkopts = []
    if path:
        repository_ctx.symlink(path + "/include", "include")
        linkopts = ["-L" + path + "/lib64", "-lcudart_static", "-ldl", "-lrt", "-lpthread"]
    repository_ctx.file("BUILD", _BUILD.format(linkopts = ", ".join(["\"%s\"" % o for o in linkopts])))
    repository_ctx.file("defs.bzl", _DEFS.format(
        configured = bool(path),
        path = path,
        version = _version(repository_ctx, path) if path else "",
        nvcc = path + "/bin/nvcc" if path else "",
        archs = repr(_archs(repository_ctx)),
    ))

cuda_configure = repository_rule(
    implementation = _cuda_configure_impl,
    environ = ["CUDA_ARCHS", "CUDA_PATH"],
    local = True,
)
