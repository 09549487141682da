"""wheel.py WHEEL FILE...: a wheel (PEP 427) of modules and the library, for any Python 3 on x86-64 Linux.

The library needs the system's Abseil, protobuf and oneDNN, so the wheel is for the system that it was built on.
"""

import base64
import hashlib
import os
import sys
import zipfile


def main(wheel, *paths):
    version = os.path.basename(wheel).split("-")[1]
    info = f"fuselage-{version}.dist-info"
    files = {}
    for path in sorted(paths):
        package = path.find("fuselage_fx/")
        with open(path, "rb") as file:
            files[path[package:] if package >= 0 else os.path.basename(path)] = file.read()
    files[f"{info}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: fuselage\nVersion: {version}\nSummary: INT8 inference compiler\n"
        "Requires-Python: >=3.8\nRequires-Dist: numpy\n"
    ).encode()
    files[f"{info}/WHEEL"] = (
        b"Wheel-Version: 1.0\nGenerator: fuselage\nRoot-Is-Purelib: false\nTag: py3-none-linux_x86_64\n"
    )
    record = ""
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(data)}\n"
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))  # The same bytes whenever it is made.
            entry.external_attr, entry.compress_type = 0o644 << 16, zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)


main(*sys.argv[1:])
