"""Print the tables of docs/choosing_parameters.md: computed and simulated limits of the virtual arm (20 s).

The arm is led round a circle of .1 m once in a second by a hand of 400 N/m and 8 N s/m, with model A and 6 N. It shakes
where the measured force has more than 4 N rms above 40 Hz.
"""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

import numpy as np

import devices
from haptics import Coulomb, RigidAdmittance
from haptics.clock import Clock
from haptics.design import PRESLIDING, SETTLED, Handle, PositionServo, mass_limit, stiffness_limit, suggest
from haptics.errors import ConfigurationError

TICK, TICKS = 1e-3, 2500
GRIP = {"stiffness": 400.0, "damping": 8.0}
LAWS = ("pid", "rigid", "flatness", "fractional", "linearising")
MASSES = (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0, 1.1)
LOUD = 4.0


def stiffnesses() -> None:
    """Print the stiffnesses that hold a bare handle still."""
    print("| m [kg] | b [N s/m] | d = 0 ms | 0.5 ms | 1 ms | 2 ms | 4 ms | 8 ms |\n|---|---|---|---|---|---|---|---|")
    for mass, damping in ((0.05, 0.0), (0.2, 0.0), (0.2, 1.0), (0.2, 6.0), (1.0, 0.0)):
        delays = (0.0, 0.5e-3, 1e-3, 2e-3, 4e-3, 8e-3)
        cells = [f"{stiffness_limit(Handle(mass, damping, delay), 10.0) / 1e3:.1f}" for delay in delays]
        print(f"| {mass:g} | {damping:g} | {' | '.join(cells)} |")


def masses() -> None:
    """Print the masses that a servo of second order needs."""
    print("| natural frequency [Hz] | k = 400 N/m, b = 8 N s/m | 1000, 20 | 1500, 20 |\n|---|---|---|---|")
    for frequency in (15.0, 20.0, 25.0, 30.0, 50.0):
        grips = ((400.0, 8.0), (1000.0, 20.0), (1500.0, 20.0))
        limits = [mass_limit(PositionServo(frequency, grip_stiffness=k, grip_damping=b)) for k, b in grips]
        print(f"| {frequency:g} | {' | '.join('none' if math.isinf(m) else f'{m:.3f}' for m in limits)} |")


def settings(law: str, hand: dict[str, object]) -> dict[str, dict[str, object]]:
    """Return the settings of the virtual arm."""
    arm: dict[str, object] = {"encoder": "both"} if law == "linearising" else {}
    return {"arm": arm, "servo": {"law": law}, "hand": hand}


def shaking(law: str, mass: float, hand: dict[str, object]) -> float:
    """Return the measured force above 40 Hz while the contact slides, rms [N]."""
    clock, element, forces = Clock(TICK), RigidAdmittance(Coulomb(6.0), mass), np.zeros((TICKS, 2))
    device = devices.open_device("virtual-arm", settings(law, hand), clock=clock)
    reference = device.read().position.copy()
    for tick in range(TICKS):
        clock.wait(tick)
        forces[tick] = device.read().force
        reference += TICK * element.step(forces[tick])
        device.write(reference)
    steady = forces[1500:] - forces[1500:].mean(axis=0)
    spectrum = np.fft.rfft(steady * np.hanning(len(steady))[:, None], axis=0)
    loud = spectrum[np.fft.rfftfreq(len(steady), TICK) > 40.0]
    return math.sqrt(2.0 * float((np.abs(loud) ** 2).sum()) / (0.375 * len(steady) ** 2))


def arms() -> None:
    """Print the least mass of the virtual arm, and with which it shakes."""
    print(
        "| servo law | limit [kg] | shakes up to [kg] | N rms there | N rms at the next mass |\n|---|---|---|---|---|"
    )
    with tempfile.TemporaryDirectory() as folder:
        time = np.arange(0.0, 3.0, 2e-3)
        turn = 2.0 * math.pi * np.where(time < 0.5, time**2, time - 0.25)
        rows = np.column_stack((time, 0.1 * np.cos(turn), 0.1 * np.sin(turn)))
        path = str(Path(folder, "circle.csv"))
        np.savetxt(path, rows, delimiter=",", header="time,x,y", comments="")
        for law in LAWS:
            hand: dict[str, object] = {"name": "recorded", "file": path, **GRIP}
            limit = devices.create_device("virtual-arm", settings(law, hand)).spec.least_mass
            calm = math.nan
            for mass in reversed(MASSES):
                force = shaking(law, mass, hand)
                if force > LOUD:
                    print(f"| `{law}` | {limit:.2f} | {mass:g} | {force:.1f} | {calm:.1f} |")
                    break
                calm = force


def suggestions(count: int = 100) -> None:
    """Print how many suggestions for random handles are soft or slow."""
    generator, found = np.random.default_rng(0), []
    for _ in range(count):
        mass, force = np.exp(generator.uniform(np.log((0.03, 0.3)), np.log((3.0, 20.0)))).tolist()
        handle = Handle(mass, generator.uniform(0.0, 5.0), generator.uniform(0.0, 3e-3), generator.uniform(0.0, 3e-4))
        try:
            found.append(suggest(handle, force))
        except ConfigurationError:
            continue
    soft = sum(one.presliding > PRESLIDING for one in found)
    slow = sum(one.settling > SETTLED for one in found)
    print(f"of {len(found)} random handles {soft} give way by more than 1 mm, {slow} settle in more than 0.5 s")


if __name__ == "__main__":
    for table in (stiffnesses, masses, arms, suggestions):
        table()
        print()
