"""fuselage_model: a network as a cc_library, with its weights, that needs no file and no compiler when it runs.

    load("@fuselage//harness/model:fuselage_model.bzl", "fuselage_model")

    fuselage_model(
        name = "resnet18",
        config = "resnet18.textproto",
        data = ["resnet18.onnx"],
    )

makes the library :resnet18 with the header <package>/resnet18.h. docs/embedding.md#without-the-compiler has the rest.
"""

load("@rules_cc//cc:defs.bzl", "cc_library")
load("//kernels/core:isas.bzl", "ISAS")
load("//tools/bazel:copts.bzl", "SMALL")
load("//tools/aarch64:emulator.bzl", "EMULATOR")

def _sources_impl(ctx):
    name = ctx.attr.network
    model = ctx.file.model
    if ctx.file.config or not model.basename.endswith(".fuse"):
        compiled = ctx.actions.declare_file(name + ".fuse")
        flags = ["--out=$out", "--pack=scalar", "--no_cache"]
        folder = "."
        if ctx.file.config:
            flags.append("--config=" + ctx.file.config.basename)
            folder = ctx.file.config.dirname or "."
        if model:
            flags.append("--model=$PWD/" + model.path)
        ctx.actions.run_shell(
            outputs = [compiled],
            inputs = ctx.files.data + ctx.files.config + ctx.files.model,
            tools = [ctx.attr.harness[DefaultInfo].files_to_run],
            # Names in a config are those of files in its runfiles or in the folder where the program starts.
            command = " && ".join([
                "out=$PWD/%s harness=$PWD/%s" % (compiled.path, ctx.executable.harness.path),
                "set -- %s" % " ".join(["\"%s\"" % flag for flag in flags]),
                "cd " + folder,
                "%s$harness compile \"$@\" >$out.log 2>&1 || { cat $out.log >&2; exit 1; }" % ctx.attr.emulator,
            ]),
            mnemonic = "FuselageCompile",
            progress_message = "Compile %s" % ctx.label,
        )
        model = compiled
    header, source, weights = [ctx.actions.declare_file(name + suffix) for suffix in [".h", ".cc", ".weights"]]
    ctx.actions.run_shell(
        outputs = [header, source, weights],
        inputs = [model],
        tools = [ctx.attr.generate[DefaultInfo].files_to_run],
        command = ctx.attr.emulator + "\"$@\"",
        arguments = [ctx.executable.generate.path, model.path, name, str(ctx.attr.batch), "/".join([part for part in [ctx.label.package, header.basename] if part])] +
                    [file.path for file in [header, source, weights]] + ctx.attr.isas,
        mnemonic = "FuselageGenerate",
        progress_message = "Generate %s" % ctx.label,
    )
    return [
        DefaultInfo(files = depset([model]), runfiles = ctx.runfiles([model])),
        OutputGroupInfo(header = depset([header]), source = depset([source]), weights = depset([weights])),
    ]

_IsaLibraries = provider("Which isa_library is for which instruction set.", fields = ["libraries"])

def _isa_libraries_impl(target, ctx):
    isas = [tag[len("isa="):] for tag in ctx.rule.attr.tags if tag.startswith("isa=")]
    return [_IsaLibraries(libraries = depset(
        [struct(label = target.label, isa = isa) for isa in isas],
        transitive = [dep[_IsaLibraries].libraries for dep in getattr(ctx.rule.attr, "deps", []) if _IsaLibraries in dep],
    ))]

_isa_libraries = aspect(implementation = _isa_libraries_impl, attr_aspects = ["deps"])

def _kernels_impl(ctx):
    wanted = {}
    for _ in ISAS:  # Once for each step of what includes what, at most.
        for isa in ctx.attr.isas + wanted.keys():
            for part in isa.split("+"):
                wanted.update({name: True for name in [part] + (ISAS[part].includes if part in ISAS else [])})
    cc_info = cc_common.merge_cc_infos(cc_infos = [dep[CcInfo] for dep in ctx.attr.deps])
    if not wanted:
        return [cc_info]
    left_out = {}
    for dep in ctx.attr.deps:
        left_out.update({found.label: True for found in dep[_IsaLibraries].libraries.to_list() if found.isa not in wanted})
    inputs = cc_info.linking_context.linker_inputs.to_list()
    return [CcInfo(
        compilation_context = cc_info.compilation_context,
        linking_context = cc_common.create_linking_context(
            linker_inputs = depset([i for i in inputs if i.owner not in left_out], order = "topological"),
        ),
    )]

# What a generated source links: all of `deps` but code for other instruction sets than `isas`; of none, for all.
_kernels = rule(
    implementation = _kernels_impl,
    attrs = {
        "deps": attr.label_list(aspects = [_isa_libraries], providers = [CcInfo]),
        "isas": attr.string_list(),
    },
)

_sources = rule(
    implementation = _sources_impl,
    attrs = {
        "batch": attr.int(),
        "config": attr.label(allow_single_file = [".textproto"]),
        "data": attr.label_list(allow_files = True),
        "emulator": attr.string(doc = "What runs the tools, which are of the target's architecture: built once for all."),
        "generate": attr.label(default = "//compiler/standalone:generate", executable = True, cfg = "target"),
        "harness": attr.label(default = "//harness", executable = True, cfg = "target"),
        "isas": attr.string_list(),
        "model": attr.label(allow_single_file = True),
        "network": attr.string(mandatory = True),
    },
)

def fuselage_model(name, model = None, config = None, data = [], batch = 1, isas = [], harness = None, **kwargs):
    """Makes the library.

    Args:
      name: of the library, its header, and the namespace of what is in it.
      model: a .fuse file as it is; or a network that the harness compiles (.onnx, .ir), on random inputs without a config.
      config: of the harness: which network, calibrated on what, by which passes.
      data: what the config names, by paths from its folder.
      batch: images a run.
      isas: instruction sets that the library has kernels and packed weights for, ["avx2"], which the machine that builds
        must run; one that has none of them runs the scalar kernels. Without any it has kernels for all, and Init packs.
      harness: what compiles; None: the tree's own, without anybody else's passes.
      **kwargs: more arguments of cc_library, such as visibility.
    """
    if not model and not config:
        fail("fuselage_model(name = \"%s\") wants a model or a config" % name)
    sources = name + "_sources"
    _sources(
        name = sources,
        batch = batch,
        config = config,
        data = data,
        emulator = EMULATOR,
        harness = harness,
        isas = isas,
        model = model,
        network = name,
        testonly = kwargs.get("testonly", False),
    )
    _kernels(
        name = name + "_kernels",
        deps = [Label("//compiler/standalone:network"), Label("//kernels:standalone_kernels")],
        isas = isas,
        testonly = kwargs.get("testonly", False),
    )
    for group in ["header", "source", "weights"]:
        native.filegroup(
            name = name + "_" + group,
            srcs = [sources],
            output_group = group,
            testonly = kwargs.get("testonly", False),
        )
    cc_library(
        name = name,
        srcs = [name + "_source"],
        hdrs = [name + "_header"],
        textual_hdrs = [name + "_weights"],
        copts = kwargs.pop("copts", SMALL),
        # One target stands for the libraries of all kernels, of which the source includes some.
        features = kwargs.pop("features", []) + ["-layering_check"],
        deps = [":" + name + "_kernels"],
        **kwargs
    )
