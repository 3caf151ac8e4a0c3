"""Driver of the Falcon; see `devices.falcon` for the guarantees about its force."""

from __future__ import annotations

import contextlib
import math
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from devices.common import bus
from devices.common.bus import TransferError, Trouble
from devices.common.exchange import Exchange, ExchangeEnded
from devices.common.kernels import accept, begin_sample, copy_sample, send_command
from devices.common.plane import (
    Plane,
    PlaneDriver,
    PlaneSettings,
    estimate_in_plane,
    place_in_plane,
    plane_fields,
    spread_force,
)
from devices.falcon import guardian, wire
from devices.falcon.kinematics import HALF, MIDDLE, RADIANS, ZERO, find_position, find_torques, forward
from devices.falcon.wire import BLUE, GREEN, HOMED, HOMING, RED, FalconLine, PacketReader, Reply
from haptics.clock import Clock, instruct, raise_if_cancelled
from haptics.device import Channel
from haptics.errors import DeviceFault, DeviceOpenError
from haptics.jit import kernel
from haptics.records import fields
from haptics.settings import bounded, documented, string, unrestricted

NAME = "falcon"

MOST_OPEN = 2
"""Maximum number of unanswered packets; further forces are delayed."""

LOST = 0.03
"""Silence after which unanswered packets count as lost [s]."""

REST_TIMEOUT = 0.1
"""Timeout of the reply to a packet without force [s]."""

_READ_TIMEOUT = 0.02
_ROUND = 4e-3  # time between two packets of homing [s]
_LOADS = 3  # maximum number of attempts to load the firmware
_PATIENCE = 0.02  # time until the instructions are shown [s]
_SILENCE = 1.0  # timeout of the replies during homing [s]
_STILL = 15.0  # largest change of a count in a round of homing of a handle that is held still
_OFF_PLANE = 0.02  # largest distance from the plane at the start [m]


@documented
@dataclass(frozen=True)
class FalconSettings(PlaneSettings):
    """Settings of the Falcon, in addition to `PlaneSettings`."""

    plane: str = string(
        "x-z",
        allowed="two axes of the device such as xy, xz or x-z",
        doc="axes of the device that become x and y, with a minus sign before a reversed one; the third axis is held",
    )
    origin: tuple[float, ...] = unrestricted(
        MIDDLE, "three numbers such as [0.0, 0.0, 0.1225]", doc="middle of the workspace, along the device's axes [m]"
    )
    round_trip: float = bounded(
        2e-3, above=0.0, maximum=0.1, unit="s", doc="expected time of an exchange, for advice on parameters"
    )
    mass: float = bounded(
        0.2, minimum=0.05, maximum=5.0, unit="kg", doc="moving mass at the handle, for advice and for the emulation"
    )
    max_force: float = bounded(5.0, above=0.0, maximum=9.0, unit="N", doc="largest force in the plane")
    hold_stiffness: float = bounded(
        1000.0, minimum=0.0, maximum=1000.0, unit="N/m", doc="spring that holds the third axis; 0 to leave it free"
    )
    hold_force: float = bounded(6.0, minimum=0.0, maximum=8.0, unit="N", doc="largest force that holds the third axis")
    resolution: float = bounded(
        4.3e-5, minimum=0.0, maximum=1e-3, unit="m", doc="smallest step of the position: an encoder count"
    )
    serial: str = string(
        "", allowed="a text", digits=True, doc="serial number of the Falcon; may be empty if there is only one"
    )
    firmware: str = string(
        "", allowed="a file", doc="firmware to load into a Falcon that was switched off; none is provided"
    )
    motor_scale: float = bounded(
        10000.0,
        minimum=100.0,
        maximum=100000.0,
        unit="1/(N m)",
        doc="motor number per torque of a crank; haptics calibrate falcon measures it with a weight",
    )
    max_motor: float = bounded(
        4096.0,
        minimum=1.0,
        maximum=float(wire.LARGEST_MOTOR),
        unit="1",
        doc="largest motor number; a larger force keeps its direction and is scaled down",
    )
    patience: float = bounded(
        120.0, minimum=0.1, maximum=600.0, unit="s", doc="longest time for the person to home the Falcon"
    )
    reply_timeout: float = bounded(
        0.1, minimum=0.02, maximum=2.0, unit="s", doc="time without an answer after which the Falcon counts as lost"
    )

    def __post_init__(self) -> None:
        if self.plane_points and self.origin in (MIDDLE, list(MIDDLE)):
            object.__setattr__(self, "origin", (0.0, 0.0, 0.0))  # the first point takes its place
        super().__post_init__()

    @property
    def identity(self) -> str:
        """Identity of the device for messages."""
        return self.serial or "the only Falcon"


# --- opening ----------------------------------------------------------------------------------------------------------


