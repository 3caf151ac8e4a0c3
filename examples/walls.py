"""Walls with friction: force, stored energy and largest stiffness, for a joystick and an arm.

A hand, prescribed, moves the handle of an ideal joystick along a wall, and into it; a virtual joystick of 0.2 kg is
pressed to walls of every stiffness. Usage: ``python examples/walls.py [PICTURE.png]``
"""

import itertools
import sys
from dataclasses import replace

import numpy as np

from apps.conformance.suite import LOWEST_BUZZ, METRICS
from devices import create_device
from haptics import Coulomb, MasslessImpedance, RigidAdmittance
from haptics.design import Coupling, Handle, wall_limit
from haptics.device import State
from haptics.records import NEUTRAL, Status
from haptics.rendering.programs import SceneElement
from haptics.rendering.rendering import Rendering
from haptics.scenes import HalfPlane, Polygon, Scene, Wall

PERIOD, STIFFNESS, DAMPING, MU = 1e-3, 2000.0, 10.0, 0.4
FLOOR = HalfPlane((0.0, 0.0), (0.0, 1.0))
BLOCK = Polygon(((-0.02, -0.02), (0.02, -0.02), (0.02, 0.0), (-0.02, 0.0)))
ELEMENT = MasslessImpedance(Coulomb(0.0), 6000.0, 10.0, PERIOD)
SHARES = np.geomspace(0.05, 1.6, 16)
BLUE, VERMILION, GREEN, INK = "#0072B2", "#D55E00", "#009E73", "#222222"


def ideal(name, **facts):
    """Return the data sheet of a device that is stronger than any wall here."""
    spec = create_device(name, {}).spec
    return replace(spec, fade_in=0.0, **facts)


def among(element, wall):
    """Return an element on a scene with a wall and the law of the element."""
    return SceneElement(element, Scene(element.law, walls=(wall,)))


def path(*corners, speed=0.1):
    """Return a way through `corners` [m], one place for each tick."""
    parts = [np.array(corners[:1])]
    for a, b in itertools.pairwise(corners):
        ticks = round(np.hypot(b[0] - a[0], b[1] - a[1]) / (speed * PERIOD))
        parts.append(np.linspace(a, b, ticks + 1)[1:])
    return np.concatenate(parts)


def moved(places, wall):
    """Move a handle along `places`, (n, 2) [m]; return the rows and the energy stored by the wall [J]."""
    spec = ideal("virtual-joystick", max_force=200.0, max_force_rate=1e6)
    rendering = Rendering(among(ELEMENT, wall), spec)
    rows, stored = np.repeat(NEUTRAL, len(places)), np.zeros(len(places))
    velocity = np.diff(places, axis=0, prepend=places[:1]) / PERIOD
    for k, (x, v) in enumerate(zip(places, velocity, strict=True)):
        rendering.tick(State(position=x, velocity=v), 0.0, rows, k, (k, k * PERIOD, 0.0, 0))
        stored[k] = rendering.core["wall_stored"][0]
    return rows, stored


def pushed(forces, wall, mass=2.0):
    """Push an ideal arm with `forces`, (n, 2) [N], from the origin on; return the rows."""
    spec = ideal("virtual-arm", workspace_min=(-1.0, -1.0), workspace_max=(1.0, 1.0))
    rendering, place = Rendering(among(RigidAdmittance(Coulomb(0.0), mass, PERIOD), wall), spec), np.zeros(2)
    rows = np.repeat(NEUTRAL, len(forces))
    for k, force in enumerate(forces):
        state = State(position=place, velocity=np.zeros(2), force=force)
        place = rendering.tick(state, 0.0, rows, k, (k, k * PERIOD, 0.0, 0)).copy()
    return rows


def leaned(stiffness, element=ELEMENT):
    """Lean on a wall with the bare handle of the virtual joystick, knock it; return the buzz a second later [N rms]."""
    script = [[0.0, 0.0, 0.0], [0.5, 5.0, 0.0], [1.0, 5.0, 0.0], [1.005, 6.0, 0.0], [1.01, 5.0, 0.0]]
    plant = create_device("virtual-joystick", {"hand": {"name": "scripted-force", "script": script}})
    wall = Wall(HalfPlane((0.0, 0.0), (-1.0, 0.0)), stiffness, DAMPING, MU)
    rendering = Rendering(among(element, wall), replace(plant.spec, fade_in=0.0))
    row, felt = NEUTRAL.copy(), np.zeros((3000, 2))
    with plant:
        for k in range(len(felt)):
            plant.write(rendering.tick(plant.read(), 0.0, row, 0, (k, k * PERIOD, 0.0, 0)))
            felt[k] = row["command"][0]
    late = felt[2000:] - felt[2000:].mean(axis=0)
    spectrum = np.fft.rfft(late, axis=0)
    spectrum[np.fft.rfftfreq(len(late), PERIOD) <= LOWEST_BUZZ] = 0.0
    return float(np.sqrt((np.fft.irfft(spectrum, len(late), axis=0) ** 2).sum(axis=1).mean()))


def tell_slide():
    """Print friction over normal force while it slides, on both kinds of device."""
    rows, _ = moved(path((0.0, 0.0), (0.0, -0.005), (0.05, -0.005)), Wall(FLOOR, STIFFNESS, DAMPING, MU))
    slide = rows[-300:]
    ratio = -slide["command_unlimited"][:, 0] / slide["normal_force"]
    print(f"joystick, sliding: friction over normal force {ratio.min():.6f} to {ratio.max():.6f}")
    forces = np.tile((0.0, -10.0), (1500, 1))
    forces[1000:, 0] = 6.0
    rows = pushed(forces, Wall(FLOOR, STIFFNESS, 40.0, MU))
    ratio = (6.0 - 2.0 * np.diff(rows["sliding_velocity"][-300:, 0]) / PERIOD) / rows["normal_force"][-299:]
    print(f"arm, sliding:      friction over normal force {ratio.min():.6f} to {ratio.max():.6f}")


