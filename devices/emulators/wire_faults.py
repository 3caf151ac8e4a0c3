"""Fault injection in emulated communication, by name and time, for every emulator: ``stall@2+0.05``.

Each emulator has its table of faults: name to description. The texts have the same form as for faults of samples and
commands (`devices.faults`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from devices.common.settings import Timed, parts_of
from haptics.errors import ConfigurationError
from haptics.settings import unknown_name

DELAYS = {"delay-1ms": 1e-3, "delay-5ms": 5e-3, "delay-20ms": 20e-3, "delay-100ms": 0.1}
"""Delays by fault name [s]; a table of faults may contain all or some of them, with descriptions."""


OPENING = frozenset({"no-permission", "busy", "no-inkwell", "no-licence", "wrong-port", "no-timer"})
"""Faults of the opening. Their times count from it where those of other faults count from the first force."""


def longest_delay(names: Iterable[str]) -> float:
    """Return the additional duration of a transfer with these faults [s]."""
    return max((DELAYS.get(name, 0.0) for name in names), default=0.0)


def _delays(words: str, *milliseconds: int) -> dict[str, str]:
    return {f"delay-{delay}ms": words.format(f"{delay} ms") for delay in milliseconds}


STICK_FAULTS: dict[str, str] = {
    "unplug": "the stick is unplugged; after the fault it returns under another address",
    "read-error": "reading reports an input/output error",
    "write-error": "writing reports an input/output error, reading continues",
    "stall": "the interrupt endpoints are halted until the host clears the halt",
    "nak": "the stick neither accepts nor sends data (NAK)",
    "dropout": "no input reports; output is accepted",
    "short": "input reports are cut in half",
    **_delays("every transfer takes {} longer", 1, 5, 20),
    "full-pool": "no block is free for an effect",
    "stale-block-load": "block load reports the previous request",
    "no-permission": "permission to open the stick is missing",
    "busy": "another program has claimed the interface",
}
"""Faults of the bus of a stick (`devices.emulators.pid`); their times count from its creation."""

HAPI_FAULTS: dict[str, str] = {
    "unplug": "the cable is unplugged permanently: the port disappears, torques stay",
    "lost-byte": "every message to the board lacks a byte in its middle",
    "lost-reply-byte": "every reply lacks a byte in its middle",
    "short": "replies are cut in half",
    "dropout": "no replies; torques are applied",
    **_delays("every reply is {} late", 1, 5, 20, 100),
}
"""Faults of a Haply board (`devices.emulators.hapi`).

Their times count from the release of the handle, approximately when the driver starts rendering, for every host.
"""

INVERSE3_FAULTS: dict[str, str] = {
    "unplug": "the device is unplugged: the service continues without it",
    "no-power": "the service reports that the device has no power supply",
    "uncalibrated": "the service reports that the device is not calibrated",
    "hang-up": "the service ends the connection without a close message",
    "close": "the service closes the connection with a close message",
    "dropout": "no replies; forces are applied",
    "half": "one half of every reply is sent at once, the rest 1 ms later",
    "fragments": "every reply is sent in three fragments, with a ping between them",
    "nonsense": "replies are not JSON",
    "not-utf8": "replies are not UTF-8",
    "giant": "replies announce a length of 2^62 bytes",
    **_delays("every reply is {} late", 1, 5, 20, 100),
}
"""Faults between a driver and the service of an Inverse3 (`devices.emulators.inverse3`).

Their times count from the first force that the driver commands, for every connection.
"""

FORCE_DIMENSION_FAULTS: dict[str, str] = {
    "unplug": "the device is unplugged: every call of the library fails",
    "dropout": "no replies; forces are applied, calls fail after 0.2 s",
    "position-error": "reading the position fails, and leaves zeros",
    "force-error": "sending a force fails, and the last one stays",
    "time-guard": "every position is the previous one, because it was read too recently",
    "saturated": "the motors are saturated: half of every force is applied",
    "stuck": "the position repeats, without an error",
    "lost-reference": "the device reports that it is not initialised",
    "no-power": "the device reports that it has no power supply",
    "off-button": "the device switches the forces off: force button",
    "off-velocity": "the device switches the forces off: velocity threshold",
    "off-watchdog": "the device switches the forces off: watchdog",
    "off-software": "the device switches the forces off: another command",
    "off-usb": "the device switches the forces off: USB disconnected",
    "off-dead-man": "the device switches the forces off: dead-man's switch",
    **_delays("every call takes {} longer", 1, 5, 20, 100),
}
"""Faults of a Force Dimension device behind its library (`devices.emulators.forcedimension`).

