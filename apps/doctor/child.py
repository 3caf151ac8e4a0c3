"""Calls of functions that change a process permanently or may crash it, in a separate process."""

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
"""Interval between calls of the progress callback [s]."""


class NoAnswer(Exception):
    """The child process returned no answer.

    The message contains the reason.
    """


def call_in_child(
    function: str, *arguments: Any, timeout: float = 60.0, waiting: Callable[[float], None] = lambda _: None
) -> Any:
    """Call a function in a separate Python process.

    Parameters
    ----------
    function : str
        ``module:name``.
    *arguments
        Arguments. They and the returned value must be JSON serializable.
    timeout : float
        Time after which the child is killed [s].
    waiting : callable
        Called periodically with the elapsed time [s].

    Raises
    ------
    NoAnswer
        If the function raised, ended its process, or timed out, or if no process can be started.
    """
    module, name = function.split(":")
    question = json.dumps([sys.path, module, name, arguments])
    child, start = None, time.monotonic()
    try:
        with _uninterrupted():  # an interrupt in here would leave the child running
            # A new session prevents terminal signals from interrupting the child, which would print a traceback.
            child = subprocess.Popen(
                [sys.executable, "-P", "-c", _CODE, question],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=os.name == "posix",
            )
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                output, words = child.communicate(timeout=_LOOK)
                break
            passed = time.monotonic() - start
            if passed > timeout:
                raise NoAnswer(f"no answer within {timeout:g} s")
            waiting(passed)
    except OSError as error:
        raise NoAnswer(f"{sys.executable} cannot be started again: {error.strerror}") from error
    finally:
        if child is not None:
            child.kill()
            with child:  # waits for its end and closes the pipes
                pass
    lines = [line.strip() for line in words.decode(errors="replace").splitlines() if line.strip()]
    if child.returncode > 0:  # the last line of an exception
        raise NoAnswer(lines[-1] if lines else f"exit status {child.returncode}")
    if child.returncode < 0:  # the first line of an abort
        names = {number.value: number.name for number in signal.Signals}
        raise NoAnswer(": ".join([names.get(-child.returncode, f"signal {-child.returncode}"), *lines[:1]]))
    try:
        return json.loads(output.splitlines()[-1])
    except (ValueError, IndexError):
        raise NoAnswer("its answer cannot be read") from None


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Defer SIGINT until the end of this context.

    Blocking the signal would deliver it to another thread.
    """
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
