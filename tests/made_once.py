"""Results that are expensive to make, shared by the processes of a test run."""

import fcntl
import os
import tempfile
import traceback
from pathlib import Path

import pytest


def made_once(tmp_path_factory, name, make):
    """Return the folder `name` of this test run, which the first process that needs it fills with ``make(folder)``.

    Other processes wait meanwhile. If `make` fails, the fixtures of all processes fail with its traceback. The kernel
    releases the lock of a killed process, and the next process makes the folder from the beginning.
    """
    common = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        common = common.parent
    folder, failure = common / name, common / f"{name}.failure"
    with open(common / f"{name}.lock", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if failure.exists():
            pytest.fail(f"{name} could not be made:\n{failure.read_text(encoding='utf-8')}", pytrace=False)
        if not folder.exists():
            unfinished = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=common))
            try:
                make(unfinished)
            except (Exception, pytest.fail.Exception):
                failure.write_text(traceback.format_exc(), encoding="utf-8")
                raise
            unfinished.rename(folder)
    return folder
