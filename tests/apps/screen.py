"""A virtual screen with pointer and keyboard: Xvfb and xdotool."""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager

import numpy as np
import pytest

from tests.processes import ROOT, RUN, kill, program

MISSING = [name for name in ("Xvfb", "xdotool") if shutil.which(name) is None]
WHY_NOT = f"needs {' and '.join(MISSING)} (Debian packages xvfb and xdotool)" if MISSING else ""


class Screen:
    """One virtual screen."""

    def __init__(self, display):
        self.environment = {**os.environ, "DISPLAY": display, "QT_QPA_PLATFORM": "xcb"}
        self._sessions: list[subprocess.Popen[str]] = []

    @contextmanager
    def session(self, folder, *arguments):
        """Run a session with its window on this screen, recording into `folder`."""
        where, pipe = ("--record", str(folder)), subprocess.PIPE
        words = *RUN, *where, *arguments
        with program(*words, env=self.environment, stdout=pipe, stderr=pipe, cwd=folder) as process:
            self._sessions.append(process)
            try:
                yield process
            finally:
                self._sessions.remove(process)

    def answer(self, module):
        """Run a module on this screen and return the JSON that it prints."""
        done = subprocess.run(
            [sys.executable, "-m", module], env=self.environment, cwd=ROOT, capture_output=True, text=True, check=True
        )
        return json.loads(done.stdout)

    def xdotool(self, *arguments, script=""):
        """Run xdotool with `arguments`, or with a `script` of one command per line, and return its output."""
        done = subprocess.run(
            ["xdotool", *(arguments or ("-",))],
            env=self.environment,
            input=script,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return done.stdout.strip()

    def window(self, title, seconds=60.0):
        """Return the id of the window whose title contains `title`, once it is there."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            found = self.xdotool("search", "--onlyvisible", "--name", title).splitlines()
            if found:
                return found[0]
            for process in self._sessions:
                assert process.poll() is None, f"no window, the session has ended: {kill(process)}"
            time.sleep(0.2)
        raise AssertionError(f"no window named {title!r} appeared")

    def shot(self, window):
        """Return the pixels of a window, (height, width, 3), uppermost row first."""
        from pyglet.libs.x11 import xlib

        display = xlib.XOpenDisplay(self.environment["DISPLAY"].encode())
        size = self.xdotool("getwindowgeometry", "--shell", window)
        width, height = (int(re.findall(rf"{name}=(\d+)", size)[0]) for name in ("WIDTH", "HEIGHT"))
        image = xlib.XGetImage(display, int(window), 0, 0, width, height, xlib.XAllPlanes(), xlib.ZPixmap)
        row = image.contents.bytes_per_line
        data = ctypes.c_void_p.from_buffer(image.contents, xlib.XImage.data.offset).value or 0  # no text that ends at 0
        pixels = np.frombuffer(ctypes.string_at(data, row * height), np.uint8).reshape(height, row)
        xlib.XCloseDisplay(display)
        return pixels[:, : 4 * width].reshape(height, width, 4)[:, :, 2::-1].copy()

    def close(self, window):
        """Request that a window closes, as a window manager does."""
        from pyglet.libs.x11 import xlib

        display = xlib.XOpenDisplay(self.environment["DISPLAY"].encode())
        event = xlib.XEvent()
        event.type = xlib.ClientMessage
        event.xclient.window = int(window)
        event.xclient.message_type = xlib.XInternAtom(display, b"WM_PROTOCOLS", False)
        event.xclient.format = 32
        event.xclient.data.l[0] = xlib.XInternAtom(display, b"WM_DELETE_WINDOW", False)
        xlib.XSendEvent(display, int(window), False, 0, event)
        xlib.XCloseDisplay(display)

    def trace_path(self, points, interval):
        """Move the pointer along `points`, one every `interval` seconds."""
        self.xdotool(script="".join(f"mousemove {x} {y}\nsleep {interval}\n" for x, y in points))


@contextmanager
def virtual_screen(size=(1280, 900)):
    """Start a virtual screen of a size [pixel] on a free display and stop it afterwards."""
    read_end, write_end = os.pipe()
    command = ["Xvfb", "-displayfd", str(write_end), "-screen", "0", f"{size[0]}x{size[1]}x24", "-nolisten", "tcp"]
    with subprocess.Popen(command, pass_fds=[write_end], stderr=subprocess.DEVNULL) as server:
        os.close(write_end)
        with os.fdopen(read_end) as answer:
            display = answer.readline().strip()
        try:
            yield Screen(f":{display}")
        finally:
            server.terminate()
            try:
                server.wait(10)
            except subprocess.TimeoutExpired:
                server.kill()


@pytest.fixture(scope="module")
def screen():
    """A virtual screen for the tests of a module."""
    with virtual_screen() as screen:
        yield screen
