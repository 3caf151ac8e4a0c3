"""The BIDS validator of the bids-standard project."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest


def bids_errors(folder):
    """Return the errors that the validator finds in a dataset; skip the test if it is not installed."""
    bids_validator = pytest.importorskip("bids_validator_deno", reason="pip install bids-validator-deno")
    code = f"from {bids_validator.__name__} import cli; cli()"
    command = [sys.executable, "-c", code, "--format", "json", "--max-rows", "-1", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=110)
    errors = [one for one in json.loads(done.stdout)["issues"]["issues"] if one["severity"] == "error"]
    assert bool(done.returncode) == bool(errors), done.stderr
    return errors
