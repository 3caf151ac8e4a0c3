"""Release of a blocked arm: the table of ``docs/studies/blocked_arm.md``.

A hand pushes with 20 N for one second while a clamp holds the last link of the virtual arm, in front of the force
sensor. The model responds to the hand and moves its reference, but the arm cannot follow. Then hand and clamp release
the arm at the same time, and only the servo moves it. All results are true values of the plant, not of its encoders.
The simulation is deterministic.

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
"""Coupling of model D [N/m], [N s/m]."""

PUSH = 20.0
"""Force of the hand along x [N]."""

BLOCKED, PUSHED, FREED, END = 0.2, 0.25, 1.25, 3.0
"""Times of clamping, full push, release and end [s]."""

NEAR = 1e-3
"""Distance from the final position within which the arm counts as resting [m]."""

MODELS: dict[str, Element] = {
    "A": RigidAdmittance(Coulomb(FRICTION), MASS),
    "D": CompliantAdmittance(Coulomb(FRICTION), MASS, STIFFNESS, DAMPING),
}

SERVOS: dict[str, dict[str, Any]] = {"PID": {"law": "pid"}, "sliding mode": {"law": "sliding-mode"}}
"""Servo laws by the name in the table."""


UNWATCHED = 1000.0
"""Following error limit that is never reached [m]."""

RULES: dict[str, dict[str, Any]] = {"off": {"max_following_error": UNWATCHED}, "on": {}}
"""Device settings with the envelope's limit of the following error disabled, or as in its data sheet."""


@dataclass(frozen=True)
class Freed:
    """Result of a blockage.

    Attributes
    ----------
    ahead : float
        Distance between reference and handle at the release [m].
    force : float
        Maximum force on the clamp [N].
    jump, speed : float
        Maximum displacement and speed of the handle after the release [m], [m/s].
    rest : float
        Time from the release until the arm is at rest [s].
    message : str
        Message of the fault that ended the run, empty if none.
    ended : float
        Time from the beginning of the push to the fault [s]; nan if none.
    """

    ahead: float
    force: float
    jump: float
    speed: float
    rest: float
    message: str
    ended: float


class _Watched:
    """Virtual arm that logs its true state and can be simulated further after the end of the run."""

    def __init__(self, device: VirtualArm) -> None:
        self._device = device
        self.spec, self.open = device.spec, device.open
        self.reference = np.zeros(2)
        self.seen: list[Array] = []

    def read(self) -> State:
        """Take a sample and log the true state."""
        state, device = self._device.read(), self._device
        self.seen.append(np.stack((device.handle, device.handle_velocity, device.clamp_force, self.reference)))
        return state

    def write(self, command: Vector) -> None:
        """Store the command and forward it."""
        self.reference = command.copy()
        self._device.write(command)

    def close(self) -> None:
        """Keep the last command, like an arm that holds its position."""


def blockage(model: str, servo: dict[str, Any], **settings: Any) -> Freed:
    """Block an arm under a `servo` (table of settings) and release it.

    `settings` are further settings of the device.
    """
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
    seen = np.array(arm.seen)
    first = round(FREED / clock.period)
    place, force = seen[:, 0], seen[: first + 1, 2]
    way = norms(place[first:] - place[first])
    away = np.flatnonzero(norms(place[first:] - place[-1]) > NEAR)
    return Freed(
        ahead=float(np.hypot(*(seen[first, 3] - place[first]))),
        force=float(norms(force).max()),
        jump=float(way.max()),
        speed=float(norms(seen[first:, 1]).max()),
        rest=clock.period * float(away[-1] + 1) if len(away) else 0.0,
        message=message,
        ended=ended,
    )


def line(model: str, name: str, rule: str, freed: Freed) -> str:
    """Format a row of the Markdown table."""
    ended = f"fault after {1e3 * freed.ended:.0f} ms" if freed.message else "goes on"
    blocked = f"{ended} | {1e3 * freed.ahead:.1f} mm | {freed.force:.0f} N"
    after = f"{1e3 * freed.jump:.1f} mm | {freed.speed:.2f} m/s | {1e3 * freed.rest:.0f} ms"
    return f"| {model} | {name} | {rule} | {blocked} | {after} |"


def main() -> None:
    """Run all cases and write the table."""
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