Their times count from the first force that the driver commands, for every opening.
"""

TOUCH_FAULTS: dict[str, str] = {
    "unplug": "the device is unplugged: every frame reports a communication error",
    "dropout": "no replies; forces are applied, every call returns after 0.2 s with a communication error",
    "comm-error": "the library reports a communication error, and sends no force",
    "device-fault": "the library reports a fault of the device",
    "timer-error": "the library reports that the servo loop has lost its timer",
    "warm-motors": "the library reports warm motors, and sends no force",
    "max-force": "the library reports that the force exceeded its limit, and sends none",
    "force-impulse": "the library reports that the force changed too fast, and sends none",
    "max-velocity": "the library reports that the stylus moved too fast, and sends no force",
    "force-error": "the library reports forces of incompatible kinds, and sends none",
    "stall": "the servo loop does not call its callbacks",
    "hang": "frames do not begin, and the servo loop cannot be stopped",
    "stuck": "the position repeats, without an error",
    "no-inkwell": "the device needs to be put into its inkwell",
    "no-licence": "the library has no licence, when the device is opened",
    "wrong-port": "the configuration names another port, when the device is opened",
    "no-timer": "the servo loop does not start",
    **_delays("every call that reads or sends takes {} longer", 1, 5, 20, 100),
}
"""Faults of a Touch behind the library of its maker (`devices.emulators.touch`).

Their times count from the first force that the driver commands, or from the opening (`OPENING`), for every opening.
"""

FALCON_FAULTS: dict[str, str] = {
    "unplug": "the USB cable is unplugged: the motors keep their force; after the fault it is plugged in again",
    "no-power": "the power supply is unplugged; after the fault the Falcon has neither firmware nor home",
    "unhomed": "replies report encoders that are not homed",
    "dropout": "no replies; forces are applied",
    "malformed": "every second reply lacks a byte",
    "read-error": "reading reports an input/output error",
    "write-error": "writing reports an input/output error",
    "stall": "the endpoints are halted until the host clears the halt",
    "nak": "the Falcon neither accepts nor sends data (NAK)",
    **_delays("every transfer takes {} longer", 1, 5, 20),
    "no-permission": "permission to open the Falcon is missing",
    "busy": "another program has claimed the interface",
}
"""Faults of a Falcon (`devices.emulators.falcon`).

