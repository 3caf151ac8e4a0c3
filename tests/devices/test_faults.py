"""Fault injection: descriptions of faults, and a device whose samples and transfers they spoil."""

import errno
import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import devices
from devices.faults import FAULTS, Fault, FaultyDevice, parse_fault
from haptics.clock import Clock
from haptics.device import Causality, Device
from haptics.errors import ConfigurationError
from tests.contract import VirtualDeviceContract
from tests.haptics.doubles import BenchDevice
from tests.sampling import sample

TIMES = st.floats(0.0, 1e7)
DURATIONS = st.none() | st.floats(0.0, 1e7, exclude_min=True)


@given(st.builds(Fault, st.sampled_from(sorted(FAULTS)), TIMES, DURATIONS))
def test_format_and_parse_are_inverse(fault):
    assert parse_fault(str(fault)) == fault


PIECES = [*FAULTS, "@", "+", "-", ".", "e", " ", "\n", *"0123456789"]


@given(st.text(max_size=30) | st.lists(st.sampled_from(PIECES), max_size=9).map("".join))
def test_any_text_is_parsed_or_rejected_in_one_line(text):
    try:
        fault = parse_fault(text)
    except ConfigurationError as error:
        assert "\n" not in str(error)
    else:
        assert fault.name in FAULTS
        assert fault.start >= 0.0
        assert fault.length > 0.0


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("nan@2", Fault("nan", 2.0)),
        (" delay-20ms@.5 ", Fault("delay-20ms", 0.5)),
        ("dropout@1e1+5e-2", Fault("dropout", 10.0, 0.05)),
        ("nan@1e+1", Fault("nan", 10.0)),
    ],
)
def test_valid_fault_texts(text, fault):
    assert parse_fault(text) == fault


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nam@2", "unknown fault in 'nam@2': 'nam'. Did you mean 'nan'? Allowed: delay-1ms"),
        ("unplugged@2", "Did you mean 'unplug'?"),
        ("nan", "fault 'nan': must have the form NAME@SECONDS"),
        ("nan@inf", "must have the form"),
        ("nan@1e9", "fault nan@1000000000: must begin at 0 s at the earliest and at 1e+07 s at the latest"),
        ("nan@2+0", "fault nan@2+0: must last longer than 0 s"),
    ],
)
def test_invalid_fault_texts_are_rejected(text, message):
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        parse_fault(text)


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -1.0])
def test_fault_times_must_be_finite_and_positive(wrong):
    with pytest.raises(ConfigurationError, match="must begin"):
        Fault("nan", wrong)
    with pytest.raises(ConfigurationError, match="must last"):
        Fault("nan", 1.0, wrong)


def test_documentation_lists_every_fault():
    page = (Path(__file__).parents[2] / "docs" / "faults.md").read_text()
    for name, kind in FAULTS.items():
        assert f"| `{name}` | {kind.description} |" in page


# --- samples of a device with faults ----------------------------------------------------------------------------------


PERIOD = 1e-3
DEVICES = {
    "bench-impedance": BenchDevice,
    "bench-admittance": lambda clock: BenchDevice(clock, Causality.ADMITTANCE, max_force=10.0),
    "virtual-joystick": lambda clock: devices.create_device("virtual-joystick", clock=clock),
    "virtual-arm": lambda clock: devices.create_device("virtual-arm", clock=clock),
}
VECTORS = ("position", "velocity", "force")
SPOILING = sorted(FAULTS.keys() - {"read-error", "write-error", "unplug", "hang", "ignored", "saturation"})
SAMPLE = np.dtype([("time", "<f8"), *((name, "<f8", (2,)) for name in VECTORS)])

every_device = pytest.mark.parametrize("device", DEVICES)


def rig(device, *faults, seed=0):
    """Return the clock, the device and the device with faults around it, which is open."""
    clock = Clock(PERIOD)
    inner = DEVICES[device](clock)
    faulty = FaultyDevice(inner, [parse_fault(text) for text in faults], clock, seed)
    faulty.open()
    return clock, inner, faulty


def as_row(state):
    return (state.time, *(getattr(state, name).copy() for name in VECTORS))


