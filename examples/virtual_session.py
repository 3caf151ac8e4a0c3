"""A whole haptic loop in a few lines: virtual joystick, model C and a hand, as fast as the machine can go.

With a `WallClock` in place of the `Clock` the same lines run at 1 kHz.
"""

import tempfile
from pathlib import Path

import numpy as np

from devices import create_device
from haptics import Clock, Coulomb, MasslessImpedance, Servo, Trace

element = MasslessImpedance(Coulomb(4.0), stiffness=6000.0, damping=10.0)
clock = Clock(element.period)
joystick = create_device("virtual-joystick", {"seed": 7, "hand": {"name": "minimum-jerk"}}, clock=clock)

with tempfile.TemporaryDirectory() as folder:
    trace = Trace.create(Path(folder) / "trace")
    Servo(joystick, element, trace, clock=clock).run(10.0)
    rows = trace.since(0)

slipping = rows["sticking"] == 0
force = np.hypot(*rows["friction_force"][slipping].T)
print(f"{len(rows)} ticks, sticking {100 * (1 - slipping.mean()):.0f} % of the time")
print(f"friction force while slipping: {force.mean():.6f} N, standard deviation {force.std():.1e} N")
