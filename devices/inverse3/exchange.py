"""Exchange with the service: selection and set-up of the device, and forces for states.

The service answers every message with one state, so that one thread handles both directions. The thread does not wait
for an answer before it sends the next message, but at most `MOST_OPEN` messages may be unanswered: a service that
stalls must not find a queue of old forces when it resumes. A zero force is never delayed.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Sequence

from devices.common.exchange import Exchange, ExchangeSettings
from devices.inverse3.service import KINDS, Listed, MessageError, find_reading, force_template
from devices.inverse3.websocket import Connection, ConnectionLost
from haptics.errors import DeviceNotFoundError, DeviceOpenError

NAME = "inverse3"

MOST_OPEN = 2
"""Maximum number of unanswered messages; further forces are delayed."""

REST_PATIENCE = 0.5
"""Timeout of the answer to a zero force [s]."""

_NONE = (0.0, 0.0, 0.0)


def choose(devices: Sequence[Listed], device_id: str) -> Listed:
    """Return the device with the name `device_id`, or the only one if that is empty.

    Raises
    ------
    DeviceNotFoundError
        If it is not in the inventory.
    DeviceOpenError
        If the selection is ambiguous.
    """
    if not devices:
        raise DeviceNotFoundError(
            f"{NAME}: the service knows of no Inverse3 or Minverse: plug it in, with its power supply, and see that "
            "the Haply Hub shows it. Or do without one: device.emulated=true."
        )
    known = ", ".join(device.device_id for device in devices)
    meant = [device for device in devices if not device_id or device_id in device.names]
    if not meant:
        raise DeviceNotFoundError(f"{NAME}: there is no device.device_id = {device_id!r}; the service knows {known}.")
    if len(meant) > 1:
        raise DeviceOpenError(f"{NAME}: several devices are there; choose one with device.device_id: {known}.")
    (chosen,) = meant
    if sum(device.device_id == chosen.device_id for device in devices) > 1:
        raise DeviceOpenError(
            f"{NAME}: two devices have the number {chosen.device_id}, with which commands are addressed: unplug one of "
            "them."
        )
    return chosen


def require_usable(device: Listed, kind: str) -> None:
    """Raise an error if the device is in use, or its workspace differs from the settings or is not in metres.

    The service adds the forces of all programs that use a device.

    Raises
    ------
    DeviceOpenError
        With the setting to change or the remedy.
    """
    if device.kind in KINDS and KINDS[device.kind] != KINDS[kind]:
        raise DeviceOpenError(
            f"{NAME}: the device {device.device_id} is a {device.kind}, with another workspace than device.kind = "
            f"{kind!r}: set device.kind={device.kind}."
        )
    if not all(math.isclose(scale, 1.0, abs_tol=1e-9) for scale in device.scale):
        raise DeviceOpenError(
            f"{NAME}: the service stretches the space of {device.device_id} (scale {device.scale}), so that its metres "
            "are none: reset its mount and its workspace transform in the Haply Hub."
        )
    if device.status.get("in_use"):
        raise DeviceOpenError(f"{NAME}: the device {device.device_id} is in use by another program: close that first.")


class ServiceExchange(Exchange):
    """Exchange of forces along the service's axes [N] for states.

    A sample consists of the position of the cursor [m], the force that the service reported, and the force of the
    request [N]; three numbers each.

    Parameters
    ----------
    connection : Connection
        Connection after set-up, without pending answers.
    device_id : str
        Number of the device in the service.
    settings : ExchangeSettings
        Settings of the exchange.
    reply_timeout : float
        Time without an answer after which the service counts as lost [s].
    """

    noun = "service"
    remedy = (
        "the service lets go of a force that is not renewed, its maker does not say after what time: let go of the "
        "handle, and switch the device off if it still pushes"
    )
    sample_size, command_size = 9, 3

    def __init__(
        self, connection: Connection, device_id: str, settings: ExchangeSettings, reply_timeout: float
    ) -> None:
        super().__init__(settings)
        self.files = (connection.socket,)
        self._connection, self._device_id = connection, device_id
        self._template, self._reply_timeout = force_template(device_id), reply_timeout
        self._open: deque[tuple[float, tuple[float, ...]]] = deque()
        self._sent, self._last_commanded = time.perf_counter(), 0.0
        self._last: tuple[float, ...] = _NONE

    def exchange(self, now: float, command: tuple[float, ...]) -> tuple[float, ...] | None:
        """Process received answers, and send a force if due."""
        sample, trouble = self._receive(0.0)
        if trouble:
            raise MessageError(f"the device {self._device_id} {trouble}")
        now = time.perf_counter()
        if self._open and now - self._open[0][0] > self._reply_timeout:
            raise ConnectionLost(f"the service did not answer within {self._reply_timeout:g} s")
        new = self.commanded > self._last_commanded or now - self._sent >= self._keep_alive
        if command == _NONE != self._last or (new and len(self._open) < MOST_OPEN):
            self._last_commanded = self.commanded
            self._send(command)
        return sample

    def _send(self, force: tuple[float, ...]) -> None:
        self._sent, self._last = time.perf_counter(), force
        self._open.append((self._sent, force))
        self._connection.send((self._template % force).encode("ascii"))

    def _receive(self, timeout: float) -> tuple[tuple[float, ...] | None, str]:
        """Return the sample in the last answer, None without one, and the description of a device error.

        Unsolicited messages are ignored.
        """
        texts = self._connection.receive(timeout)
        answers = [(text, self._open.popleft()) for text in texts if self._open]
        if not answers:
            return None, ""
        text, (sent, force) = answers[-1]
        reading = find_reading(text, self._device_id)
        return (sent, *reading.position, *reading.force, *force), reading.trouble

    def come_to_rest(self) -> bool:
        """Send a zero force and publish the sample of the answer; return True if there was one.

        Raises
        ------
        ConnectionLost, MessageError
            If the answer is invalid, or the device was removed.
        """
        self._send(_NONE)
        latest = time.monotonic() + REST_PATIENCE
        while self._open and (remaining := latest - time.monotonic()) > 0.0:
            sample, _ = self._receive(remaining)
            if sample is not None:
                self.samples.publish(*sample)
        return not self._open

    def fail_safe(self, error: Exception) -> None:
        """Send a zero force without waiting for the answer."""
        self._send(_NONE)
