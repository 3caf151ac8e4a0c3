"""Common base of force sensors with ATI's raw data transfer over UDP.

A command is 8 bytes: 0x1234, command, count. A sensor streams records (`devices.arm.sensors.rdt_records`) to the client
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
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

from devices.arm.sensors.mounting import SensorSettings
from devices.arm.sensors.rdt_records import Record, Records
from devices.arm.sensors.rdt_status import NET_FT, health_of, status_words
from devices.arm.sensors.wire import Health, Sample
from haptics.errors import ConfigurationError, DeviceFault, DeviceNotFoundError, DeviceOpenError
from haptics.settings import bounded, documented, string

COMMAND = struct.Struct(">HHI")
_MARK = 0x1234
STOP, START, ZERO = 0x0000, 0x0002, 0x0042

ATTEMPTS = 10
RETRY = 0.1
"""Number of attempts to start a stream, and the interval between them [s]."""

QUIET = 0.03
"""Time without data after which a stream has ended [s]."""

BREATH = 2.5e-4
"""Delay of the reader before it reads [s], so that it does not wake up for every record at high rates."""

STALLED = 0.01
"""Maximum time for which a sensor may repeat a measurement, if its own rate is lower than its rate of records [s]."""

_LONGEST_DATAGRAM = 4096
_MOST_AT_ONCE = 2000
"""Maximum number of datagrams per read, which bounds its duration."""

_REPEATED = "it sends one measurement again and again: switch it off and on, and check the cable to its transducer"


@documented
@dataclass(frozen=True, kw_only=True)
class RdtSettings(SensorSettings):
    """Settings of a network sensor."""

    address: str = string("192.168.1.1", allowed="a network address", doc="the sensor's name or number in the network")
    port: int = bounded(49152, minimum=1, maximum=65535, doc="UDP port of its stream")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.address:
            raise ConfigurationError("device.sensor.address = '': must be the sensor's name or number in the network.")


class RdtWire(ABC):
    """Sensor behind a UDP socket; subclasses add configuration and zeroing.

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
        self._stalled = 0
        self._started = False
        self._socket: socket.socket | None = None
        self.scale = (0.0, 0.0)
        self.meanings = NET_FT
        self._measurement: int | None = None
        self._measured = 0.0

    @property
    def tally(self) -> Mapping[str, int]:
        """Counters of records and datagrams as in `Records`; ``stalled`` counts repeated measurements."""
        return {**self._records.tally, "stalled": self._stalled}

    def open(self) -> None:
        """Connect, configure the sensor and start its stream."""
        self._socket = self._connect()
        self.set_up()
        self.begin()

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
        time.sleep(BREATH)
        try:
            if not _readable(own, patience):
                return None
            for datagram in _drain(own):
                self._records.add(datagram)
        except OSError as error:
            raise DeviceFault(
                f"the network is gone ({error}): check the cable and the network of this computer."
            ) from error
        now = time.perf_counter()
        record = self._records.collect()
        return None if record is None else self._sample(record, now)

    @abstractmethod
    def zero(self) -> None:
        """Tare the sensor: its present load becomes zero."""

    @abstractmethod
    def set_up(self) -> None:
        """Configure the sensor and read the units of its counts."""

    @property
    def _open_socket(self) -> socket.socket:
        if self._socket is None:
            raise DeviceFault(f"{self.name} is not open: call open() first.")
        return self._socket

    def _connect(self) -> socket.socket:
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
        return own

    def begin(self) -> None:
        """Start the stream and wait for its first record."""
        self._started = True
        for _ in range(ATTEMPTS):
            self.send_command(START)
            latest = time.monotonic() + RETRY
            while (left := latest - time.monotonic()) > 0.0:
                if self.poll(left) is not None:
                    return
        raise DeviceOpenError(f"{self.name} does not start to send: {self.silence}")

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

    def _sample(self, record: Record, now: float) -> Sample:
        """Return the sample of a record received at `now` [s]."""
        health, words = health_of(record.status), status_words(record.status, self.meanings)
        if record.measurement == self._measurement:
            self._stalled += 1
            if health is Health.OK and now - self._measured > STALLED:
                health, words = Health.WARNING, _REPEATED
        else:
            self._measurement, self._measured = record.measurement, now
        force, torque = self.scale
        counts = record.counts
        wrench = (*(force * count for count in counts[:3]), *(torque * count for count in counts[3:]))
        return Sample(wrench, now, self._measured, health, words)


def _send(own: socket.socket, command: int, count: int = 0) -> None:
    """Send a command; an earlier refusal only means that the sensor was not running at that time."""
    with contextlib.suppress(ConnectionRefusedError):
        own.send(COMMAND.pack(_MARK, command, count))


def _readable(own: socket.socket, patience: float) -> bool:
    return bool(select.select([own], [], [], patience)[0])


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
