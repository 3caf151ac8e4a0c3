"""Novint Falcon on the emulated USB bus: FTDI chip, boot loader, firmware, and a handle with a person's hand.

It is written from the byte layouts of the sources named in `devices.falcon.wire` and shares no code with the driver;
its kinematics are circles that intersect, its forces derivatives of the angles. Where the real device is not
documented it does the worst: the firmware keeps the last motor numbers for ever.

The person homes the handle when the Falcon asks for it: within 0.3 s it is out, in, and back at the start point of the
hand. The boot loader runs an image that begins with `MAGIC` and its length (`make_image`); any other file hangs the
processor.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import math
import random
import socket
import struct
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

from devices.common.usb_queue import Done
from devices.emulators import usb_bus as bus
from devices.emulators.handle import SUBSTEP, HandleInSpace, Space
from devices.emulators.loop import Loop
from devices.emulators.usb_server import BusServer
from devices.emulators.wire_faults import FALCON_FAULTS, OPENING, WireFaults, parse_wire_fault

# --- mechanism --------------------------------------------------------------------------------------------------------

_DIRECTIONS = [math.radians(105 - 120 * leg) for leg in range(3)]
_SHOULDER, _WRIST = (0.0400, -0.02309), (0.01443, -0.025)
_CRANK, _SHIN, _LINKS = 0.060, 0.1025, 2 * 0.01125
_COUNT = 360.0 / 1280 * 14.25 / 110.0
"""Angle of a crank per encoder count [degree]."""

_INDEX = 35.0
_DIFFERENCE, _NEAR = 1e-6, 5e-5  # of positions: for derivatives, and within which they are the same [m]

OUT, IN = 0.157, 0.087
"""Distances of the handle from the base to which the person pulls and pushes it [m]."""

_REACTION = 0.03
_STROKES = (0.06, 0.13, 0.08)
"""Durations of pulling out, pushing in, and returning to the start point of the hand [s]."""


def crank_angles(place: Sequence[float]) -> list[float]:
    """Return the crank angles of a position [degree]: where two circles intersect, the lower point."""
    angles = []
    for direction in _DIRECTIONS:
        cosine, sine = math.cos(direction), math.sin(direction)
        u = place[0] * cosine + place[1] * sine - _SHOULDER[0] + _WRIST[0]
        v = place[1] * cosine - place[0] * sine - _SHOULDER[1] + _WRIST[1]
        radius, distance = _LINKS + math.sqrt(_SHIN**2 - v**2), math.hypot(u, place[2])
        chord = (distance**2 + _CRANK**2 - radius**2) / (2.0 * distance)
        away = math.sqrt(_CRANK**2 - chord**2)
        elbow = (chord * u + away * place[2]) / distance, (chord * place[2] - away * u) / distance
        angles.append(math.degrees(math.atan2(elbow[1], elbow[0])))
    return angles


class Mechanism:
    """Handle of the Falcon, its motors and encoders, and the person who holds it.

    Parameters
    ----------
    axes, middle, room
        Directions of x, y and the height of the hand's plane, its origin [m], and the extent along them [m].
    hand, seed, mass, damping, sag
        See `devices.emulators.handle.HandleInSpace`.
    scale : float
        Motor number per torque of a crank [1/(N m)].
    """

    def __init__(
        self,
        axes: Sequence[Sequence[float]],
        middle: Sequence[float],
        room: Sequence[float],
        hand: Mapping[str, Any] | None = None,
        *,
        scale: float = 10000.0,
        **handle: Any,
    ) -> None:
        self.handle, self._sag = HandleInSpace(axes, room, hand, **handle), handle["sag"]
        self.handle.sag = 0.0
        self._middle, self._scale, self._random = tuple(middle), scale, random.Random(handle["seed"])
        self._origin = self._now = 0.0
        self._homing = math.nan
        self.force: Space = (0.0, 0.0, 0.0)
        self._differentiated: Space = (math.inf, 0.0, 0.0)
        self._derivatives: list[list[float]] = []
        self.switch_on()

    def switch_on(self, homed: bool = False) -> None:
        """Set the encoders to random counts, or to their true ones if they are `homed`."""
        self.homed = 7 if homed else 0
        self._errors = [0 if homed else self._random.randrange(-2000, 2000) for _ in range(3)]

    @property
    def place(self) -> Space:
        """Position of the handle [m]."""
        start = tuple(a + b for a, b in zip(self.handle.place, self._middle, strict=True))
        if not self._now > self._homing:
            return start
        way = [start, (0.0, 0.0, OUT), (0.0, 0.0, IN), start]
        gone = self._now - self._homing
        for (first, last), duration in zip(itertools.pairwise(way), _STROKES, strict=True):
            if gone < duration:
                return tuple(a + (b - a) * gone / duration for a, b in zip(first, last, strict=True))
            gone -= duration
        return start

    @property
    def _true_counts(self) -> list[int]:
        return [round((angle - _INDEX) / _COUNT) for angle in crank_angles(self.place)]

    @property
    def counts(self) -> list[int]:
        """Encoder counts."""
        return [count + error for count, error in zip(self._true_counts, self._errors, strict=True)]

    def advance(self, now: float, motors: Sequence[int], homing: bool) -> None:
        """Advance to the time `now` [s] with these motor numbers; the person acts in `homing` mode."""
        if not math.isnan(self._homing):
            while self._now < now:  # in steps, so that every index mark is seen
                before, self._now = self._true_counts, min(self._now + 2e-3, now)
                for axis, (old, new) in enumerate(zip(before, self._true_counts, strict=True)):
                    if homing and self._now > self._homing and old > 0 >= new:
                        self.homed |= 1 << axis
                        self._errors[axis] = 0
            if now > self._homing + sum(_STROKES):
                self._homing, self._origin = math.nan, now
            return
        if self.homed != 7:  # the person waits
            self._homing, self._now = now + _REACTION if homing else math.nan, now
            return
        if now - self._now < SUBSTEP:
            return
        if any(motors):  # before the first force, the person holds the handle in the plane
            self.handle.sag = self._sag
        self.force = self._force(motors)
        self.handle.advance(now - self._origin, self.force)
        self._now = now

    def _force(self, motors: Sequence[int]) -> Space:
        """Return the force of the motors on the hand [N]: power of the cranks is power of the handle."""
        if not any(motors):
            return (0.0, 0.0, 0.0)
        place = self.place
        if math.dist(place, self._differentiated) > _NEAR:
            self._differentiated, self._derivatives = place, []
            for axis in range(3):
                ends = [list(place), list(place)]
                ends[0][axis] -= _DIFFERENCE
                ends[1][axis] += _DIFFERENCE
                low, high = map(crank_angles, ends)
                self._derivatives.append(
                    [math.radians(b - a) / (2.0 * _DIFFERENCE) for a, b in zip(low, high, strict=True)]
                )
        torques = [-motor / self._scale for motor in motors]
        return tuple(sum(map(float.__mul__, torques, turned)) for turned in self._derivatives)


# --- processor --------------------------------------------------------------------------------------------------------

MAGIC = b"emulated Falcon\n"
"""Begin of an image that the emulated processor can run, followed by its length (u32)."""

BOOT, SYNCHRONISING, LOADING, RUNNING, DEAD = "boot", "synchronising", "loading", "running", "dead"
"""States of the processor."""

_BAUD = {0x4138: 9600, 0x15: 140_000, 0x02: 1_500_000}
_SPEEDS = {BOOT: 9600, SYNCHRONISING: 140_000, LOADING: 140_000, RUNNING: 1_500_000}
_BITS = 10  # per byte, with start and stop


def make_image(size: int = 1000) -> bytes:
    """Return a firmware of `size` bytes for the emulated processor."""
    head = MAGIC + struct.pack("<I", size)
    return head + bytes(k * 37 & 0xFF for k in range(size - len(head)))


class Processor:
    """Processor with boot loader and firmware.

    Attributes
    ----------
    state : str
        State.
    motors : tuple of int
        Present motor numbers.
    lights, homing : int, bool
        LEDs and homing mode.
    loads : int
        Number of bytes that were loaded.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism
        self.restart()

    def restart(self, state: str = BOOT) -> None:
        """Restart, without force."""
        self.state, self.lights, self.homing = state, 0, False
        self.motors: tuple[int, ...] = (0, 0, 0)
        self._input, self.loads = b"", 0

    def receive(self, data: bytes, baud: int, faults: Set[str]) -> bytes:
        """Process bytes sent at `baud`; return the answer. At another speed the processor receives nothing."""
        if _SPEEDS.get(self.state) != baud:
            return b""
        self._input += data
        if self.state == RUNNING:
            return b"".join(self._answer(faults) for _ in range(self._packets()))
        answer = b""
        if self.state == BOOT and b"\x0aC\x0d" in self._input:
            self.state, self._input, answer = SYNCHRONISING, b"", b"\x0aD\x2c\x0d"
        elif self.state == SYNCHRONISING and data[:1] == b"A":
            self.state, self._input, answer = LOADING, b"", b"A"
        elif self.state == LOADING:
            answer, image = data, self._input
            self.loads = len(image)
            head = len(MAGIC)
            if image.startswith(MAGIC) and len(image) >= head + 4:
                if len(image) >= struct.unpack_from("<I", image, head)[0]:
                    self.restart(RUNNING)
        return answer

    def _packets(self) -> int:
        """Apply the complete packets of the input; return their number."""
        count = 0
        while (start := self._input.find(b"<")) >= 0 and len(self._input) >= start + 16:
            packet, self._input = self._input[start : start + 16], self._input[start + 16 :]
            if packet[15:] != b">" or b"<" in packet[1:]:
                self._input = packet[1:] + self._input
                continue
            digits = [byte - ord("A") for byte in packet[1:15]]
            words = [
                digits[4 * k] | digits[4 * k + 1] << 4 | digits[4 * k + 2] << 8 | digits[4 * k + 3] << 12
                for k in range(3)
            ]
            self.motors = tuple(word - 0x10000 if word & 0x8000 else word for word in words)
            self.lights, self.homing = digits[12] & 0xE, bool(digits[12] & 1)
            count += 1
        return count

    def _answer(self, faults: Set[str]) -> bytes:
        digits = [count >> shift & 0xF for count in self.mechanism.counts for shift in (0, 4, 8, 12)]
        homed = 0 if "unhomed" in faults else self.mechanism.homed
        return b"<" + bytes(ord("A") + digit for digit in (*digits, homed << 4, 0)) + b">"


