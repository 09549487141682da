"""What --config=aarch64 builds with: Debian's cross compiler, and arm64's libraries in a folder that sysroot.sh makes.

Bazel fetches the repository when that option is first given, and not without it.
"""

def _aarch64_configure_impl(repository_ctx):
    for program in ["aarch64-linux-gnu-g++", "qemu-aarch64"]:
        if not repository_ctx.which(program):
            fail("%s not found: install g++-aarch64-linux-gnu and qemu-user" % program)

    # The same folder for every workspace: its path is in what Bazel's disk cache knows actions by.
    sysroot = repository_ctx.os.environ["HOME"] + "/.cache/fuselage-aarch64"
    made = repository_ctx.execute([repository_ctx.path(Label("//tools/aarch64:sysroot.sh")), sysroot], timeout = 1200)
    if made.return_code != 0:
        fail("tools/aarch64/sysroot.sh failed: %s" % made.stderr)
    repository_ctx.template("BUILD", Label("//tools/aarch64:toolchain.BUILD"), {"%{sysroot}": sysroot})

aarch64_configure = repository_rule(
    implementation = _aarch64_configure_impl,
    environ = ["HOME"],
    local = True,
)
