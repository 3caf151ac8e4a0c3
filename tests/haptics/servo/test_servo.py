"""The loop: order, deadlines, skipping, and the safe output however it ends."""

import math
from pathlib import Path

import numpy as np
import pytest

from haptics import CausalityError, ConfigurationError, Coulomb, DeviceFault, MasslessImpedance, RigidAdmittance, Servo
from haptics.clock import Clock
from haptics.device import Causality, State
from haptics.records import Permission, Status
from haptics.servo.job import CONTROL
from haptics.servo.lane import Lane
from haptics.servo.loop import End
from haptics.servo.supervision import Supervision
from haptics.trace import Trace
from tests.haptics.doubles import BenchDevice, Vector


def element_c(period: float = 1e-3) -> MasslessImpedance:
    return MasslessImpedance(Coulomb(4.0), 6000.0, 10.0, period)


FADE_TICKS = 9
"""Ticks in which the output fades out at 1 kHz: eight, and one more for the rounding."""


class TardyClock(Clock):
    """A clock that is late at given ticks."""

    def __init__(self, period: float, lateness: dict[int, float]) -> None:
        super().__init__(period)
        self.lateness = lateness

    def wait(self, tick: int) -> float:
        super().wait(tick)
        return self.lateness.pop(tick, 0.0)


def run(device: BenchDevice, trace: Trace, clock: Clock, duration: float = 0.1, **options: object) -> End:
    return Servo(device, element_c(), trace, clock=clock, **options).run(duration)  # type: ignore[arg-type]


def test_every_tick_is_read_rendered_written_and_recorded_once(trace: Trace) -> None:
    clock = Clock(1e-3)
    device = BenchDevice(clock)
    assert run(device, trace, clock) is End.COMPLETED
    rows = trace.since(0)
    assert rows["tick"].tolist() == list(range(100))
    assert rows["time"] == pytest.approx(np.arange(100) * 1e-3)
    assert device.reads == 100
    assert np.array_equal(device.written[:-1], rows["command"])
    assert device.written[-1].tolist() == [0.0, 0.0]
    assert device.closed == 1


def test_a_row_has_the_marker_of_the_top_of_its_tick_and_the_true_hand(trace: Trace, tmp_path: Path) -> None:
    """What comes in mid-tick belongs to the next; a device that knows no hand has none."""
    lane = Lane(tmp_path / "control", CONTROL, create=True)
    clock, control = Clock(1e-3), lane.record
    control["marker"] = 3

    def change(state: State, number: int) -> None:
        if number == 40:
            control["marker"] = -8
        if number >= 60:
            state.hand_force = np.array((number, -0.5 * number))

    run(BenchDevice(clock, disturb=change), trace, clock, supervision=Supervision(lane))
    rows = trace.since(0)
    assert rows["marker"].tolist() == [3] * 41 + [-8] * 59
    assert np.isnan(rows["hand_force"][:60]).all()
    assert rows["hand_force"][60:].tolist() == [[number, -0.5 * number] for number in range(60, 100)]
    assert (rows["gate"] == 1.0).all() and (rows["region"] == -1).all() and np.isnan(rows["normal_force"]).all()


def test_a_row_has_the_channels_of_its_sample_and_no_older_ones(tmp_path: Path) -> None:
    """The ring is shorter than the run: what stood in a slot before must not show through."""
    clock, trace = Clock(1e-3), Trace.create(tmp_path / "short", capacity=16)

    def measure(state: State, number: int) -> None:
        state.channels = np.array((number, -number, 0.5)) if number % 3 else None

    channels = (("joint_angles", "rad", 2), ("temperature", "degC", 1))
    run(BenchDevice(clock, disturb=measure, channels=channels), trace, clock)
    rows = trace.since(0)
    assert len(rows) == 15
    for row in rows:
        number = row["tick"]
        expected = (number, -number, 0.5) if number % 3 else (np.nan,) * 3
        np.testing.assert_array_equal(row["channels"][:3], expected)


def test_channels_of_another_number_are_a_fault(trace: Trace) -> None:
    def measure(state: State, number: int) -> None:
        state.channels = np.zeros(3)

    clock = Clock(1e-3)
    device = BenchDevice(clock, disturb=measure, channels=(("joint_angles", "rad", 2),))
    with pytest.raises(DeviceFault, match="bench failed at tick 0"):
        run(device, trace, clock)
    assert device.closed == 1


def test_the_trace_knows_when_tick_0_was(trace: Trace) -> None:
    clock = Clock(1e-3)
    run(BenchDevice(clock), trace, clock)
    assert tuple(trace.origin) == clock.origin_ns > (0, 0)


def test_the_friction_opposes_the_motion(trace: Trace) -> None:
    clock = Clock(1e-3)
    run(BenchDevice(clock), trace, clock, 0.5)
    rows = trace.since(0)[100:-10]
    power = np.sum(rows["command"] * rows["velocity"], axis=1)
    assert (power < 0).all()
    assert np.hypot(*rows["command"].T) == pytest.approx(4.0, rel=1e-12)


