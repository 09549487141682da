"""The targets of an operator's folder: library, tests."""

load("@rules_cc//cc:defs.bzl", "cc_library", "cc_test")

def op_library(name, deps = [], test_deps = []):
    """A library of the folder's sources and headers, and a test for each <...>_test.cc.

    Args:
      name: of the folder and the library.
      deps: more dependencies, of all.
      test_deps: more dependencies, of the tests.
    """
    tests = native.glob(["*_test.cc"])
    cc_library(
        name = name,
        srcs = native.glob(["*.cc"], exclude = tests),
        hdrs = native.glob(["*.h"]),
        deps = deps + [
            Label("//ir"),
            Label("//ir/ops/core"),
            Label("//third_party:absl"),
        ],
    )
    for test in tests:
        cc_test(
            name = test[:-len(".cc")],
            size = "small",
            srcs = [test],
            deps = test_deps + [
                ":" + name,
                Label("//ir/ops/core:testing"),
                Label("//third_party:gtest_main"),
            ],
        )
