"""What all force sensors have in common that speak ATI's raw data transfer over UDP.

A command is 8 bytes: 0x1234, command, count. A sensor streams records (`devices.arm.sensors.rdt_records`) to whoever
started it until it is told something else; a second program that starts it takes the stream away from the first.
Nothing is answered but by records: what must arrive is repeated until the stream shows that it did, or twice.

A sensor may send 7000 records a second where 1000 are wanted, and nothing is more useless than the oldest of those that
wait in a socket. Each look at the socket therefore empties it and keeps the newest record.
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
"""The start of a stream is repeated so often, after so long [s]."""

QUIET = 0.03
"""A stream has ended when nothing comes for so long [s]."""

BREATH = 2.5e-4
"""The reader rests for so long before a look [s], so that a flood does not wake it for every record."""

STALLED = 0.01
"""A sensor whose own rate is lower than that of its records repeats a measurement, but not for so long [s]."""

_LONGEST_DATAGRAM = 4096
_MOST_AT_ONCE = 2000
"""A look ends after so many datagrams, whatever comes."""

_REPEATED = "it sends one measurement again and again: switch it off and on, and check the cable to its transducer"


@documented
@dataclass(frozen=True, kw_only=True)
class RdtSettings(SensorSettings):
    """What a person can choose about a sensor on the network."""

    address: str = string("192.168.1.1", allowed="a network address", doc="the sensor's name or number in the network")
    port: int = bounded(49152, minimum=1, maximum=65535, doc="UDP port of its stream")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.address:
            raise ConfigurationError("device.sensor.address = '': must be the sensor's name or number in the network.")


class RdtWire(ABC):
    """A sensor at the far end of a UDP socket; its make adds how it is set up and zeroed.

    Parameters
    ----------
    settings : RdtSettings
        Where the sensor is.
    name : str
        Its name in messages.

    Attributes
    ----------
    scale : (float, float)
        One count of force [N] and of torque [N m].
    meanings : mapping
        Of the bits of its status word.
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
        """Records and datagrams as in `Records`; ``stalled``, the looks at which the measurement was an old one."""
        return {**self._records.tally, "stalled": self._stalled}

    def open(self) -> None:
        """Connect, set the sensor up and start its stream."""
        self._socket = self._connect()
        self.set_up()
        self.begin()

    def close(self) -> None:
        """Tell the sensor to stop until it does, and disconnect. What it was not told to start may be another's."""
        own, self._socket = self._socket, None
        if own is None:
            return
        if not self._started:
            own.close()
            return
        self._started = False
        with own, contextlib.suppress(OSError):  # the network is gone: nothing can be told
            for _ in range(ATTEMPTS):
                _drain(own)
                _send(own, STOP)
                time.sleep(QUIET)
                if not _drain(own):
                    return

    def look(self, patience: float) -> Sample | None:
        """Wait for at most `patience` [s] for records; take all that are there and return the newest."""
        own = self._own
        time.sleep(BREATH)
        try:
            if not _readable(own, patience):
                return None
            for datagram in _drain(own):
                self._records.take(datagram)
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
        """Set the sensor up and learn what its counts mean."""

    @property
    def _own(self) -> socket.socket:
        if self._socket is None:
            raise DeviceFault(f"{self.name} is not open: call open() first.")
        return self._socket

    def _connect(self) -> socket.socket:
        own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            own.connect(self._address)
        except (OSError, UnicodeError) as error:  # the latter of names that can be none
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
            self.tell(START)
            latest = time.monotonic() + RETRY
            while (left := latest - time.monotonic()) > 0.0:
                if self.look(left) is not None:
                    return
        raise DeviceOpenError(f"{self.name} does not start to send: {self.silence}")

    def tell(self, command: int, count: int = 0) -> None:
        """Send a command; what came before it belongs to another stream."""
        try:
            _drain(self._own)
            _send(self._own, command, count)
        except OSError as error:
            raise DeviceOpenError(
                f"no command can be sent to {self.name} ({error}): check the network of this computer."
            ) from error
        self._records.forget()

    def _sample(self, record: Record, now: float) -> Sample:
        """Return what a record says that came at `now` [s]."""
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
    """Send a command. That the far end refused one before only says that it was not up yet."""
    with contextlib.suppress(ConnectionRefusedError):
        own.send(COMMAND.pack(_MARK, command, count))


def _readable(own: socket.socket, patience: float) -> bool:
    return bool(select.select([own], [], [], patience)[0])


def _drain(own: socket.socket) -> list[bytes]:
    """Return the datagrams that wait in a socket."""
    datagrams: list[bytes] = []
    for _ in range(_MOST_AT_ONCE):
        try:
            datagrams.append(own.recv(_LONGEST_DATAGRAM, socket.MSG_DONTWAIT))
        except BlockingIOError:
            break
        except ConnectionRefusedError:  # of a command: the far end is not up
            continue
    return datagrams