def tell_stick():
    """Print how far a contact creeps in 60 s inside the cone, at 0.9 of the friction limit."""
    t = np.arange(60_000) * PERIOD
    tremble = 0.9 * MU * np.sin(2.0 * np.pi * 8.0 * t)
    swing = np.stack((tremble * 0.005, np.full(len(t), -0.005)), axis=1)
    rows, _ = moved(np.concatenate((path((0.0, 0.0), (0.0, -0.005)), swing)), Wall(FLOOR, STIFFNESS, 0.0, MU))
    held = rows[-len(t) :]
    contact = held["position"][:, 0] + held["command_unlimited"][:, 0] / STIFFNESS
    print(f"joystick, 60 s at up to 0.9 mu N: the contact moves by {1e6 * np.ptp(contact):.9f} um")
    forces = np.concatenate((np.tile((0.0, -10.0), (2000, 1)), np.stack((10.0 * tremble, 0.0 * t - 10.0), axis=1)))
    rows = pushed(forces, Wall(FLOOR, STIFFNESS, 40.0, MU))
    print(f"arm, 60 s at up to 0.9 mu N:      the reference moves by {1e6 * np.ptp(rows['command'][2000:, 0]):.9f} um")


def tell_push():
    """Print the energy balance of a push of 15 mm into a wall of 2 kN/m."""
    rows, stored = moved(path((0.0, 0.002), (0.0, -0.015), (0.0, 0.002)), Wall(FLOOR, STIFFNESS, DAMPING, MU))
    limit = create_device("virtual-joystick", {}).spec.max_energy
    ticks = np.count_nonzero(rows["status"] & Status.ENERGY)
    print(
        f"15 mm into {STIFFNESS / 1e3:g} kN/m: {rows['normal_force'].max():.2f} N, {1e3 * stored.max():.1f} mJ stored "
        f"(limit of the loop {1e3 * limit:g} mJ), injected {1e3 * rows['injected_energy'].max():.4f} mJ, "
        f"{ticks} ticks ENERGY"
    )
    return rows


def tell_limit():
    """Print the stiffest wall of the virtual joystick, and the buzz around it; return shares of it and buzz [N]."""
    spec = create_device("virtual-joystick", {}).spec
    limit = wall_limit(Handle.of(spec), DAMPING, PERIOD)
    beside = wall_limit(Handle.of(spec), DAMPING, PERIOD, Coupling(6000.0, 10.0, PERIOD))
    print(f"stiffest wall of {spec.name} with B = {DAMPING:g} N s/m: {limit / 1e3:.1f} kN/m", end=", ")
    print(f"beside a sticking element of 6 kN/m: {beside / 1e3:.1f} kN/m")
    most = next(metric.limit for metric in METRICS if metric.key == "buzz_n_rms")
    buzz = [leaned(share * limit) for share in SHARES]
    for stiffness in (1000.0, STIFFNESS, 4000.0, 0.9 * limit, 1.25 * limit):
        print(f"  a wall of {stiffness / 1e3:4.1f} kN/m buzzes by {leaned(stiffness):.4f} N rms", end=" ")
        print(f"({stiffness / limit:.2f} of the limit; conformance asks for {most:g})")
    return limit, buzz, most


def draw(name, rows, limits):
    """Draw force over depth, the force on a way round a corner, and buzz over stiffness."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3.8), dpi=110, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    left, middle, right = figure.subplots(1, 3)
    left.plot(-1e3 * rows["position"][:, 1], rows["normal_force"], color=BLUE)
    left.set(xlabel="depth [mm]", ylabel="normal force [N]", title="15 mm into 2 kN/m and out")
    left.set_xlim(-1.0, 16.0)
    way = path((0.0, 0.005), (0.015, -0.005), (0.012, -0.015), (0.03, -0.012), speed=0.05)
    corner, _ = moved(way, Wall(BLOCK, STIFFNESS, DAMPING, MU))
    outline = np.array([*BLOCK.points, BLOCK.points[0]])
    middle.fill(*(1e3 * outline.T), color="#E6E6E6")
    middle.plot(*(1e3 * way.T), color=INK, linewidth=0.9)
    every = corner[::18]
    force = every["command_unlimited"]
    middle.quiver(*(1e3 * every["position"].T), *force.T, color=VERMILION, angles="xy", scale=120.0, width=0.006)
    middle.set(xlabel="x [mm]", ylabel="y [mm]", title="through a corner", aspect="equal")
    limit, buzz, most = limits
    right.loglog(SHARES * limit / 1e3, np.maximum(buzz, 1e-4), "o-", color=BLUE, markersize=4)
    right.axvline(limit / 1e3, color=INK, linestyle="--", linewidth=1.0)
    right.axhline(most, color=GREEN, linewidth=1.0)
    right.set(xlabel="stiffness of the wall [N/mm]", ylabel="buzz [N rms]", title="bare handle pressed with 5 N")
    for axes in (left, middle, right):
        axes.grid(True, color="#E6E6E6", linewidth=0.6)
        axes.set_axisbelow(True)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        axes.title.set_fontsize(10)
    figure.savefig(name)


if __name__ == "__main__":
    tell_slide()
    tell_stick()
    rows = tell_push()
    limits = tell_limit()
    if len(sys.argv) > 1:
        draw(sys.argv[1], rows, limits)
