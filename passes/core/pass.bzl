"""The targets of a pass's folder: options, library, text cases, tests."""

load("@rules_cc//cc:defs.bzl", "cc_library", "cc_proto_library", "cc_test")
load("@rules_proto//proto:defs.bzl", "proto_library")
load(":cases.bzl", "pass_case_test")

def pass_library(name, calibrated = False, deps = [], kernels = None, namespace = None, proto_deps = [], test_deps = [], test_size = "small"):
    """A pass from its folder's sources and headers, its options <name>.proto, cases/*.ir and a test for each *_test.cc.

    Args:
      name: of the folder, the library and the proto; <name>_cc_proto are the options in C++.
      calibrated: as in pass_case_test.
      deps: more dependencies, of all.
      kernels: as in pass_case_test.
      namespace: where Register is; fuselage::<name> by default.
      proto_deps: of the options.
      test_deps: more dependencies, of the tests.
      test_size: of the tests.
    """
    proto_library(
        name = name + "_proto",
        srcs = [name + ".proto"],
        deps = proto_deps,
    )
    cc_proto_library(
        name = name + "_cc_proto",
        deps = [":%s_proto" % name],
    )
    tests = native.glob(["*_test.cc"])
    cc_library(
        name = name,
        srcs = native.glob(["*.cc"], exclude = tests + ["*_bench.cc"]),
        hdrs = native.glob(["*.h"]),
        deps = deps + [
            ":%s_cc_proto" % name,
            Label("//ir"),
            Label("//ir/base"),
            Label("//ir/base:hash_map"),
            Label("//ir/match"),
            Label("//passes/core"),
            Label("//third_party:absl"),
        ],
    )
    pass_case_test(
        name = "cases_test",
        cases = native.glob(["cases/*.ir"]),
        calibrated = calibrated,
        kernels = kernels,
        namespaces = [namespace or "fuselage::" + name],
        deps = [":" + name],
    )
    for test in tests:
        cc_test(
            name = test[:-len(".cc")],
            size = test_size,
            srcs = [test],
            deps = test_deps + [
                ":" + name,
                Label("//ir"),
                Label("//ir/ops"),
                Label("//ir/testing"),
                Label("//third_party:absl"),
                Label("//third_party:gtest_main"),
            ],
        )
