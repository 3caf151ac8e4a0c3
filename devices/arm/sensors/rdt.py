"""Force sensors with ATI's raw data transfer over UDP: ATI Net F/T and Axia, and OnRobot HEX with an Ethernet box.

A command is 8 bytes: 0x1234, command, count. A sensor streams records (`Record`) to the client that started it until it
gets another command; a second client that starts it redirects the stream to itself. The only replies are records:
commands that must arrive are repeated until the stream shows their effect, or sent twice.

A sensor may send 7000 records per second where 1000 are needed, and only the newest record in the socket is of use.
Each read therefore empties the socket and keeps the newest record.

An ATI sensor is configured through web pages. The HEX has a fixed scale and additional commands, and needs some time
after every command.
"""

from __future__ import annotations

import contextlib
import http.client
import math
import select
import socket
import struct
import time
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple
from xml.etree import ElementTree

from devices.arm.sensors.force_sensor import Health, Sample, SensorSettings, Wire, check_one_of
from devices.arm.sensors.optoforce import FILTERS
from devices.common.bus import printable
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
        tally = self.tally
        for offset in range(0, len(datagram), RECORD.size):
            number, _, status = _NUMBERS.unpack_from(datagram, offset)
            ahead = 1 if self._last is None else (number - self._last) % _WRAP
            if ahead == 0:
                tally["duplicated"] += 1
                continue
            if ahead >= _HALF:
                tally["late"] += 1
                self._late += 1
                if self._late < RESTARTED:
                    continue
                tally["restarted"] += 1
                ahead = 1
            tally["received"] += 1
            tally["lost"] += ahead - 1
            self._last, self._late = number, 0
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
        Meaning of each bit (`devices.arm.sensors.rdt`).
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


# --- ATI Net F/T and Axia ---------------------------------------------------------------------------------------------

WEB_TIMEOUT = 2.0
"""Timeout of a web page [s]."""

FORCE_UNITS: Mapping[str, float] = {"n": 1.0, "kn": 1e3, "lbf": 4.4482216152605, "klbf": 4448.2216152605,
                                    "kgf": 9.80665, "kg": 9.80665, "gf": 9.80665e-3}  # fmt: skip
"""Force units in N, by lower-case name."""

TORQUE_UNITS: Mapping[str, float] = {"n-m": 1.0, "nm": 1.0, "n-mm": 1e-3, "nmm": 1e-3, "kn-m": 1e3, "knm": 1e3,
                                     "lbf-in": 0.1129848290276167, "lbf-ft": 1.3558179483314004,
                                     "kgf-cm": 0.0980665, "kg-cm": 0.0980665}  # fmt: skip
"""Torque units in N m, by lower-case name."""

ATI_FILTERS: Mapping[float, int] = {0: 0, 838: 1, 326: 2, 152: 3, 73: 4, 35: 5, 18: 6, 8: 7, 5: 8,
                                    1500: 9, 2000: 10, 2500: 11, 3000: 12}  # fmt: skip
"""Number of a filter by its cut-off frequency [Hz], 0 for none."""

_LONGEST_PAGE = 1 << 20


_COMMON = {16: "a monitored condition was met"}

NET_FT: Mapping[int, str] = {
    30: "processor or memory failure",
    29: "failure of the digital board",
    28: "failure of the analogue board",
    27: "failure of the link between its boards",
    26: "program memory is corrupt",
    25: "stopped by an error in its settings",
    24: "settings are not valid",
    23: "the settings do not fit the calibration",
    22: "network failure",
    21: "CAN failure",
    20: "failure of the data stream",
    19: "EtherNet/IP failure",
    18: "DeviceNet failure",
    17: "saturated: take the load away; if that does not help, its transducer or cable is broken",
    14: "watchdog has expired",
    13: "stack overflow",
    12: "settings memory does not answer",
    11: "flash memory does not answer",
    10: "watchdog of the analogue board has expired",
    9: "too much current through the strain gauges",
    8: "too little current through the strain gauges",
    7: "analogue ground is out of range",
    6: "supply of the analogue board is too high",
    5: "supply of the analogue board is too low",
    4: "the analogue board sends no data",
    3: "reference voltage or supply is out of range",
    2: "temperature is out of range",
    1: "web server failure",
    **_COMMON,
}
"""Meaning of the bits of Net F/T boxes; bit 31 only indicates that other bits are set."""