def read_image(file: str) -> bytes:
    """Return the contents of a firmware file.

    Raises
    ------
    DeviceOpenError
        If there is no file, it cannot be read, or its size is impossible.
    """
    if not file:
        raise DeviceOpenError(
            f"{NAME}: the Falcon has no firmware, which it loses when it is switched off: name a file, "
            "device.firmware=FILE (docs/falcon.md says where it comes from)."
        )
    try:
        image = Path(file).expanduser().read_bytes()
    except OSError as error:
        raise DeviceOpenError(f"{NAME}: device.firmware = {file!r} cannot be read: {error.strerror}.") from error
    if not 0 < len(image) <= wire.LARGEST_FILE:
        raise DeviceOpenError(
            f"{NAME}: device.firmware = {file!r} has {len(image)} bytes; a firmware has between 1 and "
            f"{wire.LARGEST_FILE}."
        )
    return image


def start_firmware(line: FalconLine, file: str) -> None:
    """Load the firmware of the `file` unless one is running.

    Raises
    ------
    DeviceOpenError
        If it cannot be loaded, or does not answer.
    """
    if wire.is_running(line):
        return
    image = read_image(file)
    for left in reversed(range(_LOADS)):
        try:
            wire.load_firmware(line, image)
            break
        except wire.BootError as error:
            if not left:
                raise DeviceOpenError(f"{NAME}: the firmware {file} was not loaded: {error}.") from error
    if not wire.is_running(line):
        raise DeviceOpenError(
            f"{NAME}: the Falcon took {file} and does not answer: this is no firmware of the Falcon. Set another "
            "device.firmware; then unplug its power supply and plug it in again."
        )


def _wait_for(line: FalconLine, lights: int, words: str, patience: float, ready: Callable[[Reply], bool]) -> None:
    """Exchange packets without force until the reply is `ready`; show the instructions while waiting.

    Raises
    ------
    DeviceOpenError
        If that takes longer than `patience` [s], or the Falcon does not answer.
    """
    begin = answered = line.now()
    shown = False
    while True:
        raise_if_cancelled()
        reply = wire.ask(line, lights)
        now = line.now()
        if reply is not None:
            answered = now
            if ready(reply):
                return
        if now - answered > _SILENCE:
            raise DeviceOpenError(f"{NAME}: the Falcon has stopped answering: {wire.AGAIN}.")
        if now > begin + patience:
            raise DeviceOpenError(f"{NAME}: not done within device.patience = {patience:g} s: {words}.")
        if not shown and now > begin + _PATIENCE:
            shown = True
            instruct(words)
        line.read_until(lambda _: False, _ROUND)


def home(line: FalconLine, plane: Plane, extent: tuple[float, float], patience: float) -> None:
    """Wait until the person has homed the encoders and holds the handle still in the workspace, at the plane.

    Parameters
    ----------
    line : FalconLine
        Line to the running firmware.
    plane : Plane
        Plane of the workspace.
    extent : (float, float)
        Half the sides of the workspace in the plane [m].
    patience : float
        Timeout of each step [s].

    Raises
    ------
    DeviceOpenError
        After the timeout.
    """
    across, along = extent
    last = np.full(3, math.inf)

    def inside(reply: Reply) -> bool:
        nonlocal last
        before, last = last, np.array(reply.counts, np.float64)
        if reply.homed != HOMED or np.abs(last - before).max() > _STILL:
            return False
        place = forward(ZERO + RADIANS * last)
        if place is None:
            return False
        x, y, height = plane.axes @ (place - plane.middle)
        return bool(abs(x) <= across and abs(y) <= along and abs(height) <= _OFF_PLANE)

    words = "pull the handle of the Falcon all the way out, then push it all the way in"
    _wait_for(line, RED | HOMING, words, patience, lambda reply: reply.homed == HOMED)
    _wait_for(line, BLUE | HOMING, "hold the handle of the Falcon in the middle of its workspace", patience, inside)


# --- exchange ---------------------------------------------------------------------------------------------------------


