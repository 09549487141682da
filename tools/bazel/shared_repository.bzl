"""shared_repository: a folder of rules that one of the system's packages installed, as a repository."""

def _shared_repository_impl(repository_ctx):
    folders = repository_ctx.os.environ.get("XDG_DATA_DIRS") or "/usr/local/share:/usr/share"
    for folder in folders.split(":"):
        if not folder.startswith("/"):
            continue
        found = repository_ctx.path(folder + "/" + repository_ctx.attr.path)
        if found.exists:
            for child in found.readdir():
                repository_ctx.symlink(child, child.basename)
            return
    fail("no %s in %s: install %s (./bazelw does)" % (repository_ctx.attr.path, folders, repository_ctx.attr.package))

shared_repository = repository_rule(
    implementation = _shared_repository_impl,
    attrs = {
        "package": attr.string(mandatory = True, doc = "Debian's, for the error."),
        "path": attr.string(
            mandatory = True,
            doc = "Below a folder of $XDG_DATA_DIRS, by default /usr/share (XDG Base Directory Specification).",
        ),
    },
    environ = ["XDG_DATA_DIRS"],
    local = True,
)
