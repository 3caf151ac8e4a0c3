"""The servo loop and its clocks: order, deadlines, device faults, cancelled openings, and safe output at every end."""

from __future__ import annotations

import math
import re
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

from haptics import CausalityError, ConfigurationError, Coulomb, DeviceFault, MasslessImpedance, RigidAdmittance, Servo
from haptics.clock import Clock, WallClock, cancelled_by, pause, raise_if_cancelled
from haptics.device import Causality
from haptics.errors import OpeningCancelled
from haptics.records import Status
from haptics.servo.control import Supervision
from haptics.servo.kernels import APPLICATION_SILENT, CONTROL, LOSSES
from haptics.servo.servo import END_REASONS, EndReason
from haptics.shared import Mailbox
from haptics.trace import Trace
from tests.haptics.doubles import BenchDevice

PERIOD = 1e-3


def element(period=PERIOD):
    return MasslessImpedance(Coulomb(4.0), 6000.0, 10.0, period)


FADE_TICKS = 9
"""Ticks in which the output fades out at 1 kHz: eight, and one more for the rounding."""


class TardyClock(Clock):
    """A clock that is late at given ticks."""

    def __init__(self, period, lateness):
        super().__init__(period)
        self.lateness = lateness

    def wait(self, tick):
        super().wait(tick)
        return self.lateness.pop(tick, 0.0)


def run(device, trace, duration=0.1, **options):
    """Run a friction element on the device by its own clock."""
    return Servo(device, element(), trace, clock=device.clock, **options).run(duration)


def test_every_tick_is_read_written_and_recorded_once(trace):
    device = BenchDevice()
    assert run(device, trace) is EndReason.COMPLETED
    rows = trace.since(0)
    assert rows["tick"].tolist() == list(range(100))
    assert rows["time"] == pytest.approx(np.arange(100) * 1e-3)
    assert device.reads == 100
    assert np.array_equal(device.written[:-1], rows["command"])
    assert device.written[-1].tolist() == [0.0, 0.0]
    assert device.closed == 1


def test_row_has_the_marker_at_the_start_of_its_tick_and_the_hand_force(trace, tmp_path):
    lane = Mailbox(tmp_path / "control", CONTROL, create=True)
    control = lane.record
    control["marker"] = 3

    def change(state, number):
        if number == 40:
            control["marker"] = -8
        if number >= 60:
            state.hand_force = np.array((number, -0.5 * number))

    run(BenchDevice(disturb=change), trace, supervision=Supervision(lane))
    rows = trace.since(0)
    assert rows["marker"].tolist() == [3] * 41 + [-8] * 59
    assert np.isnan(rows["hand_force"][:60]).all()
    assert rows["hand_force"][60:].tolist() == [[number, -0.5 * number] for number in range(60, 100)]
    assert (rows["gate"] == 1.0).all() and (rows["region"] == -1).all() and np.isnan(rows["normal_force"]).all()


def test_row_has_the_channels_of_its_own_sample(tmp_path):
    """The ring is shorter than the run, so that slots are reused."""
    trace = Trace.create(tmp_path / "short", capacity=16)

    def measure(state, number):
        state.channels = np.array((number, -number, 0.5)) if number % 3 else None

    channels = (("joint_angles", "rad", 2), ("temperature", "degC", 1))
    run(BenchDevice(disturb=measure, channels=channels), trace)
    rows = trace.since(0)
    assert len(rows) == 15
    for row in rows:
        number = row["tick"]
        expected = (number, -number, 0.5) if number % 3 else (np.nan,) * 3
        np.testing.assert_array_equal(row["channels"][:3], expected)


def test_wrong_number_of_channels_is_a_fault(trace):
    def measure(state, number):
        state.channels = np.zeros(3)

    device = BenchDevice(disturb=measure, channels=(("joint_angles", "rad", 2),))
    with pytest.raises(DeviceFault, match="bench failed at tick 0"):
        run(device, trace)
    assert device.closed == 1