class FalconExchange(Exchange):
    """Exchange of motor numbers for encoder counts, with a second thread that reads.

    A sample consists of the three counts and the buttons. Its time is the time of the request, which is earlier than
    the reading of the encoders. Replies arrive in the order of the requests.

    Parameters
    ----------
    line : FalconLine
        Line to the homed Falcon.
    settings : FalconSettings
        Settings of the exchange.

    Attributes
    ----------
    line : FalconLine
        The line.
    counters : dict
        Numbers of packets sent, replies, lost replies and malformed replies.
    """

    noun = NAME.title()
    remedy = "its last force may last: let go of the handle, and switch the Falcon off if it still pushes"
    sample_size, command_size = 4, 3

    def __init__(self, line: FalconLine, settings: FalconSettings) -> None:
        super().__init__(settings)
        self.line, self._reply_timeout = line, settings.reply_timeout
        self.counters = dict.fromkeys(("packets", "replies", "lost", "malformed"), 0)
        self._reader, self._open = PacketReader(), deque[float]()  # times of the unanswered requests
        self._sent = self._read = line.now()
        self._silence = self._last_commanded = 0.0
        self._last: tuple[int, ...] = (0, 0, 0)
        self._sending = threading.Lock()
        self._receiver = threading.Thread(target=self._receive_all, name="replies of the Falcon", daemon=True)

    def start(self) -> None:
        """Start both threads."""
        self._receiver.start()
        super().start()

    def stop(self) -> None:
        """Stop both threads; the caller may then use the connection."""
        super().stop()
        if self._receiver.is_alive():
            self._receiver.join()

    def exchange(self, now: float, command: tuple[float, ...]) -> None:
        """Send the motor numbers if due; the other thread publishes the reply."""
        if self._open and min(self._silence, now - self._sent) > LOST:
            self.counters["lost"] += len(self._open)
            self._open.clear()
        motors = tuple(round(number) for number in command)
        due = self.commanded > self._last_commanded or now - self._sent >= self._keep_alive
        stop = not any(motors) and any(self._last)  # never delayed
        if stop or (due and len(self._open) < MOST_OPEN):
            self._last_commanded = self.commanded
            self._send(motors)

    def _send(self, motors: tuple[int, ...]) -> None:
        """Send motor numbers. After a failure that one thread has detected, the other stops sending forces."""
        with self._sending:
            if any(motors) and self.lost[0]:
                return
            self._sent, self._last = self.line.now(), motors
            self._open.append(self._sent)
            self.counters["packets"] += 1
            self.line.write(wire.encode(motors, (GREEN if any(motors) else BLUE) | HOMING))

    def _receive_all(self) -> None:
        """Receive replies until the end or a failure, which is reported to the tick."""
        try:
            self._read = self.line.now()
            while not self._ending:
                self.receive(_READ_TIMEOUT)
        except Exception as error:  # report every kind of exception to the tick
            self._fail(error)

    def receive(self, timeout: float) -> bool:
        """Publish the samples of the replies in the next packet; return True if there was one.

        Raises
        ------
        TransferError
            If the Falcon is lost, or was silent for too long. Time in which this process was stopped does not count.
        ExchangeEnded
            If it is no longer homed.
        """
        answered, data = False, self.line.read(timeout) or b""
        now, before = self.line.now(), self._read
        self._read, self._silence = now, self._silence + min(now - before, _READ_TIMEOUT)
        for reply in self._reader.feed(data):
            try:
                sent = self._open.popleft()
            except IndexError:  # counted as lost, maybe just now by the other thread
                sent = math.nan
            if reply is None:
                self.counters["malformed"] += 1
                continue
            if reply.homed != HOMED:
                raise ExchangeEnded(
                    "the Falcon is no longer homed: it was switched off, or its firmware restarted. Start again and "
                    "home it."
                )
            self._silence, answered = 0.0, True
            self.counters["replies"] += 1
            if math.isfinite(sent):
                self.samples.publish(sent, *reply.counts, reply.buttons)
        if self._silence > self._reply_timeout:
            raise TransferError(f"the Falcon did not answer within {self._reply_timeout:g} s", Trouble.TIMEOUT)
        return answered

    def come_to_rest(self) -> bool:
        """Send motor numbers of zero twice and return True if the second packet was answered.

        The first packet may complete one that was interrupted. Replies to earlier packets do not count.
        """
        answered = False
        for _ in range(2):
            self._send((0, 0, 0))
            answered, latest = False, self.line.now() + REST_TIMEOUT
            while self._open and (left := latest - self.line.now()) > 0.0:
                self._silence = 0.0  # this timeout applies, not the one of a run
                answered = self.receive(left)
            answered = answered and not self._open
            self._open.clear()
        return answered

    def fail_safe(self, error: Exception) -> None:
        """Send motor numbers of zero without waiting for the answer."""
        self._send((0, 0, 0))


# --- computation per tick ---------------------------------------------------------------------------------------------

CHANNELS: tuple[Channel, ...] = (("encoder", "1", 3), ("motor", "1", 3))
"""Recorded channels, after the common ones: encoder counts, and motor numbers of the last command."""

NO_POSITION = 3
"""Value of ``fault``: the encoder counts belong to no position of the handle."""

FALCON = np.dtype(
    [
        *plane_fields(FalconExchange.sample_size, FalconExchange.command_size),
        ("theta", "<f8", (3,)),
        ("place", "<f8", (3,)),
        ("torque", "<f8", (3,)),
        *fields("<f8", "motor_scale max_motor"),
        *fields("<i8", "placed"),
    ]
)
"""State of the device in one record: crank angles [rad], position [m] if ``placed``, and torques [N m]."""


