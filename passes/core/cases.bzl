"""pass_case_test: runs the text cases (ir/testing/text_cases.h) of a pass's folder."""

load("@rules_cc//cc:defs.bzl", "cc_test")

def pass_case_test(name, cases, deps, namespaces, kernels = None, calibrated = False):
    """One gtest for each case of the files.

    Args:
      name: of the test.
      cases: the files.
      deps: the passes that the cases' steps name, such as ["//passes/conv_bn"].
      namespaces: their namespaces, such as ["fuselage::conv_bn"].
      kernels: a label with RegisterAll(KernelRegistry&), for passes that ask for kernels: "//kernels:for_tests".
      calibrated: whether the passes ask for a runner: it gives seeded samples.
    """
    headers = ["%s/%s.h" % (_folder(d), _folder(d).split("/")[-1]) for d in deps]
    lines = ['#include "%s"' % h for h in headers] + ['#include "passes/core/case_runner.h"']
    if kernels:
        lines.append('#include "kernels/register_all.h"')
    if calibrated:
        lines.append('#include "passes/quantize/seeded_runner.h"')
    lines += [
        "int main(int argc, char** argv) {",
        "  fuselage::passes::PassRegistry passes;",
    ] + ["  %s::Register(passes);" % n for n in namespaces] + [
        "  fuselage::passes::PassEnvironment environment;",
    ]
    if kernels:
        lines += [
            "  fuselage::kernels::KernelRegistry kernels;",
            "  fuselage::kernels::RegisterAll(kernels);",
            "  environment.kernels = &kernels;",
        ]
    if calibrated:
        lines += [
            "  fuselage::quantize::SeededRunner runner;",
            "  environment.runner = &runner;",
        ]
    lines += [
        "  return fuselage::passes::RunCases(argc, argv, passes, environment);",
        "}",
    ]
    native.genrule(
        name = name + "_main",
        outs = [name + "_main.cc"],
        cmd = "cat > $@ <<'END_OF_TEXT'\n%s\nEND_OF_TEXT" % "\n".join(lines),
        testonly = True,
    )
    cc_test(
        name = name,
        srcs = [name + "_main.cc"],
        args = ["$(location %s)" % c for c in cases],
        data = cases,
        deps = deps + [Label("//passes/core:case_runner")] + ([kernels] if kernels else []) +
               ([Label("//passes/quantize:seeded_runner")] if calibrated else []),
        size = "small",
    )

def _folder(label):
    if label.startswith(":"):
        return native.package_name()
    return label.rpartition("//")[2].split(":")[0]