@pytest.mark.parametrize(
    ("program", "error", "words"),
    [
        (RigidAdmittance(Coulomb(6.0), 2.0), CausalityError, "use model B or C with bench"),
        (element(1e-4), ConfigurationError, "rate = 10000 Hz: bench can be served at 100 to 4000 Hz"),
    ],
)
def test_program_that_does_not_fit_is_refused_before_opening(trace, program, error, words):
    device = BenchDevice()
    with pytest.raises(error, match=words):
        Servo(device, program, trace)
    assert device.opened == 0


@pytest.mark.parametrize(("late", "skipped"), [(0.999e-3, 0), (1e-3, 1), (1.3e-3, 1), (1.999e-3, 1), (2e-3, 2)])
def test_deadline_is_missed_when_the_next_one_has_come(trace, late, skipped):
    run(BenchDevice(TardyClock(1e-3, {10: late})), trace)
    rows = trace.since(0)
    assert rows["tick"].tolist() == [*range(10), *range(10 + skipped, 100)]
    assert rows["period_error"][10] == pytest.approx(late - skipped * 1e-3, abs=1e-12)
    assert bool(rows["status"][10] & Status.AFTER_SKIP) == (skipped > 0)
    assert not rows["status"][11] & Status.AFTER_SKIP


class BusyClock(TardyClock):
    """A clock by which tick 10 begins late, and takes its time."""

    def __init__(self, lateness, work):
        super().__init__(PERIOD, {10: lateness})
        self.work = {10: work}
        self.late = self.spent = 0.0

    def wait(self, tick):
        self.late, self.spent = super().wait(tick), 0.0
        return self.late

    def elapsed(self):
        return self.time + self.late + self.spent

    def toil(self, state, number):
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
def test_tick_is_flagged_late_after_the_next_deadline(trace, late, work, flags):
    clock = BusyClock(late, work)
    run(BenchDevice(clock, disturb=clock.toil), trace)
    rows = trace.since(0)
    assert rows["status"][10] == flags
    assert rows["tick_time"][10] == pytest.approx(work)
    assert not np.delete(rows["status"], 10)[:80].any()


class Blocking(Clock):
    """Simulated time in which a reading can block."""

    blocked = 0.0

    def elapsed(self):
        return self.time + self.blocked

    def wait(self, tick):
        super().wait(tick)
        late, self.blocked = max(self.blocked - self.period, 0.0), 0.0
        return late


def test_sample_that_blocked_too_long_is_stale(trace):
    clock = Blocking(PERIOD)

    def block(state, number):
        clock.blocked = {100: 4e-3, 200: 50e-3}.get(number, 0.0)

    run(BenchDevice(clock, disturb=block), trace, 0.5)
    rows = trace.since(0)
    stale = rows[(rows["status"] & Status.STALE) != 0]
    assert stale["tick"].tolist() == [rows["tick"][200]]
    assert stale["sample_age"][0] == pytest.approx(50e-3)
    assert np.hypot(*stale["command"][0]) == pytest.approx(2.0)


def test_skipping_past_the_end_ends_the_run(trace):
    clock = TardyClock(1e-3, {98: 10e-3})
    assert run(BenchDevice(clock), trace) is EndReason.COMPLETED
    assert trace.since(0)["tick"][-1] == 97


@pytest.mark.parametrize("error", [DeviceFault("bench: the cable was pulled."), ZeroDivisionError("oops")])
def test_fault_writes_the_safe_output_and_carries_the_last_rows(trace, error):

    def break_down(state, number):
        if number == 42:
            raise error

    device = BenchDevice(disturb=break_down)
    with pytest.raises(DeviceFault, match=f"bench failed at tick 42: .*{error}") as caught:
        run(device, trace)
    assert caught.value.__cause__ is error
    assert caught.value.rows["tick"].tolist() == list(range(42))
    assert device.written[-1].tolist() == [0.0, 0.0]
    assert device.closed == 1


def test_short_dropout_is_survived_and_a_long_one_is_a_fault(trace):
    def dropout(length):
        def disturb(state, number):
            if 100 <= number < 100 + length:
                state.position[0] = math.nan

        return BenchDevice(disturb=disturb)

    device = dropout(80)
    assert run(device, trace, 0.3) is EndReason.COMPLETED
    assert device.written[100] == pytest.approx(0.5 * device.written[99])
    assert all(command.tolist() == [0.0, 0.0] for command in device.written[101:180])
    with pytest.raises(DeviceFault, match="no usable sample since tick 100, for 100 ms"):
        run(dropout(150), trace, 0.3)


