"""Python programs and the command ``haptics`` in processes without a display."""

import os
import subprocess
import sys

from tests.processes import ROOT


def run_python(*arguments, folder=ROOT, path=ROOT, status=0):
    """Run Python with the packages in `path` and check its exit status; return the process with its output as text."""
    environment = {name: value for name, value in os.environ.items() if name not in {"DISPLAY", "WAYLAND_DISPLAY"}}
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=folder,
        env={**environment, "PYTHONPATH": str(path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300.0,
        check=False,
    )
    assert done.returncode == status, done.stderr
    return done


def haptics(*arguments, **options):
    """Run the command ``haptics`` like `run_python`."""
    return run_python("-m", "apps", *arguments, **options)