def test_a_wrong_pair_is_refused_before_anything_is_opened(trace: Trace) -> None:
    device = BenchDevice()
    with pytest.raises(CausalityError, match="use model B or C with bench"):
        Servo(device, RigidAdmittance(Coulomb(6.0), 2.0), trace)
    assert device.opened == 0


def test_a_rate_beyond_the_device_is_refused_before_anything_is_opened(trace: Trace) -> None:
    device = BenchDevice()
    with pytest.raises(ConfigurationError, match="rate = 10000 Hz: bench can be served at 100 to 4000 Hz"):
        Servo(device, element_c(1e-4), trace)
    assert device.opened == 0


def test_missed_deadlines_are_skipped_and_flagged_not_caught_up(trace: Trace) -> None:
    clock = TardyClock(1e-3, {10: 3.2e-3, 20: 0.7e-3})
    device = BenchDevice(clock)
    run(device, trace, clock)
    rows = trace.since(0)
    assert rows["tick"].tolist() == [*range(10), *range(13, 100)]
    assert rows["period_error"][10] == pytest.approx(0.2e-3)
    assert rows["status"][10] & Status.AFTER_SKIP
    late = rows[rows["tick"] == 20]
    assert late["status"][0] == Status.STARTED_LATE
    assert late["period_error"][0] == pytest.approx(0.7e-3)


@pytest.mark.parametrize(("late", "skipped"), [(0.999e-3, 0), (1e-3, 1), (1.3e-3, 1), (1.999e-3, 1), (2e-3, 2)])
def test_a_deadline_is_missed_when_the_next_one_has_come(trace: Trace, late: float, skipped: int) -> None:
    run(BenchDevice(), trace, TardyClock(1e-3, {10: late}))
    rows = trace.since(0)
    assert rows["tick"].tolist() == [*range(10), *range(10 + skipped, 100)]
    assert rows["period_error"][10] == pytest.approx(late - skipped * 1e-3, abs=1e-12)
    assert bool(rows["status"][10] & Status.AFTER_SKIP) == (skipped > 0)
    assert not rows["status"][11] & Status.AFTER_SKIP


class BusyClock(TardyClock):
    """A clock by which a tick can begin late, and take its time."""

    def __init__(self, lateness: float, work: float) -> None:
        super().__init__(1e-3, {10: lateness})
        self.work = {10: work}
        self.late = self.spent = 0.0

    def wait(self, tick: int) -> float:
        self.late, self.spent = super().wait(tick), 0.0
        return self.late

    def elapsed(self) -> float:
        return self.time + self.late + self.spent

    def toil(self, state: State, number: int) -> None:
        self.spent = self.work.get(number, 0.0)


@pytest.mark.parametrize(
    ("late", "work", "flags"),
    [
        (0.0, 0.9e-3, 0),
        (0.0, 1.1e-3, Status.ENDED_LATE),
        (0.3e-3, 0.6e-3, 0),
        (0.3e-3, 0.8e-3, Status.ENDED_LATE),
        (0.7e-3, 0.2e-3, Status.STARTED_LATE),
        (0.7e-3, 0.5e-3, Status.STARTED_LATE | Status.ENDED_LATE),
    ],
)
def test_a_tick_has_ended_late_when_the_next_deadline_was_over(
    trace: Trace, late: float, work: float, flags: Status
) -> None:
    clock = BusyClock(late, work)
    run(BenchDevice(clock, disturb=clock.toil), trace, clock)
    rows = trace.since(0)
    assert rows["status"][10] == flags
    assert rows["tick_time"][10] == pytest.approx(work)
    assert not np.delete(rows["status"], 10)[:80].any()


def test_skipping_past_the_end_ends_the_run(trace: Trace) -> None:
    clock = TardyClock(1e-3, {98: 10e-3})
    assert run(BenchDevice(clock), trace, clock) is End.COMPLETED
    assert trace.since(0)["tick"][-1] == 97


def test_a_fault_writes_the_safe_output_closes_and_carries_the_last_rows(trace: Trace) -> None:
    clock = Clock(1e-3)
    device = BenchDevice(clock, fail_at=42)
    with pytest.raises(DeviceFault, match="the cable was pulled") as caught:
        run(device, trace, clock)
    assert caught.value.rows["tick"].tolist() == list(range(42))
    assert device.written[-1].tolist() == [0.0, 0.0]
    assert device.closed == 1


def test_an_unexpected_exception_also_leaves_the_device_safe(trace: Trace) -> None:
    clock = Clock(1e-3)

    def break_down(state: State, number: int) -> None:
        if number == 5:
            raise ZeroDivisionError

    device = BenchDevice(clock, disturb=break_down)
    with pytest.raises(DeviceFault, match="bench failed at tick 5: ZeroDivisionError") as caught:
        run(device, trace, clock)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert len(caught.value.rows) == 5
    assert device.written[-1].tolist() == [0.0, 0.0]
    assert device.closed == 1


