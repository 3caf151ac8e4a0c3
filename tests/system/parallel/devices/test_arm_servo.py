"""Servo laws of the arm: masses at which the arm shakes, and rest."""

import math

import numpy as np
import pytest

import devices
from devices.arm.device import ArmSettings
from devices.arm.mechanics.drive import Drive
from devices.arm.servo.linear import RATE
from devices.arm.servo.settings import ServoSettings
from devices.emulators import arm as arm_emulator
from haptics.clock import Clock
from haptics.design import FIRM_GRIP, Severity, advise
from haptics.elements.models import RigidAdmittance
from haptics.friction.laws import Coulomb
from tests.devices.arm.test_hybrid import CLASSIC, FRACTIONAL, LINKS, RIGID, START, press
from tests.devices.arm.test_servo_linear import TICK, Driven, run_finely

# Rms force above 40 Hz of an unstable and of a calm loop [N]; encoders, friction and noise cause less than `CALM`.
LOUD, CALM = 4.0, 2.0


def circling_hand(folder, stiffness, damping):
    """Return a hand that leads the handle round a circle of .1 m once in a second: the contact slides all the time."""
    time = np.arange(0.0, 3.0, 2e-3)
    turn = 2.0 * math.pi * np.where(time < 0.5, time**2, time - 0.25)
    rows = np.column_stack((time, 0.1 * np.cos(turn), 0.1 * np.sin(turn)))
    np.savetxt(folder / "circle.csv", rows, delimiter=",", header="time,x,y", comments="")
    return {"name": "recorded", "file": str(folder / "circle.csv"), "stiffness": stiffness, "damping": damping}


def loudness(forces):
    """Return the part of the forces, one a tick, above 40 Hz after 1.5 s, rms [N]."""
    steady = forces[1500:] - forces[1500:].mean(axis=0)
    spectrum = np.fft.rfft(steady * np.hanning(len(steady))[:, None], axis=0)
    loud = spectrum[np.fft.rfftfreq(len(steady), TICK) > 40.0]
    return math.sqrt(2.0 * float((np.abs(loud) ** 2).sum()) / (0.375 * len(steady) ** 2))


def shaking(law, mass, hand):
    """Render model A with 6 N on the default arm; return the force above 40 Hz while it slides, rms [N], and it."""
    clock, element = Clock(TICK), RigidAdmittance(Coulomb(6.0), mass)
    arm = {"encoder": "both" if law == "linearising" else "motor"}
    device = devices.open_device("virtual-arm", {"hand": hand, "arm": arm, "servo": {"law": law}}, clock=clock)
    reference, forces = device.read().position.copy(), np.zeros((2500, 2))
    for tick in range(len(forces)):
        clock.wait(tick)
        forces[tick] = device.read().force
        reference += TICK * element.step(forces[tick])
        device.write(reference)
    return loudness(forces), device.spec


def warned(mass, spec):
    found = advise(RigidAdmittance(Coulomb(6.0), mass), spec)
    return any(advice.bound == "mass" and advice.severity is Severity.WARNING for advice in found)


@pytest.mark.parametrize(
    ("law", "masses"),
    [
        ("pid", (0.3, 0.5, 0.8, 1.0)),
        ("flatness", (0.2, 0.3, 0.5, 0.7, 1.0)),
        ("rigid", (0.3, 0.5, 0.7, 1.1, 2.0)),
        ("fractional", (0.3, 0.4, 0.55, 0.7, 1.0)),
        ("linearising", (0.2, 0.3, 0.5, 0.7, 1.0)),
    ],
)
def test_advice_warns_of_a_mass_exactly_where_the_simulated_arm_shakes(law, masses, tmp_path):
    hand, seen = circling_hand(tmp_path, 400.0, 8.0), set()
    for mass in masses:
        force, spec = shaking(law, mass, hand)
        assert not CALM < force < LOUD, "the masses of this test are clear cases"
        assert warned(mass, spec) is (force > LOUD), (mass, force, spec.least_mass)
        seen.add(force > LOUD)
    assert seen == {True, False}


# No hand holds a handle against that [N]: the loop has long been ended.
GONE = 200.0


def shaking_driven(law, mass, late, hand):
    """Render model A with 6 N on the default arm; return the force above 40 Hz while it slides, rms [N]."""
    rig = Driven(ArmSettings().body, ServoSettings(law=law), hand, late)
    element = RigidAdmittance(Coulomb(6.0), mass)
    reference, forces = rig.handle.copy(), np.zeros((2500, 2))
    for tick in range(len(forces)):
        forces[tick] = rig.force
        if not np.hypot(*forces[tick]) < GONE:
            return math.inf
        reference += TICK * element.step(forces[tick])
        rig.tick(reference)
    return loudness(forces)


@pytest.mark.parametrize(("law", "calm"), [("pid", 1.15), ("rigid", 1.15), ("flatness", 1.3)])
@pytest.mark.parametrize("late", [7, 16])
def test_advice_warns_of_a_mass_exactly_where_the_emulated_arm_shakes(tmp_path, monkeypatch, law, calm, late):
    monkeypatch.setattr(arm_emulator, "_run", run_finely)
    spec = devices.create_device("arm", {"emulated": True, "delay": late / RATE, "servo": {"law": law}}).spec
    hand, limit = circling_hand(tmp_path, *FIRM_GRIP), spec.least_mass
    assert limit is not None
    assert shaking_driven(law, 0.85 * limit, late, hand) > LOUD
    assert shaking_driven(law, calm * limit, late, hand) < CALM
    assert [warned(part * limit, spec) for part in (0.85, calm)] == [True, False]


@pytest.mark.parametrize("control", [FRACTIONAL, CLASSIC])
@pytest.mark.parametrize(
    "drive", [RIGID, Drive(coupling="impact", backlash=1e-3), Drive(coupling="elastic", stiffness=1e6)]
)
def test_arm_rests_without_a_commanded_force(control, drive):
    rows = press(control, force=0.0, drives=(drive, drive)).rows
    assert np.abs(rows["depth"]).max() < 1e-9 and np.abs(rows["along"]).max() < 1e-9
    assert rows["torque"] == pytest.approx(np.tile(LINKS.terms(START)["gravity"][0], (len(rows), 1)), abs=1e-3)