AXIA: Mapping[int, str] = {
    30: "overloaded: force or torque is out of range, take the load away",
    29: "the calibration is corrupt",
    28: "simulates an error",
    27: "overloaded: a strain gauge is out of range, take the load away",
    26: "a strain gauge is nearly out of range",
    5: "failure of hardware or firmware",
    3: "busy",
    2: "a strain gauge is broken",
    1: "supply voltage is out of range",
    0: "temperature is out of range",
    **_COMMON,
}
"""Meaning of the bits of Axia sensors; bit 31 as above."""


@documented
@dataclass(frozen=True, kw_only=True)
class AtiSettings(RdtSettings):
    """Settings of an ATI Net F/T or Axia."""

    web_port: int = bounded(80, minimum=1, maximum=65535, doc="port of the sensor's web pages")
    rate: int = bounded(1000, minimum=100, maximum=7000, unit="Hz", doc="records per second")
    filter: float = bounded(0.0, minimum=0.0, unit="Hz", doc="cut-off of the sensor's low-pass filter, 0 for none")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_one_of(self, "filter", list(ATI_FILTERS), "Hz")


class AtiWire(RdtWire):
    """ATI Net F/T or Axia.

    Parameters
    ----------
    settings : AtiSettings
        Address and configuration of the sensor.
    """

    def __init__(self, settings: AtiSettings) -> None:
        super().__init__(settings, f"the ATI force sensor at {settings.address}")
        self._settings = settings

    def set_up(self) -> None:
        """Set rate and filter of the sensor, and read the units of its counts.

        Only settings that differ are written, because the box stores them in memory with limited write cycles.

        Raises
        ------
        DeviceOpenError
            If the box does not reply, does not accept a setting, or reports invalid values.
        """
        own, number = self._settings, ATI_FILTERS[self._settings.filter]
        tags = self._read_tags()
        for page, tag, value in (("comm", "comrdtrate", own.rate), ("setting", "setuserfilter", number)):
            if _number(tags, tag) != value:
                self._get(f"/{page}.cgi?{tag}={value}")
                tags = self._read_tags()
        if _number(tags, "setuserfilter") != number:
            raise DeviceOpenError(
                f"the force sensor at {own.address} did not take the filter at {own.filter:g} Hz: choose another "
                "device.sensor.filter, one that its web page for settings offers."
            )
        force = _unit(tags, "scfgfu", FORCE_UNITS) / _number(tags, "cfgcpf")
        torque = _unit(tags, "scfgtu", TORQUE_UNITS) / _number(tags, "cfgcpt")
        if not (0.0 < force < math.inf and 0.0 < torque < math.inf):
            raise DeviceOpenError(
                f"the force sensor says that there are cfgcpf = {tags['cfgcpf']} and cfgcpt = {tags['cfgcpt']} counts "
                "to a unit of force and of torque: choose another configuration on its web pages."
            )
        rate = _number(tags, "comrdtrate")  # it may be rounded to a fraction of the internal rate
        if not 0.5 * own.rate <= rate <= 2.0 * own.rate:
            raise DeviceOpenError(
                f"the force sensor at {own.address} sends {rate:g} records a second, but was set to {own.rate}: set "
                "the rate of raw data transfer on its web page for communication, or choose another "
                "device.sensor.rate."
            )
        self.scale = force, torque
        self.meanings = AXIA if "axia" in tags.get("prodname", "").lower() else NET_FT

    def _read_tags(self) -> dict[str, str]:
        """Return the present settings of the box: names to values."""
        page = self._get("/netftapi2.xml")
        try:
            root = ElementTree.fromstring(page)
        except ElementTree.ParseError as error:
            raise DeviceOpenError(
                f"what {self._settings.address} sends for netftapi2.xml cannot be read ({error}): is it an ATI Net F/T "
                "or Axia?"
            ) from error
        return {element.tag: printable(element.text or "") for element in root.iter()}

    def _get(self, path: str) -> bytes:
        """Return a web page of the box."""
        address = self._settings.address
        connection = http.client.HTTPConnection(address, self._settings.web_port, timeout=WEB_TIMEOUT)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            page = answer.read(_LONGEST_PAGE)
        except (OSError, http.client.HTTPException) as error:
            raise DeviceOpenError(
                f"the web pages of the force sensor at {address} cannot be reached ({error}): check its power and "
                "network cable, that this computer is in the same network, and device.sensor.address."
            ) from error
        finally:
            connection.close()
        if answer.status not in {http.client.OK, http.client.FOUND}:  # settings are answered with a redirection
            raise DeviceOpenError(
                f"the force sensor at {address} answered {answer.status} {answer.reason} to {path}: is it an ATI Net "
                "F/T or Axia?"
            )
        return page


