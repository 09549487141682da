"""fuselage_sweep: a sweep's units as actions of Bazel, so that its executors run them and its caches keep them.

    load("@fuselage//harness/sweep:sweep.bzl", "fuselage_sweep")

    fuselage_sweep(
        name = "calibrations",
        config = "calibrations.textproto",
        data = ["network.textproto", "network.onnx"],
        units = 24,
    )

makes calibrations/sweep.json. A unit of which nothing changed is not run again; docs/sweeps.md has the rest.
"""

def _sweep(ctx, flags, output, inputs):
    # The program looks for what configs name in its runfiles, and beside the config.
    ctx.actions.run_shell(
        outputs = [output],
        inputs = inputs + ctx.files.data + [ctx.file.config],
        tools = [ctx.attr.harness[DefaultInfo].files_to_run],
        command = " && ".join([
            "out=$1",
            "for folder in \"${@:4}\"; do cp -r \"$folder\"/. \"$out\"; done",
            "\"$2\" sweep --no_cache --config=\"$3\" --out=\"$out\" %s >\"$out\".log 2>&1 || { cat \"$out\".log >&2; exit 1; }" % flags,
        ]),
        arguments = [output.path, ctx.executable.harness.path, ctx.file.config.path] + [input.path for input in inputs],
        mnemonic = "FuselageSweep",
        progress_message = "Sweep %s %s" % (ctx.label, flags),
    )

def _fuselage_sweep_impl(ctx):
    units = []
    for unit in range(ctx.attr.units):
        folder = ctx.actions.declare_directory("%s.units/%d" % (ctx.label.name, unit))
        _sweep(ctx, "--unit=%d" % unit, folder, [])
        units.append(folder)
    merged = ctx.actions.declare_directory(ctx.label.name)
    _sweep(ctx, "", merged, units)
    return [DefaultInfo(files = depset([merged]), runfiles = ctx.runfiles([merged]))]

fuselage_sweep = rule(
    implementation = _fuselage_sweep_impl,
    attrs = {
        "config": attr.label(allow_single_file = [".textproto"], mandatory = True, doc = "A Sweep."),
        "data": attr.label_list(allow_files = True, doc = "What it names: its config, models, data."),
        "harness": attr.label(default = "//harness", executable = True, cfg = "target"),
        "units": attr.int(mandatory = True, doc = "How many it has; what is above is run with the merge."),
    },
)
