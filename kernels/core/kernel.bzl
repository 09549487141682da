"""The targets of a kernel's folder: library, variants by instruction set, test, benchmark."""

load("@rules_cc//cc:defs.bzl", "cc_library", "cc_test")
load(":isas.bzl", "AVX2", "ISAS")

# Options for sources that leave loops to the vectorizer: no result depends on traps or errno. GCC's threaded jumps make
# a clamp and what is computed of it three paths, and these a compare and a blend each.
VECTORIZE = ["-O3", "-fno-math-errno", "-fno-trapping-math"] + select({
    "//kernels/core:clang": [],
    "//conditions:default": ["-fno-thread-jumps"],
})

# For nests of loops, whose outer one GCC 12 would rather unroll than keep vectors of the inner one.
VECTORIZE_INNERMOST = VECTORIZE + select({
    "//kernels/core:clang": [],
    "//conditions:default": ["-fno-loop-unroll-and-jam"],
})

# GCC keeps what it has no general register for in vector registers, and the moves take the place of products.
_NO_VECTOR_SPILLS = select({
    "//kernels/core:clang": [],
    "//conditions:default": ["-mtune-ctrl=^general_regs_sse_spill"],
})

_X86 = "@platforms//cpu:x86_64"

def x86_only(sources):
    """Sources for x86: none where another architecture is built for."""
    return select({_X86: sources, "//conditions:default": []})

def isa_library(name, isa, srcs, deps = [], copts = [], emulated_deps = []):
    """Sources for one instruction set of x86; on other architectures an empty library.

    <name>: compiled with the set's options, and linked into every program but those that leave the set out, which know it
    by its tag. <name>_symbols_test: it defines no weak function, since the linker may
    choose that copy for code that runs on every machine. For all but avx2 also <name>_emulated, for tests: the same
    sources through SIMDe (avx512.h) and with emulated tiles (amx.h).

    Args:
      name: of the library.
      isa: a key of ISAS.
      srcs: sources, and headers that they share with the kernel's library.
      deps: headers may come from here; see above what must not.
      copts: further options.
      emulated_deps: more dependencies of <name>_emulated.
    """
    cc_library(
        name = name,
        srcs = x86_only(srcs),
        copts = ISAS[isa].copts + _NO_VECTOR_SPILLS + ["-DFUSELAGE_ISA_SOURCE"] + copts,
        tags = ["isa=" + isa],
        deps = deps + [Label("//kernels/core")],
        alwayslink = True,  # Tables refer to it weakly (variant.h).
    )
    native.sh_test(
        name = name + "_symbols_test",
        size = "small",
        srcs = [Label("//kernels/core/testing:isa_symbols_test.sh")],
        args = ["$(locations :%s)" % name],
        data = [":" + name],
        target_compatible_with = [_X86],
    )
    if ISAS[isa].emulated:
        cc_library(
            name = name + "_emulated",
            testonly = True,
            srcs = srcs if ISAS[isa].emulated_anywhere else x86_only(srcs),
            # With AVX2 SIMDe's loops become a few instructions each, which compile four times as fast.
            copts = ISAS[isa].emulated + x86_only(AVX2),
            deps = deps + emulated_deps + [Label("//kernels/core"), Label("//third_party:simde")],
        )

def bench(actual):
    """`bench`: what `bazel run <folder>:bench` runs in every kernel's folder.

    Args:
      actual: the benchmark.
    """
    native.alias(
        name = "bench",
        testonly = True,
        actual = actual,
        tags = ["manual"],
    )

def kernel_library(
        name,
        srcs = [],
        copts = [],
        isa_hdrs = [],
        isa_copts = [],
        deps = [],
        emulated_deps = [],
        test_deps = [],
        bench_deps = []):
    """One kernel from the files of its folder: <name>.h, <name>_test.cc and what there is of variants.h, <name>.cc,
    <name>_<isa>.cc for the instruction sets, and <name>_bench.cc, which `bench` stands for.

    Args:
      name: of the folder, the library and the files.
      srcs: more sources of the library.
      copts: options for the library, which the instruction sets' files do not have.
      isa_hdrs: headers that the library and the instruction sets' files share.
      isa_copts: further options for the latter.
      deps: more dependencies, of all.
      emulated_deps: more dependencies of what is emulated.
      test_deps: more dependencies, of the test.
      bench_deps: more dependencies, of the benchmark.
    """
    isas = [isa for isa in ISAS if native.glob(["%s_%s.cc" % (name, isa)])]
    for isa in isas:
        isa_library(
            name = name + "_" + isa,
            isa = isa,
            srcs = [name + ".h", name + "_" + isa + ".cc"] + isa_hdrs,
            copts = isa_copts,
            emulated_deps = emulated_deps,
            deps = deps,
        )
    cc_library(
        name = name,
        srcs = native.glob([name + ".cc"]) + srcs + isa_hdrs,
        hdrs = [name + ".h"] + native.glob(["variants.h"]),
        copts = copts,
        deps = deps + [
            Label("//ir/base"),
            Label("//kernels/core"),
            Label("//third_party:absl"),
        ] + [":%s_%s" % (name, isa) for isa in isas],
    )
    cc_test(
        name = name + "_test",
        size = "small",
        srcs = [name + "_test.cc"],
        deps = deps + [
            ":" + name,
            Label("//kernels/core"),
            Label("//kernels/core/testing"),
            Label("//third_party:gtest_main"),
        ] + test_deps + [":%s_%s_emulated" % (name, isa) for isa in isas if ISAS[isa].emulated],
    )

    if native.glob([name + "_bench.cc"]):
        # As a test it only shows that it runs; measure with: bazel run <folder>:bench -- --benchmark_min_time=1
        bench(":%s_bench" % name)
        cc_test(
            name = name + "_bench",
            size = "small",
            srcs = [name + "_bench.cc"],
            args = ["--benchmark_min_time=0.001"],
            deps = deps + [
                ":" + name,
                Label("//kernels/core/testing"),
                Label("//kernels/core/testing:peak"),
                Label("//third_party:benchmark_main"),
            ] + bench_deps,
        )