def _number(tags: Mapping[str, str], tag: str) -> float:
    try:
        value = float(tags[tag])
    except (KeyError, ValueError):
        value = math.nan
    if not math.isfinite(value) or (value == 0.0 and tag.startswith("cfgcp")):
        raise DeviceOpenError(
            f"the force sensor says {tag} = {tags.get(tag, 'nothing')!r}, which must be a number: its firmware may be "
            "too old or too new, or its configuration is not complete (see its web pages)."
        )
    return value


def _unit(tags: Mapping[str, str], tag: str, units: Mapping[str, float]) -> float:
    name = tags.get(tag, "")
    if name.lower() not in units:
        raise DeviceOpenError(
            f"the force sensor says {tag} = {name!r}, an unknown unit: choose one of {', '.join(units)} on its web "
            "page for configurations."
        )
    return units[name.lower()]


# --- OnRobot HEX ------------------------------------------------------------------------------------------------------

FILTER, SPEED = 0x0081, 0x0082
"""Additional commands of the HEX: number of the filter, period [ms]."""

HEX_SETTLING = 5e-3
"""Waiting time after a command [s]."""

HEX_SCALE = 1e-4, 1e-5
"""Units of the counts of the HEX [N], [N m]."""


@documented
@dataclass(frozen=True, kw_only=True)
class OnRobotSettings(RdtSettings):
    """Settings of an OnRobot HEX."""

    rate: int = bounded(1000, minimum=100, maximum=1000, unit="Hz", doc="records per second; a divisor of 1000")
    filter: float = bounded(500.0, minimum=0.0, unit="Hz", doc="cut-off of the sensor's low-pass filter, 0 for none")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_one_of(self, "filter", list(FILTERS), "Hz")
        if 1000 % self.rate:
            raise ConfigurationError(
                f"device.sensor.rate = {self.rate} Hz: its period must be a whole number of milliseconds (1000, 500, "
                "250, 200, 125 or 100 Hz)."
            )


class OnRobotWire(RdtWire):
    """OnRobot HEX with an Ethernet box.

    Parameters
    ----------
    settings : OnRobotSettings
        Address and configuration of the sensor.
    """

    def __init__(self, settings: OnRobotSettings) -> None:
        super().__init__(settings, f"the OnRobot force sensor at {settings.address}")
        self._settings = settings
        self.scale = HEX_SCALE
        self.meanings = {}  # any status but 0 is a fault; the meaning of its bits is unknown

    def set_up(self) -> None:
        """Set filter and rate of the sensor, each twice; the units of its counts are fixed."""
        own = self._settings
        for command, count in 2 * [(FILTER, FILTERS[own.filter])] + 2 * [(SPEED, 1000 // own.rate)]:
            self.send_command(command, count)
            time.sleep(HEX_SETTLING)
