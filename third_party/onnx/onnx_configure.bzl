"""Brings the system's onnx.proto (Debian's libonnx-dev) in as a source file; only the schema is used, never libonnx.

Without its option LITE_RUNTIME: frontend/onnx/wire.cc asks the messages' descriptors. In a package of our own: protobuf
takes a name once in a process, and libonnx, which PyTorch loads, has taken "onnx" (and the file onnx/onnx-ml.proto).
"""

def _onnx_configure_impl(repository_ctx):
    schema = "/usr/include/onnx/onnx.proto"
    if not repository_ctx.path(schema).exists:
        fail("%s not found: install libonnx-dev (./bazelw does)" % schema)
    text = repository_ctx.read(schema).replace("option optimize_for = LITE_RUNTIME;", "")
    text = text.replace("\npackage onnx;\n", "\npackage fuselage.onnx.schema;\n")
    repository_ctx.file("onnx/onnx.proto", text, executable = False)
    repository_ctx.file("BUILD", """\
load("@rules_cc//cc:defs.bzl", "cc_proto_library")
load("@rules_proto//proto:defs.bzl", "proto_library")

proto_library(
    name = "onnx_proto",
    srcs = ["onnx/onnx.proto"],
)

cc_proto_library(
    name = "onnx_cc_proto",
    visibility = ["//visibility:public"],
    deps = [":onnx_proto"],
)
""")

onnx_configure = repository_rule(
    implementation = _onnx_configure_impl,
    local = True,
)
