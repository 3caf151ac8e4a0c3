"""A blocked arm and what it does when it is freed: the table of ``docs/arm.md``.

A hand pushes with 20 N for a second while something holds the last link of the virtual arm, in front of the force
sensor: the model hears the hand and moves its reference on, the arm cannot follow. Then both let go at the same time,
and nothing but the servo moves the arm. Figures are those of the plant, not of its encoders; nothing in it is random.

``python -m apps.reproduce.blockage`` writes the table to standard output.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from apps.reproduce.planar import Array, norms
from devices import create_device
from devices.virtual.arm import VirtualArm
from haptics import Clock, CompliantAdmittance, Coulomb, Element, RigidAdmittance
from haptics.device import State, Vector
from haptics.errors import DeviceFault
from haptics.servo.offline import run_offline

FRICTION, MASS = 6.0, 2.0
STIFFNESS, DAMPING = 20_000.0, 400.0
"""Of model D."""

PUSH = 20.0
"""Of the hand, along x [N]."""

BLOCKED, PUSHED, FREED, END = 0.2, 0.25, 1.25, 3.0
"""When something holds the arm, when the hand pushes with all its force, when both let go, and the end [s]."""

NEAR = 1e-3
"""An arm that stays this close to where it ends has come to rest [m]."""

MODELS: dict[str, Element] = {
    "A": RigidAdmittance(Coulomb(FRICTION), MASS),
    "D": CompliantAdmittance(Coulomb(FRICTION), MASS, STIFFNESS, DAMPING),
}

SERVOS: dict[str, dict[str, Any]] = {"PID": {"law": "pid"}, "sliding mode": {"law": "sliding-mode"}}
"""Servo laws, by the name in the table."""


UNWATCHED = 1000.0
"""A following error that is no limit [m]."""

RULES: dict[str, dict[str, Any]] = {"off": {"max_following_error": UNWATCHED}, "on": {}}
"""What the device is told for the envelope's limit of the following error to be off, or that of its data sheet."""


@dataclass(frozen=True)
class Freed:
    """What came of a blockage.

    Attributes
    ----------
    ahead : float
        How far the reference was from the handle when that was freed [m].
    force : float
        The largest force on what held the arm [N].
    jump, speed : float
        How far the handle then went, at most, and how fast [m], [m/s].
    rest : float
        How long until it had come to rest [s].
    message : str
        The fault with which the run ended, empty if there was none.
    ended : float
        How long after the hand had begun to push it ended so [s]; nan if it did not.
    """

    ahead: float
    force: float
    jump: float
    speed: float
    rest: float
    message: str
    ended: float


class _Watched:
    """A virtual arm that is watched from outside, and that goes on when the run on it is over."""

    def __init__(self, device: VirtualArm) -> None:
        self._device = device
        self.spec, self.open = device.spec, device.open
        self.reference = np.zeros(2)
        self.seen: list[Array] = []

    def read(self) -> State:
        """Take a sample, and look."""
        state, device = self._device.read(), self._device
        self.seen.append(np.stack((device.handle, device.handle_velocity, device.clamp_force, self.reference)))
        return state

    def write(self, command: Vector) -> None:
        """Pass a command on."""
        self.reference = command.copy()
        self._device.write(command)

    def close(self) -> None:
        """Stay with the last command, as an arm does that holds."""


def blockage(model: str, servo: dict[str, Any], **settings: Any) -> Freed:
    """Block an arm under a `servo` (a table of settings) and free it; `settings` are more of the device's."""
    script = [[0.0, 0.0, 0.0], [BLOCKED, 0.0, 0.0], [PUSHED, PUSH, 0.0], [FREED, PUSH, 0.0], [FREED + 1e-3, 0.0, 0.0]]
    table = {
        "seed": 1,
        "blocked_at": BLOCKED,
        "blocked_for": FREED - BLOCKED,
        "hand": {"name": "scripted-force", "script": script},
        "servo": servo,
        **settings,
    }
    clocks, arms = [], []

    def make(clock: Clock) -> _Watched:
        arms.append(_Watched(cast(VirtualArm, create_device("virtual-arm", table, clock=clock))))
        clocks.append(clock)
        return arms[0]

    message = ""
    try:
        run_offline(make, MODELS[model], END)
    except DeviceFault as fault:
        message = str(fault)
    clock, arm = clocks[0], arms[0]
    ended = clock.time - PUSHED if message else float("nan")
    while len(arm.seen) < round(END / clock.period):
        clock.wait(clock.tick + 1)
        arm.read()
    return _freed(np.array(arm.seen), round(FREED / clock.period), clock.period, message, ended)


def _freed(seen: Array, first: int, period: float, message: str, ended: float) -> Freed:
    """Return what came of it; `seen`, (n, 4, 2), has place, velocity, force of the clamp and reference tick by tick."""
    place, force = seen[:, 0], seen[: first + 1, 2]
    way = norms(place[first:] - place[first])
    away = np.flatnonzero(norms(place[first:] - place[-1]) > NEAR)
    return Freed(
        ahead=float(np.hypot(*(seen[first, 3] - place[first]))),
        force=float(norms(force).max()),
        jump=float(way.max()),
        speed=float(norms(seen[first:, 1]).max()),
        rest=period * float(away[-1] + 1) if len(away) else 0.0,
        message=message,
        ended=ended,
    )


def line(model: str, name: str, rule: str, freed: Freed) -> str:
    """Return a line of the table in Markdown."""
    ended = f"fault after {1e3 * freed.ended:.0f} ms" if freed.message else "goes on"
    blocked = f"{ended} | {1e3 * freed.ahead:.1f} mm | {freed.force:.0f} N"
    after = f"{1e3 * freed.jump:.1f} mm | {freed.speed:.2f} m/s | {1e3 * freed.rest:.0f} ms"
    return f"| {model} | {name} | {rule} | {blocked} | {after} |"


def main() -> None:
    """Run everything and write the table."""
    lines = [
        "| model | servo law | rule | the run | reference ahead when freed | force on what blocks | jump "
        "| greatest speed | at rest after |",
        "|---|---|---|---|---|---|---|---|---|",
        *(
            line(model, name, rule, blockage(model, servo, **settings))
            for name, servo in SERVOS.items()
            for rule, settings in RULES.items()
            for model in MODELS
        ),
    ]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
