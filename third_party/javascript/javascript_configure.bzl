"""The scripts of others that //harness/html puts into report.html, with their licences: D3 and dagre, as Debian has them.

They come from installed packages, or else, where there is apt, from packages that are unpacked into a folder of the
user's cache. Where neither has them the repository is empty, and report.html says so.
"""

# By the paths of Debian's packages node-d3 and node-dagre-layout, below a folder of $XDG_DATA_DIRS (XDG Base Directory
# Specification).
_FILES = {
    "d3.copyright.txt": "doc/node-d3/copyright",
    "d3.min.js": "nodejs/d3/dist/d3.min.js",
    "dagre.copyright.txt": "doc/node-dagre-layout/copyright",
    "dagre.min.js": "nodejs/dagre/dist/dagre.min.js",
}

def _find(repository_ctx, folders):
    found = {}
    for name, path in _FILES.items():
        for folder in folders:
            file = repository_ctx.path(folder + "/" + path)
            if file.exists and name not in found:
                found[name] = file
    return found if len(found) == len(_FILES) else {}

def _javascript_configure_impl(repository_ctx):
    environ = repository_ctx.os.environ
    folders = (environ.get("XDG_DATA_DIRS") or "/usr/local/share:/usr/share").split(":")
    found = _find(repository_ctx, [folder for folder in folders if folder.startswith("/")])
    if not found and environ.get("HOME") and repository_ctx.which("apt-get") and repository_ctx.which("dpkg-deb"):
        unpacked = environ["HOME"] + "/.cache/fuselage-javascript"
        repository_ctx.execute([repository_ctx.path(Label("//third_party/javascript:unpack.sh")), unpacked], timeout = 120)
        found = _find(repository_ctx, [unpacked + "/usr/share"])
    for name, file in found.items():
        repository_ctx.symlink(file, name)
    repository_ctx.file("BUILD", """\
filegroup(
    name = "javascript",
    srcs = glob(["*.js", "*.txt"]),
    visibility = ["//visibility:public"],
)
""")

javascript_configure = repository_rule(
    implementation = _javascript_configure_impl,
    environ = [
        "HOME",
        "XDG_DATA_DIRS",
    ],
    local = True,
)
