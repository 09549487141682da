"""The peers that come from Python's package index, pinned in requirements.txt, in a virtual environment of their own."""

import hashlib
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).absolute().parent


def folder():
    """Another for other pins and for another Python."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    key = (HERE / "requirements.txt").read_bytes() + sys.version.encode()
    return pathlib.Path(cache) / "fuselage" / f"peers-{hashlib.sha256(key).hexdigest()[:12]}"


def last_line(completed):
    lines = [line for line in completed.stderr.splitlines() + completed.stdout.splitlines() if line.strip()]
    errors = [line for line in lines if "ERROR" in line or "Error" in line]
    return (errors or lines or [f"exit code {completed.returncode}"])[-1].strip()


def install(wanted, say):
    """Returns the environment's Python and the packages of `wanted` that it has; says which could not be had, and why."""
    python = folder() / "bin" / "python"
    if not python.exists():
        made = subprocess.run([sys.executable, "-m", "venv", str(folder())], capture_output=True, text=True)
        if made.returncode != 0:
            say(f"no virtual environment, so no {', '.join(wanted)}: {last_line(made)} (Debian: python3-venv)")
            return python, []
    pins = (HERE / "requirements.txt").read_text().split()
    had = []
    for package in ["numpy", *(["onnx"] if "onnxruntime" in wanted else []), *wanted]:  # onnx: for its quantizer.
        pin = next(pin for pin in pins if pin.startswith(package + "=="))
        mark = folder() / f"{pin}.installed"
        if not mark.exists():
            say(f"installing {pin} into {folder()}")
            done = subprocess.run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                                   "--only-binary=:all:", pin], capture_output=True, text=True)
            if done.returncode != 0:
                say(f"{pin} could not be had: {last_line(done)}")
                if package == "numpy":
                    say(f"without numpy there is no {', '.join(wanted)}")
                    return python, []
                continue
            mark.touch()
        had.append(package)
    return python, [package for package in wanted if package in had]
