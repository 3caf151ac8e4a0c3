"""Faults on demand: what each does to samples and commands in its time."""

import contextlib
import errno
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from devices.faults import FAULTS
from haptics.errors import DeviceOpenError
from tests.devices.rigs import PERIOD, RAISING, SPOILING, VECTORS, Samples, assert_values, every_device, rig, samples
from tests.sampling import sample

# --- each in its time -------------------------------------------------------------------------------------------

T = 40
"""Tick at which the faults of these tests begin, 0.04 s."""


def is_nan(good: Samples, bad: Samples) -> None:
    for name in VECTORS:
        assert np.isnan(bad[name][T:]).all()
    np.testing.assert_array_equal(bad["time"], good["time"])


def is_infinite(good: Samples, bad: Samples) -> None:
    assert np.isinf(bad["velocity"][T:]).all()
    for name in ("time", "position", "force"):
        np.testing.assert_array_equal(bad[name], good[name])


def twice_too_old(device: str) -> int:
    """Return twice the age that the device allows, in ticks."""
    return 15 if device.startswith("virtual") else 10


def is_stale(device: str) -> Callable[[Samples, Samples], None]:
    def check(good: Samples, bad: Samples) -> None:
        # Twice too old at once, and older with every tick.
        assert (bad[T:] == good[T - twice_too_old(device)]).all()

    return check


def is_dropout(good: Samples, bad: Samples) -> None:
    assert (bad[T:] == good[T - 1]).all()


def is_stuck(good: Samples, bad: Samples) -> None:
    np.testing.assert_array_equal(bad["time"], good["time"])
    assert_values(bad[T:], good[np.full(len(good) - T, T)])


def is_jump(good: Samples, bad: Samples) -> None:
    np.testing.assert_array_equal(bad["time"], good["time"])
    for name in VECTORS:
        assert not bad[name][T:].any()


def is_delay(milliseconds: int) -> Callable[[Samples, Samples], None]:
    def judge(good: Samples, bad: Samples) -> None:
        assert (bad[T:] == good[T - milliseconds : -milliseconds]).all()

    return judge


def is_duplicate(good: Samples, bad: Samples) -> None:
    assert (bad[T::2] == good[T - 1 : -1 : 2]).all()
    assert (bad[T + 1 :: 2] == good[T + 1 :: 2]).all()


def is_late(good: Samples, bad: Samples) -> None:
    ages = np.round((good["time"] - bad["time"])[T:] / PERIOD).astype(int)
    assert set(ages) == {0, 1, 2, 3}
    assert (np.diff(bad["time"]) >= 0.0).all()
    assert (bad[T:] == good[np.arange(T, len(good)) - ages]).all()


def is_out_of_order(good: Samples, bad: Samples) -> None:
    assert (bad[T::2] == good[T - 2 : -2 : 2]).all()
    assert (bad[T + 1 :: 2] == good[T + 1 :: 2]).all()
    assert (np.diff(bad["time"][T - 1 :])[::2] < 0.0).all()


def is_quantisation(good: Samples, bad: Samples) -> None:
    for name in ("time", "force"):
        np.testing.assert_array_equal(bad[name], good[name])
    np.testing.assert_allclose(bad["position"][T:] * 1e3, np.round(good["position"][T:] * 1e3), atol=1e-9)
    # Whatever such a velocity looks like, it must add up to the way that was read.
    way = np.cumsum(bad["velocity"][T + 1 :], axis=0) * PERIOD
    np.testing.assert_allclose(way, bad["position"][T + 1 :] - bad["position"][T], atol=1e-9)


SIGNS: dict[str, Callable[[Samples, Samples], None]] = {
    "nan": is_nan,
    "infinite": is_infinite,
    "dropout": is_dropout,
    "stuck": is_stuck,
    "jump": is_jump,
    "delay-1ms": is_delay(1),
    "delay-5ms": is_delay(5),
    "delay-20ms": is_delay(20),
    "duplicate": is_duplicate,
    "late": is_late,
    "out-of-order": is_out_of_order,
    "quantisation": is_quantisation,
}


@every_device
@pytest.mark.parametrize("name", sample(SPOILING, 26))
def test_from_its_time_on_a_fault_spoils_the_samples_as_its_name_says(device: str, name: str) -> None:
    good, bad = samples(device), samples(device, f"{name}@0.04")
    assert (bad[:T] == good[:T]).all()
    (SIGNS | {"stale": is_stale(device)})[name](good, bad)


@every_device
@pytest.mark.parametrize("name", sample(SPOILING, 26))
def test_when_its_time_is_over_all_is_well_again(device: str, name: str) -> None:
    good, bad = samples(device, ticks=60), samples(device, f"{name}@0.04+0.01", ticks=60)
    assert (bad[T : T + 10] != good[T : T + 10]).any()
    assert (bad[T + 10 :] == good[T + 10 :]).all()


def test_a_dropout_lasts_50_ms_unless_something_else_is_said() -> None:
    good, bad = (samples("bench-impedance", *faults, ticks=120) for faults in ((), ("dropout@0.04",)))
    assert (bad != good).nonzero()[0].tolist() == list(range(T, T + 50))


@every_device
def test_at_the_start_a_stale_sample_is_from_before_the_run(device: str) -> None:
    good, bad = samples(device, ticks=3), samples(device, "stale@0", ticks=3)
    assert bad["time"] == pytest.approx(-twice_too_old(device) * PERIOD)
    assert_values(bad, good[[0, 0, 0]])