# --- USB device -------------------------------------------------------------------------------------------------------

ENDPOINT_OUT, ENDPOINT_IN = 0x02, 0x81
STATUS = b"\x01\x60"
"""Modem status in front of the data of every packet."""

_PAYLOAD = 62
_SHORTEST_PAUSE = 2e-5


class _Chip(bus.UsbFirmware):
    """FTDI chip: descriptors, requests, and the buffer to the host."""

    device_descriptor = struct.pack(
        bus.DEVICE_FORM, 18, bus.DEVICE, 0x0110, 0, 0, 0, 8, 0x0403, 0xCB48, 0x0400, 1, 2, 3, 1
    )
    _interfaces = bytes.fromhex("09 04 00 00 02 ff ff ff 02  07 05 81 02 40 00 00  07 05 02 02 40 00 00")
    configuration_descriptor = (
        struct.pack(bus.CONFIGURATION_FORM, 9, bus.CONFIGURATION, 9 + len(_interfaces), 1, 1, 0, 0x80, 45) + _interfaces
    )

    def __init__(self, falcon: EmulatedFalcon, serial: str) -> None:
        self.strings = "Novint", "Falcon", serial
        self._falcon = falcon
        self.power_on()

    def power_on(self) -> None:
        """Reset the chip."""
        self.baud, self.latency, self.event, self.dtr, self.sent = 9600, 0.016, -1, False, 0.0
        self.to_host: deque[tuple[float, int]] = deque()

    def control(self, request_type: int, request: int, value: int, index: int, data_or_length: bytes | int) -> bytes:
        """Reply to a request on endpoint 0."""
        if (request_type, request, value >> 8) == (bus.IN, bus.GET_DESCRIPTOR, bus.STRING):
            return self.string(value & 0xFF)[: data_or_length if isinstance(data_or_length, int) else None]
        if request_type != 0x40:
            raise bus.Stall
        if request == 0 and value in {0, 1}:
            self.to_host.clear()
        elif request == 1 and value & 0x0100:
            dtr = bool(value & 1)
            if dtr and not self.dtr and self._falcon.processor.state != DEAD:
                self._falcon.processor.restart()
            self.dtr = dtr
        elif request == 3:
            self.baud = _BAUD.get(value, 0)
        elif request == 6:
            self.event = value & 0xFF if value & 0x100 else -1
        elif request == 9:
            self.latency = value * 1e-3
        elif request > 4:
            raise bus.Stall
        return b""

    # the buffers in both directions, as a pair of endpoints

    def out(self, packet: bytes, faults: Set[str]) -> bool:
        """Send data to the processor at the present speed, and buffer its answer."""
        falcon = self._falcon
        if not self.baud:
            return True
        duration = _BITS * len(packet) / self.baud
        answer = falcon.processor.receive(packet, self.baud, faults)
        falcon.note_motors()
        if answer and "malformed" in faults:
            falcon.answers += 1
            answer = answer if falcon.answers % 2 else answer[:7] + answer[8:]
        if "dropout" not in faults:
            instant = falcon.now + duration
            self.to_host.extend((instant + (k + 1) * _BITS / self.baud, byte) for k, byte in enumerate(answer))
        return True

    def due(self) -> float:
        """Return the time at which the latency timer expires or the event character arrives [s]."""
        events = (instant for k, (instant, byte) in enumerate(self.to_host) if k and byte == self.event)
        return min(self.sent + self.latency, next(events, math.inf))

    def poll_in(self) -> bytes | None:
        """Return the next packet: data when enough wait or with the event character, else at the latency timer."""
        now = self._falcon.now
        ready = sum(instant <= now for instant, _ in self.to_host)
        if ready < _PAYLOAD and now < self.due():
            return None
        self.sent = now
        return STATUS + bytes(self.to_host.popleft()[1] for _ in range(min(ready, _PAYLOAD)))