def drive(clock, device, ticks):
    """Read at every tick without a command, so that the plant is independent of the faults."""
    rows = []
    for tick in ticks:
        clock.wait(tick)
        rows.append(as_row(device.read()))
    return np.array(rows, SAMPLE)


def samples(device, *faults, ticks=80, seed=0):
    clock, _, faulty = rig(device, *faults, seed=seed)
    return drive(clock, faulty, range(ticks))


def assert_values(got, expected):
    for name in VECTORS:
        np.testing.assert_array_equal(got[name], expected[name])


# --- several at once --------------------------------------------------------------------------------------------


def test_faults_apply_in_the_given_order():
    behind, before = (
        samples("virtual-joystick", *faults) for faults in (("delay-5ms@0", "nan@0.04"), ("nan@0.04", "delay-5ms@0"))
    )
    assert np.isnan(behind["position"][:, 0]).argmax() == 40
    assert np.isnan(before["position"][:, 0]).argmax() == 45
    good, late = samples("virtual-arm"), samples("virtual-arm", "delay-1ms@0.04", "delay-5ms@0.02")
    assert (late[46:] == good[40:-6]).all(), "delays add up"


# --- the same again ---------------------------------------------------------------------------------------------


@every_device
def test_seed_determines_random_faults(device):
    runs = [samples(device, "late@0", seed=seed).tobytes() for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]


@pytest.mark.parametrize("name", SPOILING)
def test_reopened_device_repeats_its_faults(name):
    clock, _, faulty = rig("virtual-joystick", f"{name}@0.04")
    runs = []
    for _ in range(2):
        faulty.open()
        runs.append(drive(clock, faulty, range(60)).tobytes())
        faulty.close()
        clock.start()
    assert runs[0] == runs[1]


def test_opening_an_open_device_keeps_its_fault():
    clock, _, faulty = rig("bench-impedance", "stuck@0.001")
    first = drive(clock, faulty, range(4))
    faulty.open()
    assert_values(drive(clock, faulty, [4]), first[1:2])


@given(skipped=st.lists(st.integers(1, 30), min_size=1, max_size=20), name=st.sampled_from(SPOILING))
def test_missed_ticks_create_no_new_samples(skipped, name):
    ticks = np.cumsum([0, *skipped]).tolist()
    (clock, _, faulty), (good_clock, _, healthy) = rig("bench-admittance", f"{name}@0.02"), rig("bench-admittance")
    bad, good = drive(clock, faulty, ticks), drive(good_clock, healthy, ticks)
    assert (bad["time"] <= good["time"]).all()
    if name not in {"nan", "infinite", "jump", "quantisation"}:
        for row in bad:
            assert any((row[vector] == good[vector]).all(axis=1).any() for vector in VECTORS)


# --- nothing else is touched ------------------------------------------------------------------------------------


@every_device
@pytest.mark.parametrize("name", sample(SPOILING, 13))
def test_samples_are_copies(device, name):
    clock, inner, faulty = rig(device, f"{name}@0.002")
    expected = samples(device, f"{name}@0.002", ticks=30)
    for tick in range(30):
        clock.wait(tick)
        state = faulty.read()
        assert np.array(as_row(state), SAMPLE).tobytes() == expected[tick].tobytes()
        healthy = np.array(as_row(inner.read()), SAMPLE)
        for vector in VECTORS:
            getattr(state, vector)[:] = 99.0
        assert np.array(as_row(inner.read()), SAMPLE) == healthy


@every_device
def test_spec_and_attributes_are_forwarded(device):
    _, inner, faulty = rig(device, "nan@0")
    assert faulty.spec == inner.spec
    assert isinstance(faulty, Device)
    if device.startswith("virtual"):
        assert faulty.hand is inner.hand
        np.testing.assert_array_equal(faulty.handle, inner.handle)
    with pytest.raises(AttributeError, match="colour"):
        faulty.colour  # noqa: B018


def test_buttons_are_delayed_too():
    def press(state, count):
        state.buttons = count

    clock = Clock(PERIOD)
    with FaultyDevice(BenchDevice(clock, disturb=press), [Fault("delay-1ms", 0.0)], clock) as device:
        held = []
        for tick in range(4):
            clock.wait(tick)
            held.append(device.read().buttons)
    assert held == [0, 0, 1, 2]


