"""fuselage_harness: the harness as a binary, with somebody's own ops, kernels and passes beside this tree's.

    load("@fuselage//harness:harness.bzl", "fuselage_harness")

    fuselage_harness(
        name = "my_harness",
        passes = {"//my/double_relu": "my::double_relu"},
    )

Each dictionary maps the label of a library to the namespace of its Register: "//my/double_relu" stands for the header
my/double_relu/double_relu.h, which declares void my::double_relu::Register(fuselage::passes::PassRegistry&).
"""

load("@rules_cc//cc:defs.bzl", "cc_binary")

def fuselage_harness(name, passes = {}, ops = {}, kernels = {}, **kwargs):
    """Makes the binary.

    Args:
      name: of the binary.
      passes: libraries whose Register takes a passes::PassRegistry&.
      ops: whose Register takes an ir::OpRegistry&.
      kernels: whose Register takes a kernels::KernelRegistry&.
      **kwargs: more arguments of cc_binary, such as data.
    """
    libraries = {}
    calls = []
    for registry, added in [("ops", ops), ("kernels", kernels), ("passes", passes)]:
        for label, namespace in added.items():
            libraries[label] = True
            calls.append("    %s::Register(library.%s);" % (namespace, registry))
    text = "\n".join(
        ['#include "compiler/library.h"', '#include "harness/cli.h"'] +
        ['#include "%s"' % _header(label) for label in libraries] + [
            "int main(int argc, char** argv) {",
            "  return fuselage::harness::Main(argc, argv, []([[maybe_unused]] fuselage::compiler::Library& library) {",
        ] + calls + [
            "  });",
            "}",
        ],
    )
    native.genrule(
        name = name + "_main",
        outs = [name + "_main.cc"],
        cmd = "cat > $@ <<'END_OF_TEXT'\n%s\nEND_OF_TEXT" % text,
    )
    cc_binary(
        name = name,
        srcs = [name + "_main.cc"],
        malloc = Label("//third_party:tcmalloc"),
        deps = [Label("//compiler"), Label("//harness:cli")] + libraries.keys(),
        **kwargs
    )

def _header(label):
    folder, _, target = label.rpartition("//")[2].partition(":")
    return "%s/%s.h" % (folder, target or folder.rpartition("/")[2])
