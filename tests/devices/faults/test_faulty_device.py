"""A device with faults: several at once, again and again, and nothing touched that is none of their business."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import devices
from devices.faults import FAULTS, Fault, FaultyDevice
from haptics.clock import Clock
from haptics.device import Device, State
from tests.contract import VirtualDeviceContract
from tests.devices.rigs import (
    DEVICES,
    PERIOD,
    SAMPLE,
    SPOILING,
    VECTORS,
    as_row,
    assert_values,
    drive,
    every_device,
    rig,
    samples,
)
from tests.haptics.doubles import BenchDevice
from tests.sampling import sample

# --- several at once --------------------------------------------------------------------------------------------


def test_samples_pass_through_the_faults_in_the_order_given() -> None:
    behind, before = (
        samples("virtual-joystick", *faults)
        for faults in (
            ("delay-5ms@0", "nan@0.04"),
            ("nan@0.04", "delay-5ms@0"),
        )
    )
    assert np.isnan(behind["position"][:, 0]).argmax() == 40
    assert np.isnan(before["position"][:, 0]).argmax() == 45


def test_delays_add_up() -> None:
    good, bad = samples("virtual-arm"), samples("virtual-arm", "delay-1ms@0.04", "delay-5ms@0.02")
    assert (bad[46:] == good[40:-6]).all()


def test_two_wrappers_are_one_with_both_faults() -> None:
    clock = Clock(PERIOD)
    inner = DEVICES["virtual-joystick"](clock)
    nested = FaultyDevice(FaultyDevice(inner, [Fault("stuck", 0.02)], clock), [Fault("delay-5ms", 0.04)], clock)
    with nested:
        np.testing.assert_array_equal(
            drive(clock, nested, range(80)), samples("virtual-joystick", "stuck@0.02", "delay-5ms@0.04")
        )


# --- the same again ---------------------------------------------------------------------------------------------


@every_device
def test_the_seed_decides_everything_random(device: str) -> None:
    runs = [samples(device, "late@0", seed=seed).tobytes() for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]


@pytest.mark.parametrize("name", SPOILING)
def test_a_device_that_is_opened_again_repeats_its_faults(name: str) -> None:
    clock, _, faulty = rig("virtual-joystick", f"{name}@0.04")
    runs = []
    for _ in range(2):
        faulty.open()
        runs.append(drive(clock, faulty, range(60)).tobytes())
        faulty.close()
        clock.start()
    assert runs[0] == runs[1]


def test_opening_an_open_device_does_not_repair_it() -> None:
    clock, _, faulty = rig("bench-impedance", "stuck@0.001")
    first = drive(clock, faulty, range(4))
    faulty.open()
    assert_values(drive(clock, faulty, [4]), first[1:2])


@given(skipped=st.lists(st.integers(1, 30), min_size=1, max_size=20), name=st.sampled_from(SPOILING))
def test_missed_ticks_make_no_sample_that_never_was(skipped: list[int], name: str) -> None:
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
def test_samples_belong_to_the_caller(device: str, name: str) -> None:
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
def test_the_data_sheet_and_all_else_that_is_public_are_the_device_s_own(device: str) -> None:
    _, inner, faulty = rig(device, "nan@0")
    assert faulty.spec == inner.spec
    assert isinstance(faulty, Device)
    if device.startswith("virtual"):
        assert faulty.hand is inner.hand
        np.testing.assert_array_equal(faulty.handle, inner.handle)
    with pytest.raises(AttributeError, match="colour"):
        faulty.colour  # noqa: B018


def test_fields_that_are_no_vectors_pass_too() -> None:
    def press(state: State, count: int) -> None:
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
def test_no_fault_touches_what_the_hand_really_does(device: str, name: str) -> None:
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

    def make(self, clock: Clock | None = None, **changes: Any) -> Any:
        faults = [Fault(name, 1e6) for name in FAULTS]
        inner = devices.create_device(self.name, changes, clock=clock)
        return FaultyDevice(inner, faults, clock or Clock(PERIOD))


class TestJoystickWithDormantFaults(Dormant, VirtualDeviceContract):
    name = "virtual-joystick"
    highest_rate = 8000.0


class TestArmWithDormantFaults(Dormant, VirtualDeviceContract):
    name = "virtual-arm"