def test_a_short_dropout_is_survived_and_a_long_one_is_a_fault(trace: Trace) -> None:
    def dropout(length: int) -> BenchDevice:
        def disturb(state: State, number: int) -> None:
            if 100 <= number < 100 + length:
                state.position[0] = math.nan

        return BenchDevice(clock, disturb=disturb)

    clock = Clock(1e-3)
    device = dropout(80)
    assert run(device, trace, clock, 0.3) is End.COMPLETED
    assert device.written[100] == pytest.approx(0.5 * device.written[99])
    assert all(command.tolist() == [0.0, 0.0] for command in device.written[101:180])
    with pytest.raises(DeviceFault, match="no usable sample since tick 100, for 100 ms"):
        run(dropout(150), trace, clock, 0.3)


def test_an_admittance_device_is_left_holding_its_reference(trace: Trace) -> None:
    clock = Clock(1e-3)
    device = BenchDevice(clock, Causality.ADMITTANCE)
    Servo(device, RigidAdmittance(Coulomb(6.0), 2.0), trace, clock=clock).run(0.2)
    assert device.written[-1].tolist() == device.written[-2].tolist()
    assert np.hypot(*device.written[-1]) > 0


def test_stop_fades_the_output_out_from_the_next_tick_on(trace: Trace) -> None:
    clock = Clock(1e-3)

    def stop(state: State, number: int) -> None:
        if number == 30:
            servo.stop()

    servo = Servo(BenchDevice(clock, disturb=stop), element_c(), trace, clock=clock)
    assert servo.run() is End.STOPPED
    rows = trace.since(0)
    assert rows["tick"][-1] == 31 + FADE_TICKS - 1
    forces = np.hypot(*rows["command"].T)
    assert forces[30:] == pytest.approx(4.0 * np.maximum(1.0 - np.arange(FADE_TICKS + 1) / 8.0, 0.0), abs=1e-12)
    assert (rows["permission"][31:] == Permission.ENDING).all()
    assert (rows["permission"][:31] == 0).all()


def test_a_supervisor_ends_the_run_and_the_instants_are_kept(trace: Trace) -> None:
    clock = Clock(1e-3)
    answers = iter([None] * 11 + [End.APPLICATION_LOST])  # the first before the device is opened
    servo = Servo(BenchDevice(clock), element_c(), trace, clock=clock, supervisor=lambda: next(answers))
    assert servo.run(1.0) is End.APPLICATION_LOST
    assert trace.count == 10 + FADE_TICKS
    assert 0 < servo.noticed_ns <= servo.safe_output_ns


def test_an_admittance_device_that_starts_with_bad_samples_is_not_moved(trace: Trace) -> None:
    clock = Clock(1e-3)

    def blind(state: State, number: int) -> None:
        if number < 20:
            state.force[0] = math.nan

    device = BenchDevice(clock, Causality.ADMITTANCE, blind)
    Servo(device, RigidAdmittance(Coulomb(50.0), 2.0), trace, clock=clock).run(0.1)
    assert len(device.written) == 80 + 1
    assert np.ptp(device.written, axis=0).tolist() == [0.0, 0.0]
    assert device.written[0].tolist() == trace.since(0)["position"][20].tolist()


class DeadDevice(BenchDevice):
    """Fails on every write after its first failed read."""

    dead = False

    def read(self) -> State:
        try:
            return super().read()
        except DeviceFault:
            self.dead = True
            raise

    def write(self, command: Vector) -> None:
        if self.dead:
            raise OSError("no such device")
        super().write(command)


def test_a_device_that_fails_twice_is_reported_with_its_first_fault(trace: Trace) -> None:
    clock = Clock(1e-3)
    device = DeadDevice(clock, fail_at=41)
    with pytest.raises(DeviceFault, match="the cable was pulled") as caught:
        run(device, trace, clock)
    assert len(caught.value.rows) == 41
    assert device.closed == 1


class ExplainingDevice(BenchDevice):
    """A device that knows why its samples were late, once it is closed."""

    def explain(self) -> str:
        return "the table stood still." if self.closed else "too early to say."


def test_a_device_that_knows_why_it_failed_is_quoted_first(trace: Trace) -> None:
    clock = Clock(1e-3)
    device = ExplainingDevice(clock, disturb=lambda state, number: setattr(state, "time", state.time - 3.0))
    with pytest.raises(DeviceFault, match=r"tick \d+: the table stood still\. \(It was noticed as: no us"):
        run(device, trace, clock, 0.3)


def test_a_sample_from_the_future_is_stale(trace: Trace) -> None:
    clock = Clock(1e-3)

    def disturb(state: State, number: int) -> None:
        state.time += 0.9e-3 if number < 50 else 3.0

    with pytest.raises(DeviceFault, match="too old"):
        run(BenchDevice(clock, disturb=disturb), trace, clock, 0.3)
    rows = trace.since(0)
    assert (rows["status"][:50] == 0).all()
    assert (rows["status"][50:] == Status.STALE).all()