class EmulatedFalcon(bus.UsbDevice):
    """Falcon that can be plugged and unplugged.

    Parameters
    ----------
    mechanism : Mechanism
        Handle and person.
    serial : str
        Serial number.
    state : str
        ``switched on`` without firmware, ``loaded`` with it, or ``homed``.
    time : WallTime, optional
        Clock; by default real time.
    faults : iterable of str
        Faults with their times, ``NAME@SECONDS+DURATION`` (`devices.emulators.wire_faults.FALCON_FAULTS`).

    Attributes
    ----------
    chip, processor, mechanism
        Parts of the Falcon.
    changed : threading.Condition
        Notified after every packet; it shares the lock of the device.
    zero_at : float
        Time at which the last motor became zero [s, clock of the device]; nan while one is not.
    answers : int
        Number of replies during the fault ``malformed``.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        *,
        serial: str = "FALCON01",
        state: str = "homed",
        time: bus.WallTime | None = None,
        faults: Iterable[str] = (),
    ) -> None:
        self.mechanism, self.processor = mechanism, Processor(mechanism)
        self.chip = _Chip(self, serial)
        self.firmware = self.chip
        by_part: dict[bool, list[str]] = {False: [], True: []}
        for text in faults:
            by_part[parse_wire_fault(text, FALCON_FAULTS).name in OPENING].append(text)
        super().__init__(WireFaults(FALCON_FAULTS, by_part[False]), time)
        self._opening = WireFaults(FALCON_FAULTS, by_part[True])
        self.faults.origin = math.inf
        self.changed = threading.Condition(self.lock)
        self.zero_at, self.answers = self.origin, 0
        if state != "switched on":
            self.processor.restart(RUNNING)
            mechanism.switch_on(homed=state == "homed")
        self._last: frozenset[str] = frozenset()
        self.plug()

    def plug(self) -> None:
        """Plug the USB cable in, under a new address."""
        with self.lock:
            self.move()
            self.chip.power_on()
            self.plugged = True

    def unplug(self) -> None:
        """Unplug the USB cable; the processor keeps its state."""
        with self.lock:
            self.plugged = False
            self.owners.clear()
            self.halted.clear()

    def bind(self, interface: int) -> None:
        """Assign an interface to a kernel driver, as a user may have configured it."""
        self.drivers.add(interface)

    def pipe(self, endpoint: int) -> _Chip:
        """Return the pair of endpoints to which an endpoint belongs."""
        return self.chip

    def pause(self) -> float:
        """Return the time until the chip sends a packet [s]."""
        return max(self.chip.due() - self.now, _SHORTEST_PAUSE)

    def note_motors(self) -> None:
        """Note the time at which the motors become zero; faults begin with the first force."""
        if any(self.processor.motors):
            self.zero_at = math.nan
            self.faults.origin = min(self.faults.origin, self.now)
        elif math.isnan(self.zero_at):
            self.zero_at = self.time.now()

    def catch_up(self) -> frozenset[str]:
        """Move the handle up to the present; return the names of the active faults."""
        with self.lock:
            now, processor = self.now, self.processor
            self.mechanism.advance(now, processor.motors, processor.homing)
            faults = self._opening.at(now) | self.faults.at(now if math.isfinite(self.faults.origin) else -math.inf)
            begun, ended, self._last = faults - self._last, self._last - faults, faults
            if "unplug" in begun:
                self.unplug()
            if "unplug" in ended:
                self.plug()
            if "no-power" in begun:
                processor.restart(DEAD)
                self.note_motors()
            if "no-power" in ended:
                processor.restart()
                self.mechanism.switch_on()
            return faults

    def observe(self) -> dict[str, Any]:
        """Return the true state of the Falcon as plain values."""
        with self.lock:
            self.catch_up()
            return {
                "state": self.processor.state,
                "motors": self.processor.motors,
                "lights": self.processor.lights,
                "force": self.mechanism.force,
                "place": self.mechanism.place,
                "homed": self.mechanism.homed,
                "zero_at": None if math.isnan(self.zero_at) else self.zero_at,
            }


class DirectQueue:
    """Queue of transfers for a Falcon in this process (`devices.common.usb_queue.LibusbQueue`)."""

    def __init__(self, device: Any, out: int, inward: int) -> None:
        self._device, self._out, self._in = device, out, inward

    def submit(self, *data: bytes) -> None:
        """Send packets."""
        for packet in data:
            self._device.write(self._out, packet, 100)

    def wait(self, timeout: float) -> Done | None:
        """Return the next packet, or an error; None after `timeout` [s]."""
        try:
            return Done(False, 0, bytes(self._device.read(self._in, 64, max(math.ceil(timeout * 1e3), 1))))
        except TimeoutError:
            return None
        except OSError as error:
            return None if error.errno == errno.ETIMEDOUT else Done(False, error.errno or errno.EIO, b"")

    def close(self) -> None:
        """There is nothing to be sent."""


class EmulatedFalconBackend(bus.BulkBackend):
    """Backend for pyusb with emulated Falcons, of class `EmulatedFalcon`."""

    units: tuple[EmulatedFalcon, ...]

    def queues_of(self, device: Any) -> Callable[[int, int, int], DirectQueue]:
        """Return a function that makes queues of an open device."""
        return lambda interface, out, inward: DirectQueue(device, out, inward)


# --- process ----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def emulator(table: dict[str, Any]) -> Iterator[tuple[str, Callable[[], None]]]:
    """Build a Falcon; yield the address of its bus, and the function that serves it.

    The table has the arguments of `Mechanism`, and ``serial``, ``state``, ``faults`` and ``log``: the file for the
    final state (`EmulatedFalcon.observe`), empty for none.
    """
    own = {name: table.pop(name) for name in ("serial", "state", "faults")}
    log = table.pop("log")
    falcon = EmulatedFalcon(Mechanism(**table), **own)
    loop = Loop()
    with contextlib.ExitStack() as ends:
        address = f"{ends.enter_context(tempfile.TemporaryDirectory())}/falcon"
        listener = ends.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
        listener.bind(address)
        listener.listen()
        server = BusServer(EmulatedFalconBackend(falcon), loop, listener, falcon.observe)
        yield address, lambda: server.run(lambda: any(falcon.processor.motors), log)
