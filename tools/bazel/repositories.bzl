"""fuselage_repositories: the rules that Fuselage builds with, all from the system's packages: no network.

The workspace of Fuselage calls it and then fuselage_configure (configure.bzl), and so does each that has Fuselage as a
repository.
"""

# Repositories that Debian's packages hold, and shims for three that Bazel 4 would otherwise download.
_SYSTEM = {
    "bazel_skylib": "/usr/share/bazel/tools/skylib",
    "platforms": "/usr/share/bazel/platforms",
    "rules_java": "/usr/share/bazel/rules/java",
    "rules_proto": "/usr/share/bazel/rules/proto",
}
_SHIMS = ["com_google_protobuf", "remote_coverage_tools", "rules_cc"]

def fuselage_repositories(path):
    """Declares them.

    Args:
      path: to Fuselage's folder, from the workspace that calls; "." in its own.
    """
    for name, folder in _SYSTEM.items():
        native.local_repository(name = name, path = folder)
    for name in _SHIMS:
        native.local_repository(name = name, path = path + "/third_party/shims/" + name)
