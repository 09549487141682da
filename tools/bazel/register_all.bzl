"""register_all: one function that calls the Register of every folder in a list.

    register_all(
        name = "ops",
        function = "fuselage::ops::RegisterAll",
        argument = "fuselage::ir::OpRegistry",
        argument_header = "ir/op.h",
        libraries = ["//ir/ops/add", "//ir/ops/conv"],
    )

makes the library :ops with the header <package>/register_all.h. Folder, target and namespace agree, so
"//ir/ops/conv" stands for ir/ops/conv/conv.h and fuselage::ops::conv::Register; "//kernels/int8/add:add_cuda" for
kernels/int8/add/add_cuda.h and a function of the namespace that //kernels/int8/add has.

register_files: the same of every file of a folder, within one library.

    register_files(
        name = "register_converters",
        function = "fuselage::onnx::RegisterAll",
        argument = "fuselage::onnx::Converters",
        argument_header = "frontend/onnx/converters.h",
        files = glob(["converters/*.cc"]),
        namespace = "fuselage::onnx::converters",
    )

makes register_converters.cc; "converters/conv.cc" stands for fuselage::onnx::converters::conv::Register, which that file
defines and nobody else calls. The library has both among its sources, and argument_header declares the function.
"""

load("@rules_cc//cc:defs.bzl", "cc_library")

def register_all(
        name,
        function,
        argument,
        argument_header,
        libraries,
        namespace_of,
        calls_function = "Register",
        stem = "register_all",
        linked_as = "",
        testonly = False,
        parts = None,
        visibility = None):
    """Makes the library.

    Args:
      name: of the library.
      function: qualified name of the function to generate.
      argument: type of what it registers with.
      argument_header: where that type is declared.
      libraries: labels of those to register.
      namespace_of: {label prefix: C++ namespace}, such as {"//ir/ops/": "fuselage::ops::"}.
      calls_function: of each library.
      stem: of the generated files' names.
      linked_as: what follows the libraries' names in those of the targets to link, if these are others.
      testonly: as in cc_library.
      parts: name of a further function, which gives each library's function with its qualified name.
      visibility: as in cc_library.
    """
    scope, _, short_name = function.rpartition("::")
    includes = []
    calls = []
    names = []
    for label in sorted(libraries):
        folder, _, target = label.lstrip("/").partition(":")
        target = target or folder.split("/")[-1]
        prefix = [p for p in namespace_of if label.startswith(p)]
        if len(prefix) != 1:
            fail("%s: no namespace for it in namespace_of" % label)
        namespace = namespace_of[prefix[0]] + folder[len(prefix[0]) - len("//"):].replace("/", "::")
        includes.append('#include "%s/%s.h"' % (folder, target))
        names.append("%s::%s" % (namespace, calls_function))
        calls.append("  %s(registry);" % names[-1])

    guard = "FUSELAGE_%s_%s_H_" % (native.package_name().upper().replace("/", "_"), stem.upper())
    part_of = "std::vector<std::pair<const char*, void (*)(%s&)>> %s()" % (argument, parts)
    header = "\n".join([
        "// Generated from the list in %s/BUILD." % native.package_name(),
        "#ifndef " + guard,
        "#define " + guard,
        "#include <utility>",
        "#include <vector>",
        '#include "%s"' % argument_header,
        "namespace %s {" % scope,
        "void %s(%s& registry);" % (short_name, argument),
    ] + ([part_of + ";"] if parts else []) + [
        "}  // namespace " + scope,
        "#endif  // " + guard,
    ])
    source = "\n".join(
        ["// Generated from the list in %s/BUILD." % native.package_name()] +
        ['#include "%s/%s.h"' % (native.package_name(), stem)] + includes +
        _definition(function, argument, calls) +
        (["namespace %s {" % scope, part_of + " {", "  return {"] +
         ['      {"%s", %s},' % (n, n) for n in names] + ["  };", "}", "}  // namespace " + scope] if parts else []),
    )
    _write(name + "_header", stem + ".h", header)
    _write(name + "_source", stem + ".cc", source)
    cc_library(
        name = name,
        srcs = [stem + ".cc"],
        hdrs = [stem + ".h"],
        visibility = visibility,
        testonly = testonly,
        deps = [label + linked_as for label in libraries] + ["//" + argument_header.rpartition("/")[0]],
    )

def register_files(name, function, argument, argument_header, files, namespace):
    """Makes <name>.cc.

    Args:
      name: of the source.
      function: qualified name of the function to generate.
      argument: type of what it registers with.
      argument_header: where that type and the function are declared.
      files: those to register, from the package.
      namespace: of which each file's is a part.
    """
    namespaces = [namespace + "::" + file.rpartition("/")[2][:-len(".cc")] for file in sorted(files)]
    _write(name + "_source", name + ".cc", "\n".join(
        ["// Generated from the files that %s/BUILD finds." % native.package_name(), '#include "%s"' % argument_header] +
        ["namespace %s { void Register(%s& registry); }" % (n, argument) for n in namespaces] +
        _definition(function, argument, ["  %s::Register(registry);" % n for n in namespaces]),
    ))

def _definition(function, argument, calls):
    scope, _, short_name = function.rpartition("::")
    return (["namespace %s {" % scope, "void %s([[maybe_unused]] %s& registry) {" % (short_name, argument)] + calls +
            ["}", "}  // namespace " + scope])

def _write(name, out, text):
    native.genrule(
        name = name,
        outs = [out],
        cmd = "cat > $@ <<'END_OF_TEXT'\n%s\nEND_OF_TEXT" % text.replace("$", "$$"),
    )
