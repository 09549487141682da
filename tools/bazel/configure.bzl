"""fuselage_configure: what of this machine Fuselage builds with. After fuselage_repositories, whose rules it loads."""

load("//third_party/cuda:cuda_configure.bzl", "cuda_configure")
load("//third_party/javascript:javascript_configure.bzl", "javascript_configure")
load("//third_party/onnx:onnx_configure.bzl", "onnx_configure")
load("//third_party/protobuf:well_known_protos.bzl", "well_known_protos")
load("//tools/aarch64:aarch64_configure.bzl", "aarch64_configure")

def fuselage_configure():
    aarch64_configure(name = "aarch64")
    cuda_configure(name = "local_config_cuda")
    javascript_configure(name = "javascript")
    onnx_configure(name = "onnx_schema")
    well_known_protos(name = "well_known_protos")