@pytest.mark.parametrize("name", SPOILING)
@pytest.mark.parametrize("device", ["virtual-joystick", "virtual-arm"])
def test_faults_do_not_affect_the_hand_force(device, name):
    clock, inner, faulty = rig(device, f"{name}@0.3")
    forces = []
    for tick in range(360):
        clock.wait(tick)
        forces.append(faulty.read().hand_force.copy())
        np.testing.assert_array_equal(forces[-1], inner.hand_force)
    assert np.ptp(forces, axis=0).max() > 0.1


class Dormant:
    """All faults at once, long after the end of any test."""

    name: str

    def make(self, clock=None, **changes):
        faults = [Fault(name, 1e6) for name in FAULTS]
        inner = devices.create_device(self.name, changes, clock=clock)
        return FaultyDevice(inner, faults, clock or Clock(PERIOD))


class TestJoystickWithDormantFaults(Dormant, VirtualDeviceContract):
    name = "virtual-joystick"
    highest_rate = 8000.0


class TestArmWithDormantFaults(Dormant, VirtualDeviceContract):
    name = "virtual-arm"


# --- each in its time -------------------------------------------------------------------------------------------

# Tick at which the faults begin (0.04 s).
T = 40


def twice_too_old(device):
    """Return twice the age that the device allows, in ticks."""
    return 15 if device.startswith("virtual") else 10


def assert_spoiled(name, device, good, bad):
    """Assert the effect of a fault that begins at tick `T`."""
    k = np.arange(T, len(good))
    sources = {
        "stale": np.full(len(k), T - twice_too_old(device)),  # older with every tick
        "dropout": np.full(len(k), T - 1),
        "duplicate": np.where(k % 2 == 0, k - 1, k),
        "out-of-order": np.where(k % 2 == 0, k - 2, k),
        **{f"delay-{ticks}ms": k - ticks for ticks in (1, 5, 20)},
    }
    if name in sources:
        assert (bad[T:] == good[sources[name]]).all()
        return
    if name == "late":
        ages = np.round((good["time"] - bad["time"])[T:] / PERIOD).astype(int)
        assert set(ages) == {0, 1, 2, 3}
        assert (np.diff(bad["time"]) >= 0.0).all()
        assert (bad[T:] == good[k - ages]).all()
        return
    np.testing.assert_array_equal(bad["time"], good["time"])
    match name:
        case "nan":
            assert all(np.isnan(bad[vector][T:]).all() for vector in VECTORS)
        case "infinite":
            assert np.isinf(bad["velocity"][T:]).all()
            for vector in ("position", "force"):
                np.testing.assert_array_equal(bad[vector], good[vector])
        case "stuck":
            assert_values(bad[T:], good[np.full(len(k), T)])
        case "jump":
            assert not any(bad[vector][T:].any() for vector in VECTORS)
        case "quantisation":
            np.testing.assert_array_equal(bad["force"], good["force"])
            np.testing.assert_allclose(bad["position"][T:] * 1e3, np.round(good["position"][T:] * 1e3), atol=1e-9)
            # The velocity must sum to the displacement.
            way = np.cumsum(bad["velocity"][T + 1 :], axis=0) * PERIOD
            np.testing.assert_allclose(way, bad["position"][T + 1 :] - bad["position"][T], atol=1e-9)
        case _:
            pytest.fail(f"no effect is known of {name}")


@every_device
@pytest.mark.parametrize("name", sample(SPOILING, 26))
def test_fault_spoils_the_samples_from_its_start(device, name):
    good, bad = samples(device), samples(device, f"{name}@0.04")
    assert (bad[:T] == good[:T]).all()
    assert_spoiled(name, device, good, bad)


@every_device
@pytest.mark.parametrize("name", sample(SPOILING, 26))
def test_samples_recover_after_the_fault(device, name):
    good, bad = samples(device, ticks=60), samples(device, f"{name}@0.04+0.01", ticks=60)
    assert (bad[T : T + 10] != good[T : T + 10]).any()
    assert (bad[T + 10 :] == good[T + 10 :]).all()


