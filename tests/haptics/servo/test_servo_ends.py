"""How a run ends: the device's safe output step by step, an arm that brakes, and the instants that are kept."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from haptics import Coulomb, DeviceFault, MasslessImpedance, RigidAdmittance, Servo
from haptics.clock import Clock
from haptics.device import Causality
from haptics.servo.loop import End
from haptics.trace import Trace
from tests.haptics.doubles import BenchDevice, Vector

PERIOD = 1e-3

FADE_TICKS = 9
"""Ticks in which the output fades out at 1 kHz: eight, and one more for the rounding."""

SLOW = {"max_speed": 0.3, "max_acceleration": 5.0}
"""Limits [m/s, m/s^2] of an arm that takes longer to brake than an output to fade."""


def element() -> MasslessImpedance:
    return MasslessImpedance(Coulomb(4.0), 6000.0, 10.0)


class Assisted(BenchDevice):
    """A device that compensates its own friction, and notes what it is told in which tick."""

    def __init__(self, clock: Clock, fail_at: int | None = None) -> None:
        super().__init__(clock, fail_at=fail_at)
        self.told: list[tuple[int, str, float]] = []

    def compensate(self, share: float) -> None:
        self.told.append((self.clock.tick, "compensate", share))

    def write(self, command: Vector) -> None:
        super().write(command)
        self.told.append((self.clock.tick, "force", float(np.hypot(*command))))

    def close(self) -> None:
        super().close()
        self.told.append((self.clock.tick, "close", 0.0))


def test_after_a_fault_half_the_force_stands_for_a_period_without_compensation(trace: Trace) -> None:
    device = Assisted(Clock(PERIOD), fail_at=42)
    with pytest.raises(DeviceFault, match="the cable was pulled"):
        Servo(device, element(), trace, clock=device.clock).run(0.3)
    (_, _, before), *after = device.told[-5:]
    assert before == pytest.approx(4.0)
    assert device.told[-6] == (41, "compensate", 1.0)
    assert after == [
        (42, "compensate", 0.0),
        (42, "force", 0.5 * before),
        (43, "force", 0.0),
        (43, "close", 0.0),
    ]


def test_the_end_was_noticed_when_it_was_and_not_when_the_output_had_faded(
    trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(1e-3)
    for module in ("haptics.servo.loop", "haptics.servo.servo"):
        monkeypatch.setattr(f"{module}.time", SimpleNamespace(monotonic_ns=lambda: 1 + clock.tick))
    answer = {20: End.APPLICATION_LOST}
    servo = Servo(BenchDevice(clock), element(), trace, clock=clock, supervisor=lambda: answer.get(clock.tick))
    assert servo.run(1.0) is End.APPLICATION_LOST
    assert servo.noticed_ns == 21
    assert servo.safe_output_ns == 1 + 20 + FADE_TICKS - 1


def test_a_run_that_is_stopped_goes_on_until_the_reference_rests(trace: Trace) -> None:
    """Stopped at the end of the fade, an arm would be told to hold still at once."""
    clock = Clock(1e-3)
    servo = Servo(
        BenchDevice(clock, Causality.ADMITTANCE, lambda _, number: servo.stop() if number == 100 else None, **SLOW),
        RigidAdmittance(Coulomb(6.0), 2.0),
        trace,
        clock=clock,
    )
    assert servo.run(1.0) is End.STOPPED
    path = np.array(servo.device.written)  # type: ignore[attr-defined]
    speeds = np.hypot(*np.diff(path, axis=0).T) / 1e-3
    assert speeds[100] > 0.1
    assert np.abs(np.diff(speeds)).max() <= SLOW["max_acceleration"] * 1e-3 * (1 + 1e-6)
    assert speeds[-1] == 0.0
    braking = speeds[100] / (SLOW["max_acceleration"] * 1e-3)
    assert FADE_TICKS < trace.count - 101 <= braking + FADE_TICKS, "and no longer than that"
