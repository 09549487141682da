"""Brings the system's onnx.proto (Debian's libonnx-dev) in as a source file; only the schema is used, never libonnx."""

def _onnx_configure_impl(repository_ctx):
    schema = "/usr/include/onnx/onnx.proto"
    if not repository_ctx.path(schema).exists:
        fail("%s not found: install libonnx-dev (./bazelw does)" % schema)
    repository_ctx.symlink(schema, "onnx/onnx.proto")
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
