"""Communication with two axes on a CAN bus: a reader thread keeps the latest frame of each kind.

Axes send heartbeats, positions and speeds cyclically. Other messages are requested with a remote frame; the reply has
the same identifier. Every frame to an axis feeds its watchdog.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from devices.arm.motors.can import codec
from devices.arm.motors.can.codec import Frame
from devices.arm.motors.can.port import RESTARTED, Port, failure, in_words
from devices.arm.motors.native.line import ATTEMPTS, PATIENCE
from devices.common.bus import TransferError, Trouble

_READ_TIMEOUT = 0.02
_JOIN_TIMEOUT = 0.3
_LOOK = 1e-3


class Heard(NamedTuple):
    """Latest frame of a kind: time of reception [s, perf_counter], data, number of frames received."""

    time: float
    data: bytes
    total: int


NEVER = Heard(float("-inf"), b"", 0)


class CanLine:
    """Received frames of two axes, and commands and requests to them. Only one thread at a time may send.

    Parameters
    ----------
    port : Port
        Open interface.
    name : str
        Name of the interface.
    nodes : (int, int)
        Nodes of the first and the second axis.

    Attributes
    ----------
    nodes : tuple of int
        Nodes of the first and the second axis.
    others : set of int
        Other nodes from which frames were received.
    rivals : set of int
        Nodes of these axes that another program commands.
    """

    def __init__(self, port: Port, name: str, nodes: Sequence[int]) -> None:
        self.name, self.nodes = name, tuple(nodes)
        self.others: set[int] = set()
        self.rivals: set[int] = set()
        self._port = port
        self._latest: dict[tuple[int, int], Heard] = {}
        self._pairs = 0
        self._warning = 0
        self._fault: TransferError | None = None
        self._news = threading.Condition()
        self._wake: Callable[[], object] = lambda: None
        self._closing = False
        self._reader = threading.Thread(target=self._read_on, name="can reader", daemon=True)
        self._reader.start()

    def set_wake_callback(self, wake: Callable[[], object]) -> None:
        """Register `wake`, which is called whenever new estimates of both axes have arrived."""
        self._wake = wake

    def latest(self, node: int, command: int) -> Heard:
        """Return the latest frame of a node and command; `NEVER` if none was received."""
        return self._latest.get((node, command), NEVER)

    def require_whole(self) -> None:
        """Raise the error of the interface, if one occurred."""
        if self._fault is not None:
            raise self._fault

    @property
    def warning(self) -> str:
        """Description of the bus error that the interface reports; empty if none."""
        return in_words(self._warning, self.name)

    def send(self, *frames: Frame) -> None:
        """Send frames in order; raise `TransferError` on failure."""
        self.require_whole()
        try:
            for frame in frames:
                self._port.send(codec.pack(frame))
        except OSError as error:
            raise self._silence(failure(error, self.name)) from error

    def request(self, node: int, command: int, attempts: int = ATTEMPTS) -> bytes:
        """Request a message from a node and return its data; raise `TransferError` if no reply arrives."""
        for _ in range(attempts):
            before = self.latest(node, command).total
            self.send(codec.request_frame(node, command))
            if self.wait(lambda before=before: self.latest(node, command).total > before, PATIENCE):  # type: ignore[misc]
                return self.latest(node, command).data
        raise self.silent(node)

    def silent(self, node: int) -> TransferError:
        """Return the error for a node that does not reply."""
        words = f"the drive does not answer as node {node} of {self.name}: was it switched off, or its cable pulled?"
        return self._silence(TransferError(words, Trouble.TIMEOUT))

    def _silence(self, error: TransferError) -> TransferError:
        """Return the bus error that the interface reports, if any, because it explains more than `error`."""
        return TransferError(f"{self.warning}.", error.trouble) if self.warning else error

    def wait(self, done: Callable[[], bool], timeout: float) -> bool:
        """Wait until `done` returns True, at most `timeout` [s]; return False on timeout.

        Raises `TransferError` if the interface has failed.
        """
        latest = time.perf_counter() + timeout
        with self._news:
            while not done():
                self.require_whole()
                if time.perf_counter() > latest:
                    return False
                self._news.wait(_LOOK)
        return True

    def close(self) -> None:
        """Stop the reader thread and close the interface."""
        self._closing = True
        self._reader.join(_JOIN_TIMEOUT)
        with contextlib.suppress(OSError):
            self._port.close()

    # --- reader thread -----------------------------------------------------------------------------------------------

    def _read_on(self) -> None:
        """Store received frames until closed or until an error, which is kept for `require_whole`."""
        try:
            while not self._closing:
                self._store_frames(self._port.receive(_READ_TIMEOUT))
        except OSError as error:
            self._fault = failure(error, self.name)
        self._notify()

    def _store_frames(self, raw: bytes | None) -> None:
        """Store a frame and all frames queued behind it; only the newest of each kind is kept."""
        if raw is None:
            return
        now = time.perf_counter()
        while raw is not None:
            self._store_frame(raw, now)
            raw = self._port.receive(0.0)
        self._notify()

    def _notify(self) -> None:
        with self._news:
            self._news.notify_all()
        pairs = min(self.latest(node, codec.ESTIMATES).total for node in self.nodes)
        if pairs > self._pairs or self._fault is not None:
            self._pairs = pairs
            self._wake()

    def _store_frame(self, raw: bytes, now: float) -> None:
        frame, error = codec.unpack(raw), codec.error_class(raw)
        if error is not None:
            self._warning = 0 if error[0] & RESTARTED else self._warning | error[0]
        if frame is None:
            return
        if frame.node not in self.nodes:
            self.others.add(frame.node)
        elif frame.command in codec.COMMANDING:
            self.rivals.add(frame.node)
        elif not frame.remote:
            key = frame.node, frame.command
            self._latest[key] = Heard(now, frame.data, self._latest.get(key, NEVER).total + 1)
            self._warning = 0  # the bus works
