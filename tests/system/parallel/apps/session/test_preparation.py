"""Before the first tick a person sees what is going on, and can call it off at once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import numba
import pytest

from apps.session import preparation
from apps.session.preparation import Preparation
from apps.session.progress import Quiet
from haptics import kernel_cache
from haptics.jit import kernel
from haptics.kernel_cache import Compilation, KernelCache
from tests.processes import RUN, program


@kernel
def _inner(x: float) -> float:
    return 2.0 * x


@kernel
def _outer(x: float) -> float:
    return _inner(x) + 1.0


def test_kernels_are_counted_with_about_how_many_there_will_be() -> None:
    counted: list[tuple[int, int]] = []
    compilation = Compilation()
    compilation.begin(_outer.py_func)  # type: ignore[attr-defined]
    compilation.watcher = lambda number, about: counted.append((number, about))
    compilation.begin(_outer.py_func)  # type: ignore[attr-defined]
    compilation.begin(_inner.py_func)  # type: ignore[attr-defined]
    assert counted == [(1, 2), (2, 2)]


def test_a_kernel_that_is_not_in_the_cache_is_announced(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    counted: list[int] = []
    monkeypatch.setattr(kernel_cache, "COMPILATION", Compilation())
    monkeypatch.setattr(kernel_cache.COMPILATION, "watcher", lambda number, about: counted.append(number))
    cache = KernelCache(tmp_path, _inner.py_func)  # type: ignore[attr-defined]
    for _ in range(2):
        assert cache.load_overload((numba.float64,), _inner.targetctx) is None  # type: ignore[attr-defined]
    assert counted == [1, 2]


class Heard:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.told, self.shown = 100.0, [], []  # type: ignore[var-annotated]
        monkeypatch.setattr(preparation.time, "monotonic", lambda: self.now)
        self.preparation = Preparation("pantograph", Quiet(), self.told.append, self.shown.append)


def test_the_count_and_the_seconds_are_shown_until_the_device_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    heard = Heard(monkeypatch)
    heard.preparation.refresh()
    assert heard.shown == []
    heard.preparation.take("compiling", (1, 40))
    heard.now += 7.0
    heard.preparation.refresh()
    heard.preparation.take("compiling", (2, 40))
    assert not heard.preparation.opening
    heard.preparation.take("opening", None)
    assert heard.preparation.opening
    heard.preparation.take("ready", None)
    heard.now += 7.0
    heard.preparation.refresh()
    assert heard.shown == [
        "compiling kernel 1 of about 40 (0 s; only the first time)",
        "compiling kernel 1 of about 40 (7 s; only the first time)",
        "compiling kernel 2 of about 40 (7 s; only the first time)",
        "opening pantograph (7 s)",
        "",
    ]
    assert len(heard.told) == 1


def test_an_opening_that_failed_leaves_no_recording(tmp_path: Path) -> None:
    pipe = subprocess.PIPE
    arguments = ("--device", "pantograph", "--set", "device.port=/dev/null", "--set", "device.at_home=true")
    with program(*RUN, *arguments, "--headless", cwd=tmp_path, stdout=pipe, stderr=pipe) as process:
        out, err = process.communicate(timeout=100)
    assert process.returncode == 3, err
    assert json.loads(out)["error"]
    assert list((tmp_path / "recordings").iterdir()) == []


def test_an_opening_that_waits_can_be_interrupted(tmp_path: Path) -> None:
    waits = ("device.emulated=true", "device.at_home=true", "device.hold=10")
    settings = [word for setting in waits for word in ("--set", setting)]
    screen, terminal = os.openpty()  # the progress is shown on a terminal only
    arguments = (*RUN, "--device", "pantograph", *settings, "--headless")
    with program(*arguments, cwd=tmp_path, stdout=subprocess.PIPE, stderr=terminal) as process:
        said = b""
        while b"opening pantograph" not in said:
            assert process.poll() is None
            said += os.read(screen, 1000)
        begun = time.monotonic()
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
        passed = time.monotonic() - begun
    os.close(screen)
    os.close(terminal)
    assert process.returncode == 130
    assert json.loads(out) == {"error": "interrupted"}
    assert passed < 6.0  # it would be watched for 10 s, and then be armed
    assert list((tmp_path / "recordings").iterdir()) == []
