"""The targets of a kernel's cuda folder: library, tests."""

load("@local_config_cuda//:defs.bzl", "CUDA_IS_CONFIGURED")
load("@rules_cc//cc:defs.bzl", "cc_library", "cc_test")
load("//third_party/cuda:cuda_library.bzl", "cuda_code_test", "cuda_library", "with_cuda")

# The sources whose fused multiply-adds compiled kernels have.
FMA_FROM = [
    "//ir/base:attention_weight.h",
    "//ir/base:elementwise_math.h",
    "//kernels/cuda:arithmetic.h",
]

def cuda_kernel(
        name,
        hdrs = [],
        code_deps = [],
        deps = [],
        kernel_deps = [],
        test_deps = [],
        ptx_has = [],
        fma = False):
    """CUDA kernels from <name>.cu, which launches them, <name>.cc, which registers them, <name>.h and <name>_test.cc.

    <name>: the library; empty without a toolkit. <name>_test: the test, in the emulation on the host.
    <name>_device_test: the same on a device. <name>_code_test: what the compiler made of the .cu.

    Args:
      name: of the library and the files.
      hdrs: further headers of the library.
      code_deps: of the .cu; light ones, since nvcc reads them five times.
      deps: of the .cc.
      kernel_deps: other libraries that this macro made, whose kernels the .cc uses.
      test_deps: of the tests.
      ptx_has: see cuda_code_test.
      fma: does the arithmetic have fused multiply-adds?
    """
    deps = deps + code_deps + [
        "//ir/base",
        "//kernels/core",
        "//kernels/cuda",
        "//kernels/cuda:kernel",
        "//third_party:absl",
    ]
    cuda_library(
        name = name + "_code",
        srcs = [name + ".cu"],
        hdrs = [name + ".h"],
        visibility = ["//visibility:private"],
        deps = code_deps + ["//kernels/cuda"],
    )
    cc_library(
        name = name,
        srcs = [name + ".cc"] if CUDA_IS_CONFIGURED else [],
        hdrs = [name + ".h"] + hdrs,
        deps = deps + kernel_deps + [":%s_code" % name, "//kernels/cuda:device"],
    )

    test_deps = test_deps + deps + ["//kernels/core/testing", "//third_party:gtest_main"]

    # The .cu as plain C++.
    native.genrule(
        name = name + "_as_cc",
        testonly = True,
        outs = [name + "_emulated.cc"],
        cmd = "echo '#include \"%s/%s.cu\"' > $@" % (native.package_name(), name),
    )
    cc_library(
        name = name + "_emulated",
        testonly = True,
        srcs = [
            name + ".cc",
            name + "_emulated.cc",
        ],
        hdrs = [name + ".h"] + hdrs,
        copts = ["-O3"],  # Much of the emulation is inlined here.
        textual_hdrs = [name + ".cu"],
        deps = deps + [dep + "_emulated" for dep in kernel_deps] + ["//kernels/cuda/testing:emulated"],
    )
    cc_test(
        name = name + "_test",
        size = "small",
        srcs = [name + "_test.cc"],
        deps = test_deps + [":%s_emulated" % name, "//kernels/cuda/testing:emulated"],
    )
    with_cuda(
        cc_test,
        name = name + "_device_test",
        size = "small",
        srcs = [name + "_test.cc"],
        deps = test_deps + [":" + name, "//kernels/cuda/testing:on_device"],
    )
    cuda_code_test(
        name = name + "_code_test",
        library = ":%s_code" % name,
        fma_from = FMA_FROM if fma else [],
        ptx_has = ptx_has,
        ptx_lacks = [
            "\\.satfinite",
            "\\.ftz",
            "\\.(approx|full)",
            "(ld|st)\\.local",
        ],
    )
