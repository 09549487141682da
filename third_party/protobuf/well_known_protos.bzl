"""The system's google/protobuf/any.proto as a proto_library. Its C++ form is in libprotobuf already."""

def _well_known_protos_impl(repository_ctx):
    source = "/usr/include/google/protobuf/any.proto"
    if not repository_ctx.path(source).exists:
        fail("%s not found: install libprotobuf-dev (./bazelw does)" % source)
    repository_ctx.symlink(source, "google/protobuf/any.proto")
    repository_ctx.file("BUILD", """\
load("@rules_proto//proto:defs.bzl", "proto_library")

proto_library(
    name = "any_proto",
    srcs = ["google/protobuf/any.proto"],
    visibility = ["//visibility:public"],
)
""")

well_known_protos = repository_rule(
    implementation = _well_known_protos_impl,
    local = True,
)