@kernel
def take_falcon(s: Any, now: float, elapsed: float) -> None:
    """Read the newest sample at the nominal time `now`, `elapsed` after the clock's zero [s]."""
    if not begin_sample(s, now, elapsed):
        return
    if copy_sample(s):
        for i in range(3):
            s.channels[2 + i] = s.sample[1 + i]
            s.theta[i] = ZERO + RADIANS * s.sample[1 + i]
        if not find_position(s.theta, s.place):
            s.fault = NO_POSITION
            return
        for i in range(3):
            s.sample[1 + i] = s.place[i]
        s.placed = 1
        s.buttons = int(s.sample[4])
        place_in_plane(s, 1)
    estimate_in_plane(s)


@kernel
def give_falcon(s: Any, x: float, y: float) -> None:
    """Publish the motor numbers for the force [N]: in the plane, and along the third axis."""
    if not accept(s, x, y):
        return
    spread_force(s)
    if s.placed == 0 or not find_torques(s.theta, s.place, s.given, s.torque):
        for i in range(3):
            s.torque[i] = 0.0
    largest = 0.0
    for i in range(3):
        s.given[i] = -s.motor_scale * s.torque[i]  # a positive motor number decreases the angle of its crank
        largest = max(largest, abs(s.given[i]))
    for i in range(3):
        if largest > s.max_motor:
            s.given[i] *= s.max_motor / largest
        s.channels[5 + i] = s.given[i]
    send_command(s)


# --- driver -----------------------------------------------------------------------------------------------------------


class Falcon(PlaneDriver):
    """Falcon in a plane: motion in the sample, force in the command.

    The position of the handle is relative to the middle of the workspace (``origin``), along two of the device's axes:
    x right, y up, z towards the person. The driver holds the third axis with a spring and a damper, up to
    ``hold_force``; during safe output that axis is free. The weight of the handle is not compensated.

    Parameters
    ----------
    settings : mapping, optional
        Settings of `FalconSettings`.
    clock : Clock, optional
        Clock of the run; without it, time counts from ``open``.

    Attributes
    ----------
    backend : usb.backend.IBackend or None
        USB backend to use instead of libusb.

    Raises
    ------
    ConfigurationError
        On a wrong setting.
    """

    name = NAME
    settings_class: ClassVar[type[FalconSettings]] = FalconSettings
    settings: FalconSettings
    backend: Any = None

    def __init__(self, settings: Mapping[str, Any] | None = None, *, clock: Clock | None = None) -> None:
        super().__init__(
            settings,
            clock,
            FALCON,
            (take_falcon, give_falcon),
            identity=lambda own: own.identity,
            half=lambda own: HALF,
            channels=CHANNELS,
        )
        self._record["motor_scale"], self._record["max_motor"] = self.settings.motor_scale, self.settings.max_motor

    @property
    def facts(self) -> dict[str, Any]:
        """Serial number and counters of the exchange, for the recording."""
        exchange = self._opened()
        assert isinstance(exchange, FalconExchange)
        return {"serial": exchange.line.serial, **exchange.counters}

    def _prepare(self) -> None:
        super()._prepare()
        self._record["placed"] = 0

    def _bus(self, resources: contextlib.ExitStack) -> Any:
        """Return the USB backend, None for libusb; `resources` receives the clean-up."""
        return self.backend

    def _guardian(self, line: FalconLine) -> tuple[str, list[str]]:
        """Return script and arguments of the guardian; no script for none."""
        if self.backend is not None or not guardian.AVAILABLE:
            return "", []
        return guardian.__file__, [bus.node_of(line.device), wire.encode((0, 0, 0), RED | HOMING).hex()]

    def _connect(self, resources: contextlib.ExitStack) -> FalconExchange:
        """Open the Falcon, load its firmware, home it, and start the guardian."""
        own = self.settings
        try:
            line = wire.open_line(own.serial, self._bus(resources))
            resources.callback(line.close)
            start_firmware(line, own.firmware)
            home(line, Plane.of(own), self.spec.workspace_max, own.patience)
            instruct("")
            exchange = FalconExchange(line, own)
            self._safeguard(exchange, resources, *self._guardian(line))
            if not exchange.come_to_rest():
                raise DeviceOpenError(f"{NAME}: the Falcon did not answer: {wire.AGAIN}.")
            return exchange
        except TransferError as error:
            raise DeviceOpenError(f"{NAME}: {error}") from error

    def _fault_error(self, fault: int) -> DeviceFault:
        if fault == NO_POSITION:
            counts = ", ".join(f"{count:g}" for count in self._record["channels"][0][2:5])
            return DeviceFault(
                f"{self.name}: the encoder counts {counts} belong to no position of the handle: start again, and pull "
                "the handle all the way out and push it all the way in when asked to."
            )
        return super()._fault_error(fault)
