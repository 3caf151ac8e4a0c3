"""Faults in a complete run: a faulty device, a servo, a recording, and a log of the commands.

A hand pulls the handle of a virtual device 12 cm along a line. A fault begins at the start, while the contact sticks,
or while it slides. Time is simulated. The commands are taken from the log of the device, which the servo does not
write.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np

import devices
from apps.session.record import new_recorder
from apps.settings.config import complete
from devices.faults import FAULTS, FaultyDevice, parse_fault
from haptics.clock import Clock
from haptics.device import Causality
from haptics.errors import DeviceFault
from haptics.recording.recording import Recording
from haptics.recording.replay import Verification, verify
from haptics.records import Rows
from haptics.rendering.envelope import UNUSABLE
from haptics.servo.servo import Servo
from haptics.trace import Reader, Trace

Array = np.ndarray[Any, np.dtype[Any]]

DEVICES: dict[str, str] = {"virtual-joystick": "CB", "virtual-arm": "AD"}
"""Devices, with the models that run on them."""

PHASES: dict[str, float] = {"start": 0.0, "stick": 0.5, "slip": 0.9}
"""Phases, with the time at which the fault begins [s]."""

AFTER = 0.35
"""Duration of a run after the beginning of the fault [s], long enough for the run to end or for the force to recover.
"""

HAND = {
    "name": "minimum-jerk",
    "points": [[-0.06, -0.05], [0.06, -0.05]],
    "tremor": 0.0,
    "speed": 0.3,
    "pause": 0.2,
    "rest": 0.4,
}
"""Motion that rests for 0.4 s, then pulls. The contact slides from about 0.57 s to at least 1.04 s."""

LASTING = {"hang": 0.05}
"""Duration of faults whose name does not define it [s]."""

PERIOD = 1e-3

WORK = 0.1e-3
"""Time that passes with each reading of the clock `Passing` [s]."""


class Simulated(Clock):
    """Simulated time with blocking calls, which make the servo miss deadlines."""

    _late = 0.0

    def block(self, seconds):
        """Advance the time."""
        self._late += seconds

    def elapsed(self):
        """Return the time since the start [s]."""
        return self.time + self._late

    def wait(self, tick):
        """Advance to a tick and return the latency due to the calls of the last tick [s]."""
        super().wait(tick)
        late = max(self._late - self.period, 0.0)
        self._late = 0.0
        return late


class Passing(Simulated):
    """Simulated time that advances with every reading."""

    def elapsed(self):
        """Return the time since the start [s], after advancing it by `WORK`."""
        self.block(WORK)
        return super().elapsed()


@dataclass(frozen=True)
class Case:
    """Combination of fault, device, model and phase."""

    fault: str
    device: str
    model: str
    phase: str

    def __str__(self):
        return f"{self.fault}-{self.model}-{self.phase}"

    @property
    def start(self):
        """Time at which the fault begins [s]."""
        return PHASES[self.phase]

    @property
    def first(self):
        """First tick of the fault."""
        return round(self.start / PERIOD)


def cases(faults):
    """Yield all combinations of `faults`, devices, models and phases."""
    for fault in faults:
        for device, models in DEVICES.items():
            for model in models:
                for phase in PHASES:
                    yield Case(fault, device, model, phase)


@dataclass(frozen=True)
class Finding:
    """Result of a run.

    Attributes
    ----------
    case : Case
        Conditions of the run.
    causality : Causality
        Causality of the device.
    rows : structured array
        Recorded rows.
    commands : (n, 2) array
        Commands to the device in order.
    ticks : (n,) int array
        Tick of each command.
    message : str
        Error message, empty if the run was completed.
    verification : Verification
        Result of the replay.
    largest : float
        Maximum force, or speed of the reference, relative to the limit of the device.
    """

    case: Case
    causality: Causality
    rows: Rows
    commands: Array
    ticks: Array
    message: str
    verification: Verification
    largest: float

    @property
    def phase_is_right(self):
        """Whether the contact was in the required phase for 20 ms before the fault."""
        if self.case.phase == "start":
            return self.case.first == 0
        before = self.rows["sticking"][self.case.first - 20 : self.case.first] != 0
        return len(before) == 20 and bool((before == (self.case.phase == "stick")).all())

    @property
    def refused(self):
        """Ticks from the fault on without a usable sample, or without any sample."""
        bad = self.rows["tick"][(self.rows["status"] & UNUSABLE) != 0]
        raised = [] if not self.message else [int(self.message.split("failed at tick ")[1].split(":")[0])]
        ticks: Array = np.unique([*bad, *raised]).astype(int)
        return ticks

    @property
    def noticed(self):
        """Time from the beginning of the fault to its detection [s]; None if it was not detected."""
        return float(self.refused[0] - self.case.first) * PERIOD if len(self.refused) else None

    @property
    def safe_after(self):
        """Number of ticks from the detection until the output stays safe, counting the tick of the detection."""
        if not len(self.refused):
            return None
        gaps = np.flatnonzero(np.diff(self.refused) > 1)
        first, last = self.refused[0], self.refused[gaps[0] if len(gaps) else -1]  # the first series without gaps
        place = (self.ticks >= first) & ((self.ticks <= last) | bool(self.message))
        told, when = self.commands[place], self.ticks[place]
        before = self.commands[self.ticks < first]
        if self.causality is Causality.IMPEDANCE:
            safe = ~told.any(axis=1)
        else:
            safe = (told == (before if len(before) else told)[-1:]).all(axis=1)
        unsafe = when[~safe]
        return int(unsafe[-1] + 1 - first + 1) if len(unsafe) else 1

    @property
    def flickers(self):
        """Whether good samples occurred between refused ones."""
        return bool((np.diff(self.refused) > 1).any())

    @property
    def fault_after(self):
        """Time from the detection to the error that ended the run [s]; None if the run continued."""
        if not self.message:
            return None
        return float(self.refused[-1] - self.refused[0]) * PERIOD

    def words(self):
        """Format the result for the table."""
        if self.noticed is None:
            return "goes on"
        ticks = f"{self.safe_after} tick{'s' * (self.safe_after != 1)}"
        late = f"after {self.noticed * 1e3:.0f} ms: " if self.noticed > 0.0 else ""
        if self.flickers:
            return f"{late}{ticks}, again and again"
        if self.fault_after is None:
            return f"{late}{ticks}, recovers"
        return f"{late}{ticks}, fault " + ("at once" if self.fault_after == 0.0 else "after 0.1 s")


def run(case, folder, time=Simulated):
    """Run `case` with a clock of the class `time`, recording into `folder`."""
    lasting = LASTING.get(case.fault)
    fault = parse_fault(f"{case.fault}@{case.start}" + (f"+{lasting}" if lasting else ""))
    config = complete(
        {
            "session": {"model": case.model, "seed": 1, "record": str(folder / "recordings")},
            "device": {"name": case.device, "log": str(folder / "log.npy")},
            "hand": HAND,
        }
    )
    clock = time(PERIOD)
    device: Any = devices.create_device(case.device, config.device_settings, clock=clock)
    recorder = new_recorder(config, [])
    recorder.journal_settings(0, {"model": case.model, "law": config.law, "element": config.element})
    trace = Trace.create(folder / "trace", capacity=4096)
    recorder.attach(Reader(trace))
    message = ""
    with patch("devices.faults.time.sleep", clock.block):
        faulty = FaultyDevice(device, [fault], clock, seed=1)
        servo = Servo(faulty, config.built_element, trace, clock=clock, limits=config.limits)
        try:
            servo.run(case.start + AFTER)
        except DeviceFault as error:
            message = str(error)
    recorder.drain()
    recorder.close({}, complete=True)
    (folder / "trace").unlink()
    recording = Recording(recorder.folder)
    log = np.load(folder / "log.npy")
    assert not log["monotonic_ns"].all(), "the ring may have lost its beginning"
    log = log[log["monotonic_ns"] > 0]
    causality = device.spec.causality
    if causality is Causality.IMPEDANCE:
        largest = float(np.hypot(*log["command"].T).max()) / device.spec.max_force
    else:
        path = np.vstack([[device.hand.start], log["command"]])
        steps = np.diff(path, axis=0)
        largest = float(np.hypot(*steps.T).max(initial=0.0)) / PERIOD / device.spec.max_speed
    ticks = np.round(log["time"] / PERIOD).astype(int)
    return Finding(case, causality, recording.rows, log["command"], ticks, message, verify(recording), largest)


def find_all(folder, faults=tuple(FAULTS)):
    """Run all cases of `faults`."""
    return [run(case, folder) for case in cases(faults)]