@every_device
def test_at_the_start_the_delayed_sample_is_the_oldest_there_is(device: str) -> None:
    good, bad = samples(device, ticks=8), samples(device, "delay-5ms@0", ticks=8)
    assert (bad == good[[0, 0, 0, 0, 0, 0, 1, 2]]).all()


@pytest.mark.parametrize("name", ["dropout", "duplicate", "late", "out-of-order"])
def test_at_the_start_there_is_no_sample_before_the_first(name: str) -> None:
    good, bad = samples("bench-impedance", ticks=1), samples("bench-impedance", f"{name}@0", ticks=1)
    assert (bad == good).all()


# --- failing and hanging ----------------------------------------------------------------------------------------


def outcome(call: Callable[[], Any]) -> int | None:
    """Return the number of the error that `call` raises, None if it raises none."""
    try:
        call()
    except OSError as error:
        assert "fault on demand" in str(error)
        return error.errno
    return None


@every_device
@pytest.mark.parametrize(
    ("name", "reading", "writing"),
    [
        ("read-error", errno.EIO, None),
        ("write-error", None, errno.EIO),
        ("unplug", errno.ENODEV, errno.ENODEV),
    ],
)
def test_errors_come_where_they_belong(device: str, name: str, reading: int | None, writing: int | None) -> None:
    clock, inner, faulty = rig(device, f"{name}@0.002+0.002")
    command = inner.read().position.copy()
    for tick in range(6):
        clock.wait(tick)
        now = tick in {2, 3}
        assert outcome(faulty.read) == (reading if now else None)
        assert outcome(lambda: faulty.write(command)) == (writing if now else None)


def test_what_is_not_taken_does_not_reach_the_device() -> None:
    clock, inner, faulty = rig("bench-impedance", "write-error@0.001")
    faulty.write(np.array((1.0, 2.0)))
    clock.wait(1)
    with contextlib.suppress(OSError):
        faulty.write(np.array((3.0, 4.0)))
    assert [command.tolist() for command in inner.written] == [[1.0, 2.0]]


@every_device
def test_an_unplugged_device_is_closed_all_the_same(device: str) -> None:
    _, inner, faulty = rig(device, "unplug@0")
    faulty.close()
    if device.startswith("virtual"):
        with pytest.raises(DeviceOpenError):
            inner.read()
    else:
        assert inner.closed == 1


def test_a_hanging_reading_blocks_once(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    good = samples("bench-impedance")
    assert (samples("bench-impedance", "hang@0.04") == good).all()
    assert slept == [10.0]
    assert (samples("bench-impedance", "hang@0.04+0.5") == good).all()
    assert slept == [10.0, 0.5]


# --- commands that are ignored ----------------------------------------------------------------------------------


@every_device
def test_a_device_that_ignores_commands_keeps_to_the_last_one_for_as_long(device: str) -> None:
    clock, inner, faulty = rig(device, "ignored@0.002+0.003")
    told, write = [], inner.write
    inner.write = lambda command: (told.append(command.tolist()), write(command))
    commands = [[1e-3 * k, -1e-3 * k] for k in range(8)]
    for tick, command in enumerate(commands):
        clock.wait(tick)
        faulty.write(np.array(command))
    assert told == [*commands[:2], *[commands[1]] * 3, *commands[5:]]
    assert (samples(device, "ignored@0") == samples(device)).all()


def test_at_the_start_the_first_command_is_the_last() -> None:
    _, inner, faulty = rig("bench-impedance", "ignored@0")
    command = np.array((1.0, 2.0))
    faulty.write(command)
    command[:] = 3.0  # the servo uses the array again
    faulty.write(command)
    np.testing.assert_array_equal(inner.written, [(1.0, 2.0)] * 2)


# --- saturation -------------------------------------------------------------------------------------------------


def test_a_saturated_impedance_device_does_a_quarter_of_what_it_could() -> None:
    clock, inner, faulty = rig("bench-impedance", "saturation@0.001")
    commands = [(9.0, -9.0), (9.0, -1.0), (-9.0, 2.4), (0.0, 0.0)]
    for tick, command in enumerate(commands):
        clock.wait(tick)
        faulty.write(np.array(command))
    np.testing.assert_array_equal(inner.written, [(9.0, -9.0), (2.5, -1.0), (-2.5, 2.4), (0.0, 0.0)])
    assert (samples("bench-impedance", "saturation@0") == samples("bench-impedance")).all()


def test_a_saturated_force_sensor_shows_a_quarter_of_its_range() -> None:
    good, bad = samples("bench-admittance", ticks=400), samples("bench-admittance", "saturation@0", ticks=400)
    assert np.abs(good["force"]).max() > 8.0
    np.testing.assert_array_equal(bad["force"], np.clip(good["force"], -2.5, 2.5))
    for name in ("time", "position", "velocity"):
        np.testing.assert_array_equal(bad[name], good[name])
    _, inner, faulty = rig("bench-admittance", "saturation@0")
    faulty.write(np.array((9.0, -9.0)))
    np.testing.assert_array_equal(inner.written, [(9.0, -9.0)])


def test_every_name_has_been_tested_above() -> None:
    assert {*SIGNS, *RAISING, "stale", "hang", "ignored", "saturation"} == set(FAULTS)
