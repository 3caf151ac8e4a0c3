"""Emulated board at a pseudo-terminal, served by a thread, with communication faults on demand."""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time
import tty
from collections.abc import Iterable, Mapping, Set
from typing import Any, Self

import numpy as np

from devices.emulators.hapi.arms import PROFILES, Arms
from devices.emulators.hapi.faults import WIRE_FAULTS
from devices.emulators.hapi.firmware import Firmware
from devices.emulators.wire_faults import WireFaults
from haptics.device import Vector

_NOBODY = 2e-3
"""Polling interval while no host has opened the port [s]."""


class HapiBoard:
    """Emulated board. In a ``with`` statement a thread serves it.

    Parameters
    ----------
    mechanism : str
        A key of `devices.emulators.hapi.arms.PROFILES`.
    hand : mapping, optional
        Table ``hand`` of a virtual joystick.
    seed : int
        Seed of the hand's random numbers.
    mass, damping : float
        Mass [kg] and damping [N s/m] of the handle.
    faults : iterable of str
        Communication faults, ``NAME@SECONDS+DURATION`` (`devices.emulators.hapi.faults`).

    Attributes
    ----------
    port : str
        Serial port for the driver.
    firmware : Firmware
        Firmware of the board with its torques and its log.
    faults : WireFaults
        The faults above, and faults that are switched manually.
    """

    def __init__(
        self,
        mechanism: str = "gen-1",
        hand: Mapping[str, Any] | None = None,
        *,
        seed: int = 0,
        mass: float = 0.1,
        damping: float = 0.5,
        faults: Iterable[str] = (),
    ) -> None:
        self.faults = WireFaults(WIRE_FAULTS, faults)
        self.firmware = Firmware(Arms(PROFILES[mechanism], hand, seed=seed, mass=mass, damping=damping))
        self._master, slave = os.openpty()
        tty.setraw(slave)
        self.port = os.ttyname(slave)
        os.close(slave)
        self._plugged = True
        self._away = True
        self._lock = threading.Lock()
        self._lost_in: int | None = None
        self._lost_out: int | None = None
        self._shortened: int | None = None
        self._delays: list[float] = []
        self._halt, self._halted = os.pipe()
        self._thread = threading.Thread(target=self.serve, args=(self._halt,), name="emulated hapi board", daemon=True)

    # --- information for observers -----------------------------------------------------------------------------------

    @property
    def torques(self) -> tuple[float, float]:
        """Present torques of the left and the right motor [N m]."""
        return self.firmware.torques

    @property
    def handle(self) -> Vector:
        """True position of the handle relative to the centre of its range, (2,) [m]."""
        with self._lock:
            self.firmware.receive(b"", time.monotonic())
            return self.firmware.arms.joystick.handle

    @property
    def force(self) -> Vector:
        """Force of the motors on the handle, (2,) [N]."""
        with self._lock:
            self.firmware.receive(b"", time.monotonic())
            return np.array(self.firmware.arms.force(self.firmware.torques))

    # --- faults ------------------------------------------------------------------------------------------------------

    def lose_request_byte(self, index: int) -> None:
        """Drop byte number `index` of the next message to the board."""
        self._lost_in = index

    def lose_reply_byte(self, index: int) -> None:
        """Drop byte number `index` of the next reply."""
        self._lost_out = index

    def shorten_reply(self, length: int) -> None:
        """Send only `length` bytes of the next reply."""
        self._shortened = length

    def delay_replies(self, delay: float, count: int = 1) -> None:
        """Delay the next `count` replies by `delay` [s]."""
        self._delays = [delay] * count

    def unplug(self) -> None:
        """Unplug the cable: the port disappears, torques stay."""
        with self._lock:
            self._pull()

    def _pull(self) -> None:
        if self._plugged:
            self._plugged = False
            os.close(self._master)

    # --- server thread -----------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        """Start the thread."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Unplug the board and stop the thread."""
        os.write(self._halted, b".")
        self._thread.join()
        self.unplug()
        os.close(self._halt)
        os.close(self._halted)

    def serve(self, until: int) -> None:
        """Serve hosts, one after the other, until the file descriptor `until` is readable."""
        poll = select.poll()
        poll.register(until, select.POLLIN | select.POLLHUP)
        poll.register(self._master, select.POLLIN)
        while self._plugged:
            events = dict(poll.poll(100))
            if until in events:
                return
            if events.get(self._master, 0) & select.POLLIN:
                self._away = False
                self._answer()
            elif events:
                self._wait_for_host()

    def _wait_for_host(self) -> None:
        """Return the arms to their home pose if the host has closed the port; torques are unchanged."""
        if not self._away:
            self._away = True
            with self._lock:
                self.firmware.arms.go_home()
        time.sleep(_NOBODY)

    def _answer(self) -> None:
        with self._lock, contextlib.suppress(OSError):  # the host may have closed the port
            if not self._plugged:
                return
            now = time.monotonic()
            since = self.firmware.arms.since_let_go(now)
            faults = self.faults.at(since)
            if "unplug" in faults:
                self._pull()
                return
            data = os.read(self._master, 4096)
            if self._lost_in is not None:
                data, self._lost_in = _without(data, self._lost_in), None
            elif "lost-byte" in faults:
                data = _without(data, len(data) // 2)
            reply = self.firmware.receive(data, now)
            if reply:
                time.sleep(self.faults.delay(since))
                os.write(self._master, self._spoilt(reply, faults))

    def _spoilt(self, reply: bytes, faults: Set[str]) -> bytes:
        """Return the `reply` as modified by the faults, after their delay."""
        if self._delays:
            time.sleep(self._delays.pop())
        if self._lost_out is not None:
            reply, self._lost_out = _without(reply, self._lost_out), None
        elif "lost-reply-byte" in faults:
            reply = _without(reply, len(reply) // 2)
        if self._shortened is not None:
            reply, self._shortened = reply[: self._shortened], None
        elif "short" in faults:
            reply = reply[: len(reply) // 2]
        return b"" if "dropout" in faults else reply


def _without(data: bytes, index: int) -> bytes:
    return data[:index] + data[index + 1 :]
