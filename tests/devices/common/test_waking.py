"""Waking a thread: what was called counts once, be it from Python or from a kernel."""

import os
import threading
import time

import numpy as np
import pytest

from devices.common.waking import Wake
from haptics.servo.system_kernels import SCRATCH, raise_event


@pytest.fixture(params=["event of the system", "none"])
def wake(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Wake:
    if request.param == "none":
        monkeypatch.delattr(os, "eventfd", raising=False)
    made = Wake()
    assert (made.descriptor < 0) == (request.param == "none" or not hasattr(os, "eventfd"))
    return made


def waited(wake: Wake, timeout: float) -> float:
    begun = time.monotonic()
    wake.wait(timeout)
    return time.monotonic() - begun


def test_what_was_called_before_counts_once(wake: Wake) -> None:
    for _ in range(3):
        wake.call()
    assert waited(wake, 60.0) < 30.0
    assert waited(wake, 0.05) >= 0.04


def test_who_waits_is_woken(wake: Wake) -> None:
    caller = threading.Timer(0.05, wake.call)
    caller.start()
    assert waited(wake, 60.0) < 30.0
    caller.join()


@pytest.mark.skipif(not hasattr(os, "eventfd"), reason="the system has no such events")
def test_a_kernel_wakes_as_well() -> None:
    wake = Wake()
    raise_event(wake.descriptor, np.zeros(SCRATCH, np.int64))
    assert waited(wake, 60.0) < 30.0


@pytest.mark.skipif(not hasattr(os, "eventfd"), reason="the system has no such events")
def test_the_event_is_closed_with_the_last_who_knows_it() -> None:
    wake = Wake()
    descriptor = wake.descriptor
    os.fstat(descriptor)
    del wake
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
