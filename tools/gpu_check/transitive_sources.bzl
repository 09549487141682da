"""transitive_sources: the workspace's source files that targets are made from, for a test that compiles them itself."""

_Sources = provider(fields = ["files"])

def _collect_impl(target, ctx):
    files = []
    transitive = []
    for attribute in ["srcs", "hdrs", "deps"]:
        for dep in getattr(ctx.rule.attr, attribute, []):
            if _Sources in dep:
                transitive.append(dep[_Sources].files)
            elif not dep.label.workspace_name:
                files += [f for f in dep.files.to_list() if f.is_source]
    return [_Sources(files = depset(files, transitive = transitive))]

_collect = aspect(implementation = _collect_impl, attr_aspects = ["srcs", "hdrs", "deps"])

def _transitive_sources_impl(ctx):
    files = depset(transitive = [dep[_Sources].files for dep in ctx.attr.deps])
    return [DefaultInfo(files = files, runfiles = ctx.runfiles(transitive_files = files))]

transitive_sources = rule(
    implementation = _transitive_sources_impl,
    attrs = {"deps": attr.label_list(aspects = [_collect])},
)