def test_admittance_device_with_bad_first_samples_is_not_moved(trace):

    def blind(state, number):
        if number < 20:
            state.force[0] = math.nan

    device = BenchDevice(None, Causality.ADMITTANCE, blind)
    Servo(device, RigidAdmittance(Coulomb(50.0), 2.0), trace, clock=device.clock).run(0.1)
    assert len(device.written) == 80 + 1
    assert np.ptp(device.written, axis=0).tolist() == [0.0, 0.0]
    assert device.written[0].tolist() == trace.since(0)["position"][20].tolist()


class ExplainingDevice(BenchDevice):
    """A device that knows why its samples were late, once it is closed."""

    def explain(self):
        return "the table stood still." if self.closed else "too early to say."


def test_explanation_of_the_device_comes_first(trace):
    device = ExplainingDevice(disturb=lambda state, number: setattr(state, "time", state.time - 3.0))
    with pytest.raises(DeviceFault, match=r"tick \d+: the table stood still\. \(It was noticed as: no us"):
        run(device, trace, 0.3)


def test_sample_from_the_future_is_stale(trace):

    def disturb(state, number):
        state.time += 0.9e-3 if number < 50 else 3.0

    with pytest.raises(DeviceFault, match="too old"):
        run(BenchDevice(disturb=disturb), trace, 0.3)
    rows = trace.since(0)
    assert (rows["status"][:50] == 0).all()
    assert (rows["status"][50:] == Status.STALE).all()


# --- ends


SLOW = {"max_speed": 0.3, "max_acceleration": 5.0}
"""Limits [m/s, m/s^2] of an arm that takes longer to brake than an output to fade."""


class Assisted(BenchDevice):
    """A device that compensates its own friction, and logs each call with its tick."""

    def __init__(self, clock, fail_at=None):
        super().__init__(clock, fail_at=fail_at)
        self.told: list[tuple[int, str, float]] = []

    def compensate(self, share):
        self.told.append((self.clock.tick, "compensate", share))

    def write(self, command):
        super().write(command)
        self.told.append((self.clock.tick, "force", float(np.hypot(*command))))

    def close(self):
        super().close()
        self.told.append((self.clock.tick, "close", 0.0))


def test_fault_halves_the_force_and_stops_compensation(trace):
    device = Assisted(Clock(PERIOD), fail_at=42)
    with pytest.raises(DeviceFault, match="the cable was pulled"):
        run(device, trace, 0.3)
    (_, _, before), *after = device.told[-5:]
    assert before == pytest.approx(4.0)
    assert device.told[-6] == (41, "compensate", 1.0)
    assert after == [(42, "compensate", 0.0), (42, "force", 0.5 * before), (43, "force", 0.0), (43, "close", 0.0)]


def test_end_is_noticed_before_the_output_fades(trace, monkeypatch):
    clock = Clock(1e-3)
    monkeypatch.setattr("haptics.servo.servo.time", SimpleNamespace(monotonic_ns=lambda: 1 + clock.tick))
    servo = Servo(BenchDevice(clock), element(), trace, clock=clock)
    monkeypatch.setattr(servo.supervision, "end_reason", lambda _: APPLICATION_SILENT if clock.tick == 20 else 0)
    assert servo.run(1.0) is EndReason.APPLICATION_LOST
    assert servo.loss == LOSSES[APPLICATION_SILENT]
    assert servo.noticed_ns == 21
    assert servo.safe_output_ns == 1 + 20 + FADE_TICKS - 1


