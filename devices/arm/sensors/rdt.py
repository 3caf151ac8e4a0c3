"""Common base of force sensors with ATI's raw data transfer over UDP.

A command is 8 bytes: 0x1234, command, count. A sensor streams records (`devices.arm.sensors.rdt`) to the client
that started it until it gets another command; a second client that starts it redirects the stream to itself. The only
replies are records: commands that must arrive are repeated until the stream shows their effect, or sent twice.

A sensor may send 7000 records per second where 1000 are needed, and only the newest record in the socket is of use.
Each read therefore empties the socket and keeps the newest record.
"""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import time
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from devices.arm.sensors.force_sensor import Health, Sample, Wire
from devices.arm.sensors.mounting import SensorSettings
from haptics.errors import ConfigurationError, DeviceFault, DeviceNotFoundError, DeviceOpenError
from haptics.settings import bounded, documented, string

RECORD = struct.Struct(">3I6i")
_NUMBERS = struct.Struct(">3I")

_WRAP = 1 << 32
_HALF = 1 << 31

RESTARTED = 10
"""Number of consecutive old-looking records after which the stream is considered restarted."""


class Record(NamedTuple):
    """Record: number, number of the measurement, status and the counts of Fx, Fy, Fz, Tx, Ty, Tz.

    It is 36 bytes, big-endian. Numbers are 32 bits and wrap.
    """

    number: int
    measurement: int
    status: int
    counts: tuple[int, ...]


class Records:
    """Collects datagrams and returns the newest record.

    A datagram holds one record, or several back to back. Datagrams may be lost, duplicated or reordered.
    The status bits of all records since the last `collect` also apply to the newest one: after a peak that overloaded
    the sensor, filtered values are wrong for a while.

    Attributes
    ----------
    tally : dict
        Number of records ``received`` (new ones), ``lost`` (missing when a newer one arrived), ``duplicated``, ``late``
        (after a newer one, dropped), ``restarted`` (the numbers restarted); number of ``malformed`` datagrams.
    """

    def __init__(self) -> None:
        self.tally = dict.fromkeys(("received", "lost", "duplicated", "late", "restarted", "malformed"), 0)
        self._last: int | None = None
        self._late = 0
        self._status = 0
        self._newest: tuple[bytes, int] | None = None

    def reset(self) -> None:
        """Reset: the next record is the first of a stream."""
        self._last, self._late, self._status, self._newest = None, 0, 0, None

    def add(self, datagram: bytes) -> None:
        """Add a datagram."""
        if not datagram or len(datagram) % RECORD.size:
            self.tally["malformed"] += 1
            return
        for offset in range(0, len(datagram), RECORD.size):
            number, _, status = _NUMBERS.unpack_from(datagram, offset)
            if self._is_new(number):
                self._status |= status
                self._newest = datagram, offset

    def collect(self) -> Record | None:
        """Return the newest record since the last call, with all status bits since; None if no record arrived."""
        if self._newest is None:
            return None
        number, measurement, _, *counts = RECORD.unpack_from(*self._newest)
        record = Record(number, measurement, self._status, tuple(counts))
        self._newest, self._status = None, 0
        return record

    def _is_new(self, number: int) -> bool:
        """Count a record with this `number`; return True if it is newer than all before."""
        tally = self.tally
        ahead = 1 if self._last is None else (number - self._last) % _WRAP
        if ahead == 0:
            tally["duplicated"] += 1
            return False
        if ahead >= _HALF:
            tally["late"] += 1
            self._late += 1
            if self._late < RESTARTED:
                return False
            tally["restarted"] += 1
            ahead = 1
        tally["received"] += 1
        tally["lost"] += ahead - 1
        self._last, self._late = number, 0
        return True


LATCHED = 0x8001_0000
"""Status of a monitored condition that was met some time ago, without other errors."""


def health_of(status: int) -> Health:
    """Return the validity of a record with this `status`."""
    if status == 0:
        return Health.OK
    return Health.WARNING if status == LATCHED else Health.FAULT


def status_words(status: int, meanings: Mapping[int, str]) -> str:
    """Return a description of a `status`, most serious first; empty if no bit is set.

    Parameters
    ----------
    status : int
        Status word, 32 bits.
    meanings : mapping
        Meaning of each bit (`devices.arm.sensors.ati`).
    """
    if status == 0:
        return ""
    bits = [bit for bit in range(30, -1, -1) if status >> bit & 1]
    texts = [meanings.get(bit, f"unknown status bit {bit}") for bit in bits] or ["an error it does not name"]
    return f"{'; '.join(texts)} (status {status:#010x})"


COMMAND = struct.Struct(">HHI")
_MARK = 0x1234
STOP, START = 0x0000, 0x0002

ATTEMPTS = 10
RETRY = 0.1
"""Number of attempts to start a stream, and the interval between them [s]."""

QUIET = 0.03
"""Time without data after which a stream has ended [s]."""

_READ_DELAY = 2.5e-4  # delay before a read [s], so that the reader does not wake up for every record at high rates

_STALLED = 0.01  # maximum time for which a slow sensor may repeat a measurement [s]

_LONGEST_DATAGRAM = 4096
_MOST_AT_ONCE = 2000  # maximum number of datagrams per read, which bounds its duration

