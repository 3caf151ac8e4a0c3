"""Questions that are better asked in a Python of their own: they change a process for good, or may end it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

_CODE = """
import importlib, json, sys
paths, module, function, arguments = json.loads(sys.argv[1])
sys.path[:] = paths
try:
    import resource
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
except (ImportError, ValueError, OSError):
    pass
answer = getattr(importlib.import_module(module), function)(*arguments)
sys.stdout.write("\\n" + json.dumps(answer))
"""
_LOOK = 0.1
"""How often somebody who waits is told so [s]."""


class NoAnswer(Exception):
    """The child gave no answer; says why."""


def ask(
    function: str, *arguments: Any, timeout: float = 60.0, waiting: Callable[[float], None] = lambda _: None
) -> Any:
    """Call a function in a Python of its own.

    Parameters
    ----------
    function : str
        ``module:name``.
    *arguments
        What JSON can carry; so must be what the function returns.
    timeout : float
        After this time [s] the child is stopped.
    waiting : callable
        Told every now and then for how long the child has been running [s].

    Raises
    ------
    NoAnswer
        If the function raised, ended its process, or took too long, or if there is no process to be had.
    """
    module, name = function.split(":")
    question = json.dumps([sys.path, module, name, arguments])
    child = None
    try:
        with _uninterrupted():  # an interrupt in here would leave a child behind
            child = _start(question)
        output, words = _wait(child, timeout, waiting)
    finally:
        if child is not None:
            child.kill()
            with child:  # waits for its end and closes the pipes
                pass
    if child.returncode != 0:
        raise NoAnswer(_last_words(child.returncode, words))
    try:
        return json.loads(output.splitlines()[-1])
    except (ValueError, IndexError):
        raise NoAnswer("its answer cannot be read") from None


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Hold back an interrupt until the end of this context; blocking the signal would leave it to another thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[tuple[int, FrameType | None]] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: held.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if held and callable(before):
        before(*held[0])


def _start(question: str) -> subprocess.Popen[bytes]:
    # A session of its own: what a terminal sends to everybody in it would be answered with a traceback.
    try:
        return subprocess.Popen(
            [sys.executable, "-P", "-c", _CODE, question],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=os.name == "posix",
        )
    except OSError as error:
        raise NoAnswer(f"{sys.executable} cannot be started again: {error.strerror}") from error


def _wait(child: subprocess.Popen[bytes], timeout: float, waiting: Callable[[float], None]) -> tuple[bytes, bytes]:
    start = time.monotonic()
    while True:
        try:
            return child.communicate(timeout=_LOOK)
        except subprocess.TimeoutExpired:
            passed = time.monotonic() - start
            if passed > timeout:
                raise NoAnswer(f"no answer within {timeout:g} s") from None
            waiting(passed)


def _last_words(status: int, words: bytes) -> str:
    """Return what a child that failed had to say: of an exception the end, of an abortion the beginning."""
    lines = [line.strip() for line in words.decode(errors="replace").splitlines() if line.strip()]
    if status > 0:
        return lines[-1] if lines else f"exit status {status}"
    names = {number.value: number.name for number in signal.Signals}
    return ": ".join([names.get(-status, f"signal {-status}"), *lines[:1]])
