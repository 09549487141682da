"""register_all: one function that calls the Register of every folder in a list.

    register_all(
        name = "ops",
        function = "fuselage::ops::RegisterAll",
        argument = "fuselage::ir::OpRegistry",
        argument_header = "ir/op.h",
        libraries = ["//ir/ops/add", "//ir/ops/conv"],
    )

makes the library :ops with the header <package>/register_all.h. Folder, target and namespace agree, so
"//ir/ops/conv" stands for ir/ops/conv/conv.h and fuselage::ops::conv::Register. `namespace` is what replaces
the package's path in front of the folder's name.
"""

load("@rules_cc//cc:defs.bzl", "cc_library")

def register_all(name, function, argument, argument_header, libraries, namespace_of, visibility = None):
    """namespace_of: {label prefix: C++ namespace}, such as {"//ir/ops/": "fuselage::ops::"}."""
    scope, _, short_name = function.rpartition("::")
    includes = []
    calls = []
    for label in sorted(libraries):
        folder = label.lstrip("/").split(":")[0]
        target = folder.split("/")[-1]
        prefix = [p for p in namespace_of if label.startswith(p)]
        if len(prefix) != 1:
            fail("%s: no namespace for it in namespace_of" % label)
        namespace = namespace_of[prefix[0]] + label[len(prefix[0]):].replace("/", "::")
        includes.append('#include "%s/%s.h"' % (folder, target))
        calls.append("  %s::Register(registry);" % namespace)

    guard = "FUSELAGE_%s_REGISTER_ALL_H_" % native.package_name().upper().replace("/", "_")
    header = "\n".join([
        "// Generated from the list in %s/BUILD." % native.package_name(),
        "#ifndef " + guard,
        "#define " + guard,
        '#include "%s"' % argument_header,
        "namespace %s {" % scope,
        "void %s(%s& registry);" % (short_name, argument),
        "}  // namespace " + scope,
        "#endif  // " + guard,
    ])
    source = "\n".join(
        ["// Generated from the list in %s/BUILD." % native.package_name()] +
        ['#include "%s/register_all.h"' % native.package_name()] + includes +
        ["namespace %s {" % scope, "void %s(%s& registry) {" % (short_name, argument)] + calls +
        ["}", "}  // namespace " + scope],
    )
    _write(name + "_header", "register_all.h", header)
    _write(name + "_source", "register_all.cc", source)
    cc_library(
        name = name,
        srcs = ["register_all.cc"],
        hdrs = ["register_all.h"],
        visibility = visibility,
        deps = libraries,
    )

def _write(name, out, text):
    native.genrule(
        name = name,
        outs = [out],
        cmd = "cat > $@ <<'END_OF_TEXT'\n%s\nEND_OF_TEXT" % text.replace("$", "$$"),
    )