def test_stopped_run_continues_until_the_reference_rests(trace):
    clock = Clock(1e-3)
    servo = Servo(
        BenchDevice(clock, Causality.ADMITTANCE, lambda _, number: servo.stop() if number == 100 else None, **SLOW),
        RigidAdmittance(Coulomb(6.0), 2.0),
        trace,
        clock=clock,
    )
    assert servo.run(1.0) is EndReason.STOPPED
    path = np.array(servo.device.written)
    speeds = np.hypot(*np.diff(path, axis=0).T) / 1e-3
    assert speeds[100] > 0.1
    assert np.abs(np.diff(speeds)).max() <= SLOW["max_acceleration"] * 1e-3 * (1 + 1e-6)
    assert speeds[-1] == 0.0
    braking = speeds[100] / (SLOW["max_acceleration"] * 1e-3)
    assert FADE_TICKS < trace.count - 101 <= braking + FADE_TICKS, "and no longer than that"


def test_stopped_run_with_a_resting_reference_ends_with_the_fade(trace):
    clock = Clock(1e-3)

    def rest_and_stop(state, number):
        state.force[:] = 0.0
        if number == 100:
            servo.stop()

    device = BenchDevice(clock, Causality.ADMITTANCE, rest_and_stop, **SLOW)
    servo = Servo(device, RigidAdmittance(Coulomb(6.0), 2.0), trace, clock=clock)
    assert servo.run(1.0) is EndReason.STOPPED
    assert trace.count == 101 + FADE_TICKS


# --- faults


class Wedged(BenchDevice):
    """Cannot be read from tick 50 on, nor take its safe output then; closing it may say something as well."""

    def __init__(self, clock, writing="", closing="", fail_at=50):
        super().__init__(clock, fail_at=fail_at)
        self.writing, self.closing = writing, closing

    def write(self, command):
        if self.writing and self.clock.tick >= self.fail_at:
            raise OSError(self.writing)
        super().write(command)

    def close(self):
        super().close()
        if self.closing:
            raise DeviceFault(self.closing)


PULLED = "bench failed at tick 50: bench: the cable was pulled; plug it in again."


@pytest.mark.parametrize(
    ("writing", "closing", "words"),
    [
        ("", "", ""),
        ("", "bench: switch the motors off.", " It could not be left safe: bench: switch the motors off."),
        ("busy", "", " It could not be left safe: OSError: busy"),
        ("busy", "bench: switch it off.", " It could not be left safe: bench: switch it off."),
        ("", "bench: the cable was pulled; plug it in again.", ""),  # not reported twice
    ],
)
def test_unsafe_end_is_reported(trace, writing, closing, words):
    device = Wedged(Clock(PERIOD), writing, closing)
    with pytest.raises(DeviceFault) as caught:
        run(device, trace, 0.3)
    assert str(caught.value) == PULLED + words
    assert device.closed == 1


def test_unsafe_orderly_end_is_a_fault(trace):
    device = Wedged(Clock(PERIOD), closing="bench: switch the motors off.")
    with pytest.raises(DeviceFault, match=r"bench failed at tick \d+: bench: switch the motors off\."):
        run(device, trace, 0.03)


class Wavering(BenchDevice):
    """Fails to write twice."""

    calls = 0

    def write(self, command):
        self.calls += 1
        if self.calls in (51, 52):
            raise OSError("busy")
        super().write(command)


def test_safe_output_is_completed_after_a_failed_write(trace):
    device = Wavering()
    with pytest.raises(DeviceFault, match="bench failed at tick 50: OSError: busy"):
        run(device, trace, 0.3)
    assert device.written[-2].any()
    assert device.written[-1].tolist() == [0.0, 0.0]
    assert device.closed == 1


def test_second_run_does_not_inherit_bad_samples(trace):
    blind = {"until": 200}

    def spoil(state, number):
        if number < blind["until"]:
            state.position[0] = math.nan

    device = BenchDevice(disturb=spoil)
    servo = Servo(device, element(), trace, clock=device.clock)
    with pytest.raises(DeviceFault, match="no usable sample"):
        servo.run(0.3)
    blind["until"] = device.reads + 50
    servo.run(0.3)
    assert (trace.since(0)["status"][-200:] & Status.NOT_FINITE == 0).all()


