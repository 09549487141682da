"""What of this machine Fuselage builds with, for MODULE.bazel."""

load(":configure.bzl", "fuselage_configure")

system = module_extension(implementation = lambda _: fuselage_configure())