_REPEATED = "it sends one measurement again and again: switch it off and on, and check the cable to its transducer"


@documented
@dataclass(frozen=True, kw_only=True)
class RdtSettings(SensorSettings):
    """Settings of a network sensor."""

    address: str = string("192.168.1.1", allowed="a network address", doc="host name or address of the sensor")
    port: int = bounded(49152, minimum=1, maximum=65535, doc="UDP port of the sensor's stream")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.address:
            raise ConfigurationError("device.sensor.address = '': must be the sensor's name or number in the network.")


class RdtWire(Wire):
    """Sensor behind a UDP socket; subclasses add configuration.

    Parameters
    ----------
    settings : RdtSettings
        Address of the sensor.
    name : str
        Its name in messages.

    Attributes
    ----------
    scale : (float, float)
        Units of the counts of force [N] and torque [N m].
    meanings : mapping
        Meanings of the bits of its status word.
    """

    def __init__(self, settings: RdtSettings, name: str) -> None:
        self._address = settings.address, settings.port
        self.name = name
        self.silence = (
            f"nothing comes from {settings.address}: check its power and network cable, that no firewall keeps UDP "
            f"from port {settings.port} out, and that no other program has started its stream."
        )
        self._records = Records()
        self.tally = self._records.tally
        self.tally["stalled"] = 0  # repeated measurements
        self._started = False
        self._socket: socket.socket | None = None
        self.scale = (0.0, 0.0)
        self.meanings: Mapping[int, str] = {}
        self._measurement: int | None = None
        self._measured = 0.0

    def open(self) -> None:
        """Connect, configure the sensor, start its stream and wait for the first record."""
        own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            own.connect(self._address)
        except (OSError, UnicodeError) as error:  # `UnicodeError` for invalid host names
            own.close()
            raise DeviceNotFoundError(
                f"the force sensor at {self._address[0]} cannot be reached ({error}): check device.sensor.address, and "
                "that this computer is in the sensor's network."
            ) from error
        own.setblocking(False)
        self._socket = own
        self.set_up()
        self._started = True
        for _ in range(ATTEMPTS):
            self.send_command(START)
            latest = time.monotonic() + RETRY
            while (left := latest - time.monotonic()) > 0.0:
                if self.poll(left) is not None:
                    return
        raise DeviceOpenError(f"{self.name} does not start to send: {self.silence}")

    def close(self) -> None:
        """Stop the stream, if this object has started it, and disconnect.

        A stream that was not started here may belong to another program.
        """
        own, self._socket = self._socket, None
        if own is None:
            return
        if not self._started:
            own.close()
            return
        self._started = False
        with own, contextlib.suppress(OSError):  # without a network, no command can be sent
            for _ in range(ATTEMPTS):
                _drain(own)
                _send(own, STOP)
                time.sleep(QUIET)
                if not _drain(own):
                    return

    def poll(self, patience: float) -> Sample | None:
        """Wait for at most `patience` [s] for records; read all of them and return the newest."""
        own = self._open_socket
        time.sleep(_READ_DELAY)
        try:
            if not select.select([own], [], [], patience)[0]:
                return None
            for datagram in _drain(own):
                self._records.add(datagram)
        except OSError as error:
            raise DeviceFault(
                f"the network failed ({error}): check the cable and the network of this computer."
            ) from error
        now = time.perf_counter()
        record = self._records.collect()
        if record is None:
            return None
        health, words = health_of(record.status), status_words(record.status, self.meanings)
        if record.measurement == self._measurement:
            self.tally["stalled"] += 1
            if health is Health.OK and now - self._measured > _STALLED:
                health, words = Health.WARNING, _REPEATED
        else:
            self._measurement, self._measured = record.measurement, now
        (force, torque), counts = self.scale, record.counts
        wrench = (*(force * count for count in counts[:3]), *(torque * count for count in counts[3:]))
        return Sample(wrench, now, self._measured, health, words)

    @abstractmethod
    def set_up(self) -> None:
        """Configure the sensor and read the units of its counts."""

    @property
    def _open_socket(self) -> socket.socket:
        if self._socket is None:
            raise DeviceFault(f"{self.name} is not open: call open() first.")
        return self._socket

    def send_command(self, command: int, count: int = 0) -> None:
        """Send a command, discarding the records before it, which belong to another stream."""
        try:
            _drain(self._open_socket)
            _send(self._open_socket, command, count)
        except OSError as error:
            raise DeviceOpenError(
                f"no command can be sent to {self.name} ({error}): check the network of this computer."
            ) from error
        self._records.reset()


def _send(own: socket.socket, command: int, count: int = 0) -> None:
    """Send a command; an earlier refusal only means that the sensor was not running at that time."""
    with contextlib.suppress(ConnectionRefusedError):
        own.send(COMMAND.pack(_MARK, command, count))


def _drain(own: socket.socket) -> list[bytes]:
    """Return the datagrams waiting in a socket."""
    datagrams: list[bytes] = []
    for _ in range(_MOST_AT_ONCE):
        try:
            datagrams.append(own.recv(_LONGEST_DATAGRAM, socket.MSG_DONTWAIT))
        except BlockingIOError:
            break
        except ConnectionRefusedError:  # an earlier command was refused, because the sensor was not running
            continue
    return datagrams