def test_arm_that_does_not_follow_is_a_fault_with_its_position(trace):
    def blocked(state, number):
        state.position[:], state.velocity[:], state.force[:] = (0.01, -0.02), 0.0, (30.0, 0.0)

    device = BenchDevice(None, Causality.ADMITTANCE, blocked, max_following_error=0.005)
    with pytest.raises(DeviceFault, match=r"\(0\.010 m, -0\.020 m\).* 5 mm .*now 5\.\d mm in x.*blocks it") as caught:
        Servo(device, RigidAdmittance(Coulomb(6.0), 2.0), trace, clock=device.clock).run(1.0)
    found = re.search(r"tick (\d+):.* since tick (\d+)", str(caught.value))
    assert found is not None
    last, first = int(found[1]), int(found[2])
    rows = trace.since(0)
    flagged = rows["tick"][(rows["status"] & Status.FOLLOWING_ERROR) != 0]
    assert (flagged[0], flagged[-1], last - first) == (first, last, 100)
    assert (np.array(device.written)[first:] == device.written[first - 1]).all(), "the reference is held to the end"
    assert device.closed == 1


# --- clocks and cancelled openings


@pytest.mark.parametrize("kind", [Clock, WallClock])
def test_clock_stores_its_start(kind):
    clock = kind(1e-3)
    assert clock.origin_ns == (0, 0)
    for _ in range(2):
        before = time.monotonic_ns(), time.time_ns()
        clock.start()
        after = time.monotonic_ns(), time.time_ns()
        assert all(a <= at <= b for a, at, b in zip(before, clock.origin_ns, after, strict=True))


def test_wall_clock_never_wakes_early_and_does_not_drift():
    clock = WallClock(2e-3)
    clock.start()
    for tick in range(1, 101):
        late = clock.wait(tick)
        assert late >= 0.0
        assert clock.elapsed() >= clock.time
    # 100 periods after the start, give or take the lateness of the last tick alone.
    assert abs(clock.elapsed() - 0.2 - late) < 5e-3


def test_pause_lasts_or_is_cancelled_once():
    begun = time.monotonic()
    with cancelled_by(lambda: False):
        pause(0.05)
    assert time.monotonic() - begun >= 0.05
    with cancelled_by(lambda: time.monotonic() - begun > 0.1):
        with pytest.raises(OpeningCancelled):
            pause(60.0)
        pause(0.0)  # a driver that undoes its first steps is not cancelled again
        raise_if_cancelled()
    assert time.monotonic() - begun < 30.0


def test_other_threads_are_not_cancelled():
    ended = threading.Event()

    def read_on():
        pause(0.0)
        raise_if_cancelled()
        ended.set()

    with cancelled_by(lambda: True):
        thread = threading.Thread(target=read_on)
        thread.start()
        thread.join()
    assert ended.is_set()


class Slow(BenchDevice):
    """A device that waits in `open` before it arms its motors."""

    armed = False

    def open(self):
        super().open()
        pause(60.0)
        self.armed = True


@pytest.mark.parametrize(("number", "reason"), [*END_REASONS.items()][1:])
def test_run_that_ends_while_opening_has_no_tick(trace, monkeypatch, number, reason):
    answers = iter([0] * 4)
    device, element = Slow(Clock(1e-3)), MasslessImpedance(Coulomb(4.0), 6000.0, 10.0)
    servo = Servo(device, element, trace, clock=device.clock)
    monkeypatch.setattr(servo.supervision, "end_reason", lambda _: next(answers, number))
    opened: list[bool] = []
    assert servo.run(1.0, lambda: opened.append(True)) is reason
    assert servo.loss == LOSSES.get(number, "")
    assert (device.opened, device.armed, opened, trace.count, device.written) == (1, False, [], 0, [])
    stopped = Servo(device, element, trace, clock=device.clock)
    stopped.stop()
    assert stopped.run(1.0) is EndReason.STOPPED
    assert device.opened == 1, "a run that is stopped before it begins opens nothing"


def test_servo_marks_its_rows(trace):
    device = BenchDevice()
    servo = Servo(device, element(), trace, clock=device.clock)
    servo.mark(7)
    servo.run(0.01)
    assert trace.since(0)["marker"].tolist() == [7] * 10
