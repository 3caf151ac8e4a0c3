"""Faults by name, for the option ``--fault NAME@SECONDS``."""

from __future__ import annotations

import errno
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from devices.common.timed import Timed, parts_of, plain
from devices.faults.effects import (
    Delay,
    Dropout,
    Duplicate,
    Effect,
    Failure,
    Hang,
    Ignored,
    Late,
    OutOfOrder,
    Overwrite,
    Quantisation,
    Saturation,
    Situation,
    Stale,
    Stuck,
)
from haptics.errors import ConfigurationError
from haptics.settings import unknown_name


@dataclass(frozen=True, slots=True)
class FaultKind:
    """Properties of a kind of fault.

    Attributes
    ----------
    description : str
        One line for the user.
    effect : callable
        Function that creates the effect for a `Situation`.
    duration : float
        Default duration [s]; infinite for the rest of the run.
    """

    description: str
    effect: Callable[[Situation], Effect]
    duration: float = math.inf


_VECTORS = ("position", "velocity", "force")

FAULTS: dict[str, FaultKind] = {
    "nan": FaultKind(
        "position, velocity and force are not numbers", partial(Overwrite, names=_VECTORS, value=math.nan)
    ),
    "infinite": FaultKind("the velocity is infinite", partial(Overwrite, names=("velocity",), value=math.inf)),
    "read-error": FaultKind("reading raises an input/output error", partial(Failure, number=errno.EIO, reads=True)),
    "write-error": FaultKind(
        "writing raises an input/output error, reading goes on", partial(Failure, number=errno.EIO, writes=True)
    ),
    "unplug": FaultKind(
        "reading and writing raise: no such device", partial(Failure, number=errno.ENODEV, reads=True, writes=True)
    ),
    "hang": FaultKind("one reading blocks for 10 s", Hang, duration=10.0),
    "stale": FaultKind("no new samples; the last is already twice too old, and ages on", Stale),
    "dropout": FaultKind("no new samples for 50 ms", Dropout, duration=0.05),
    "stuck": FaultKind("the values freeze, their times go on", Stuck),
    "jump": FaultKind(
        "position, velocity and force are zero: a failed reading taken for a sample",
        partial(Overwrite, names=_VECTORS, value=0.0),
    ),
    "delay-1ms": FaultKind("samples come 1 ms later, with their own times", partial(Delay, delay=1e-3)),
    "delay-5ms": FaultKind("samples come 5 ms later, with their own times", partial(Delay, delay=5e-3)),
    "delay-20ms": FaultKind("samples come 20 ms later, with their own times", partial(Delay, delay=20e-3)),
    "duplicate": FaultKind("every second sample is the one before once more, with its old time", Duplicate),
    "late": FaultKind("samples come up to three readings late, by chance, but in order", Late),
    "out-of-order": FaultKind("every second sample is older than the one before", OutOfOrder),
    "ignored": FaultKind("commands are ignored: the device keeps to the last one", Ignored),
    "quantisation": FaultKind(
        "the encoder has steps of 1 mm, and the velocity is their difference", partial(Quantisation, step=1e-3)
    ),
    "saturation": FaultKind(
        "a quarter of the largest force is all that motors can do, or a force sensor show",
        partial(Saturation, part=0.25),
    ),
}
"""Kinds of faults by name."""


@dataclass(frozen=True, slots=True)
class Fault(Timed):
    """Fault at a time; ``str()`` gives text such as ``nan@2+0.05``, which `parse_fault` parses.

    Attributes
    ----------
    name : str
        A key of `FAULTS`.
    duration : float or None
        Duration [s]; None for the default of the kind, usually the rest of the run.

    Raises
    ------
    ConfigurationError
        If the fault is unknown, or its time is invalid.
    """

    KIND: ClassVar[str] = "fault"

    def __post_init__(self) -> None:
        if self.name not in FAULTS:
            raise unknown_name("fault", self.name, FAULTS)
        Timed.__post_init__(self)  # `super()` without arguments fails here: `slots=True` creates the class twice

    @property
    def length(self) -> float:
        """Effective duration [s]; infinite for the rest of the run."""
        return FAULTS[self.name].duration if self.duration is None else self.duration


def parse_fault(text: str) -> Fault:
    """Parse ``NAME@SECONDS``, or ``NAME@SECONDS+DURATION`` with the duration in seconds.

    Raises
    ------
    ConfigurationError
        With the invalid text and the allowed form.
    """
    parts = parts_of(text)
    if parts is None:
        raise ConfigurationError(
            f"fault {text!r}: must have the form NAME@SECONDS or NAME@SECONDS+DURATION, for instance nan@2 or "
            f"nan@2+0.05. Names: {', '.join(FAULTS)}."
        )
    if parts[0] not in FAULTS:
        raise unknown_name(f"fault in {text!r}:", parts[0], FAULTS)
    return Fault(*parts)


def describe(faults: Iterable[Fault]) -> str:
    """Return a text with the names and times of faults."""
    return ", ".join(f"{fault.name} {_when(fault)}" for fault in faults)


def _when(fault: Fault) -> str:
    begin = f"from {plain(fault.start)} s"
    return f"{begin} on" if fault.length == math.inf else f"{begin} for {plain(fault.length)} s"