@every_device
def test_old_samples_at_the_start(device):
    """A stale sample precedes the run, and a delayed one is the oldest."""
    good, stale, late = (
        samples(device, ticks=8),
        samples(device, "stale@0", ticks=3),
        samples(device, "delay-5ms@0", ticks=8),
    )
    assert stale["time"] == pytest.approx(-twice_too_old(device) * PERIOD)
    assert_values(stale, good[[0, 0, 0]])
    assert (late == good[[0, 0, 0, 0, 0, 0, 1, 2]]).all()


@pytest.mark.parametrize("name", ["dropout", "duplicate", "late", "out-of-order"])
def test_first_sample_passes_faults_that_need_an_earlier_one(name):
    good, bad = samples("bench-impedance", ticks=1), samples("bench-impedance", f"{name}@0", ticks=1)
    assert (bad == good).all()


# --- failing and hanging ----------------------------------------------------------------------------------------


def outcome(call):
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
    [("read-error", errno.EIO, None), ("write-error", None, errno.EIO), ("unplug", errno.ENODEV, errno.ENODEV)],
)
def test_errors_are_raised_by_read_and_write(device, name, reading, writing):
    clock, inner, faulty = rig(device, f"{name}@0.002+0.002")
    command, told, write = inner.read().position.copy(), [], inner.write
    inner.write = lambda command: (told.append(tick), write(command))
    for tick in range(6):
        clock.wait(tick)
        now = tick in {2, 3}
        assert outcome(faulty.read) == (reading if now else None)
        assert outcome(lambda: faulty.write(command)) == (writing if now else None)
    assert told == ([0, 1, 4, 5] if writing else [0, 1, 2, 3, 4, 5]), "a failed command does not reach the device"


def test_unplugged_device_is_closed():
    _, inner, faulty = rig("bench-impedance", "unplug@0")
    faulty.close()
    assert inner.closed == 1


def test_hang_blocks_one_read(monkeypatch):
    slept = []
    monkeypatch.setattr("time.sleep", slept.append)
    good = samples("bench-impedance")
    assert (samples("bench-impedance", "hang@0.04") == good).all()
    assert slept == [10.0]
    assert (samples("bench-impedance", "hang@0.04+0.5") == good).all()
    assert slept == [10.0, 0.5]


# --- commands that are ignored ----------------------------------------------------------------------------------


@every_device
@pytest.mark.parametrize("start", [0, 2])
def test_ignored_commands_repeat_the_last_or_first_one(device, start):
    clock, inner, faulty = rig(device, f"ignored@{start * PERIOD}+0.003")
    told, write = [], inner.write
    inner.write = lambda command: (told.append(command.tolist()), write(command))
    commands = [[1e-3 * k, -1e-3 * k] for k in range(8)]
    array = np.zeros(2)  # the servo uses the array again
    for tick, array[:] in enumerate(commands):
        clock.wait(tick)
        faulty.write(array)
    first = max(start - 1, 0)
    assert told == [*commands[:start], *[commands[first]] * 3, *commands[start + 3 :]]
    assert (samples(device, "ignored@0") == samples(device)).all()


# --- saturation -------------------------------------------------------------------------------------------------


def test_saturation_limits_the_force_command_to_a_quarter():
    clock, inner, faulty = rig("bench-impedance", "saturation@0.001")
    commands = [(9.0, -9.0), (9.0, -1.0), (-9.0, 2.4), (0.0, 0.0)]
    for tick, command in enumerate(commands):
        clock.wait(tick)
        faulty.write(np.array(command))
    np.testing.assert_array_equal(inner.written, [(9.0, -9.0), (2.5, -1.0), (-2.5, 2.4), (0.0, 0.0)])
    assert (samples("bench-impedance", "saturation@0") == samples("bench-impedance")).all()


def test_saturation_limits_the_force_sensor_to_a_quarter():
    good, bad = samples("bench-admittance", ticks=400), samples("bench-admittance", "saturation@0", ticks=400)
    assert np.abs(good["force"]).max() > 8.0
    np.testing.assert_array_equal(bad["force"], np.clip(good["force"], -2.5, 2.5))
    for name in ("time", "position", "velocity"):
        np.testing.assert_array_equal(bad[name], good[name])
    _, inner, faulty = rig("bench-admittance", "saturation@0")
    faulty.write(np.array((9.0, -9.0)))
    np.testing.assert_array_equal(inner.written, [(9.0, -9.0)])
