"""fuselage_repositories: the rules that Fuselage builds with, all from the system's packages: no network.

The workspace of Fuselage calls it and then fuselage_configure (configure.bzl), and so does each that has Fuselage as a
repository.
"""

load(":shared_repository.bzl", "shared_repository")

# Repositories that Debian's packages hold, and shims for three that Bazel 4 would otherwise download.
_SYSTEM = {
    "bazel_skylib": ("bazel/tools/skylib", "bazel-skylib"),
    "platforms": ("bazel/platforms", "bazel-platforms"),
    "rules_java": ("bazel/rules/java", "bazel-rules-java"),
    "rules_proto": ("bazel/rules/proto", "bazel-rules-proto"),
}
_SHIMS = ["com_google_protobuf", "remote_coverage_tools", "rules_cc"]

def fuselage_repositories(path):
    """Declares them.

    Args:
      path: to Fuselage's folder, from the workspace that calls; "." in its own.
    """
    for name, (folder, package) in _SYSTEM.items():
        shared_repository(name = name, path = folder, package = package)
    for name in _SHIMS:
        native.local_repository(name = name, path = path + "/third_party/shims/" + name)