Their times count from the first force; faults of `OPENING` count from the creation.
"""

ODRIVE_FAULTS: dict[str, str] = {
    "unplug": "the drive is unplugged; after the fault it returns under another address, with its state reset",
    "read-error": "reading reports an input/output error",
    "write-error": "writing reports an input/output error",
    "stall": "the endpoints are halted until the host clears the halt",
    "nak": "the drive neither accepts nor sends data (NAK)",
    "wrong-crc": "the drive has a different table than it announced, and drops every native request silently",
    "lost-answer": "the drive executes commands and does not reply",
    "short": "replies are only a header, as for an unknown endpoint; replies of text are only the line end",
    "motor-fault": "the gate driver of axis 0 reports a fault, latched",
    "encoder-jump": "the encoder of axis 0 jumps by an eighth of a turn, once",
    **_delays("every transfer takes {} longer", 1, 5, 20),
    "link-down": "of CAN: the interface is down",
    "bus-off": "of CAN: the interface is off the bus during the fault",
    "wrong-bit-rate": "of CAN: the bit rates of interface and drive differ",
    "lost-frames": "of CAN: half of the frames are lost, in both directions",
    "reset-comes-anew": "after a reset of its port the drive returns under another address",
    "no-permission": "permission to open the drive is missing",
    "busy": "another program has claimed the interface",
}
"""Faults of a drive (`devices.emulators.odrive`); their times count from its creation."""

RDT_FAULTS: dict[str, str] = {
    "lost": "every second record is lost",
    "duplicated": "every record is sent twice",
    "reordered": "every second record is sent after the following one",
    "truncated": "every second record is truncated",
    "flood": "7000 records per second are sent, regardless of the configured rate",
    "saturated": "the status of all records reports a saturated transducer",
    "stalled": "records repeat the same measurement",
    "mute": "nothing is sent",
    **_delays("every record is {} late", 1, 5, 20),
}
"""Faults of a network force sensor (`devices.emulators.rdt`)."""

OPTOFORCE_FAULTS: dict[str, str] = {
    "lost": "every second frame is lost",
    "duplicated": "every second frame is sent twice",
    "truncated": "every second frame lacks its last bytes",
    "inserted": "every second frame has additional bytes in its middle",
    "damaged": "every second frame has a wrong bit",
    "overloaded": "the status of all frames reports an overloaded sensor",
    "stalled": "frames repeat the same number",
    "mute": "nothing is sent",
    "unplug": "the cable is unplugged permanently: the port disappears",
    **_delays("every frame is {} late", 1, 5, 20),
}
"""Faults of an OptoForce unit (`devices.emulators.optoforce`)."""

MOTORS, SENSOR = "motors.", "sensor."
"""Prefixes of the fault names of each part of an arm."""


def arm_faults(sensor: str) -> dict[str, str]:
    """Return the faults of an arm (`devices.emulators.arm`) with the force sensor of this name."""
    parts = ((MOTORS, ODRIVE_FAULTS), (SENSOR, sensor_faults(sensor)))
    return {prefix + fault: words for prefix, faults in parts for fault, words in faults.items()}


def sensor_faults(sensor: str) -> dict[str, str]:
    """Return the faults of the force sensor of this name."""
    return OPTOFORCE_FAULTS if sensor == "optoforce" else RDT_FAULTS


def of_part(prefix: str, faults: Iterable[str]) -> list[str]:
    """Return the timed `faults` of the part with this prefix, without the prefix."""
    return [text.strip().removeprefix(prefix) for text in faults if text.strip().startswith(prefix)]


_NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class WireFault(Timed):
    """Fault and its time; the emulator defines the origin of the time."""

    KIND: ClassVar[str] = "fault of the wire"

    def covers(self, now: float) -> bool:
        """Return True if the fault is active at `now` [s]."""
        return self.start <= now and (self.duration is None or now < self.start + self.duration)


def parse_wire_fault(text: str, known: Mapping[str, str]) -> WireFault:
    """Parse ``NAME@SECONDS``, or ``NAME@SECONDS+DURATION`` with the duration in seconds.

    Parameters
    ----------
    text : str
        The fault.
    known : mapping
        Known faults: name to description.

    Raises
    ------
    ConfigurationError
        With the text and the allowed values.
    """
    parts = parts_of(text)
    name = parts[0] if parts else text.strip().partition("@")[0]
    if name not in known:
        raise unknown_name(f"fault of the wire in {text!r}:", name, known)
    if parts is None:
        raise ConfigurationError(
            f"fault of the wire {text!r}: must have the form NAME@SECONDS or NAME@SECONDS+DURATION, for instance "
            f"{name}@2 or {name}@2+0.05."
        )
    return WireFault(*parts)


class WireFaults:
    """Faults of one device: timed faults, and faults that are switched manually.

    Parameters
    ----------
    known : mapping
        Known faults: name to description.
    timed : iterable of str
        Texts as for `parse_wire_fault`.

    Attributes
    ----------
    origin : float
        Origin of the fault times on the caller's clock [s].
    """

    def __init__(self, known: Mapping[str, str], timed: Iterable[str] = ()) -> None:
        self._known = known
        self._timed = tuple(parse_wire_fault(text, known) for text in timed)
        self._on: set[str] = set()
        self.origin = 0.0

    def set(self, *names: str) -> None:
        """Activate faults manually."""
        for name in names:
            if name not in self._known:
                raise unknown_name("fault of the wire", name, self._known)
        self._on.update(names)

    def clear(self, *names: str) -> None:
        """Deactivate manually activated faults; all of them if none is named."""
        self._on.difference_update(names or set(self._on))

    def at(self, now: float) -> frozenset[str]:
        """Return the names of the faults that are active at `now` [s]."""
        if not self._timed and not self._on:
            return _NONE
        return frozenset(self._on).union(fault.name for fault in self._timed if fault.covers(now - self.origin))

    def delay(self, now: float) -> float:
        """Return the additional duration of a transfer at `now` [s]."""
        return longest_delay(self.at(now))
