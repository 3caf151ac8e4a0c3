"""Custom friction law, exact and compiled, in the model that a joystick renders.

In a session: haptics run --device virtual-joystick --model C --set law.file=examples/own_law.py --set law.static=5
"""

import numpy as np

from haptics import MasslessImpedance, friction_law, simulate


@friction_law
def rubber(speed, static=4.0, kinetic=3.0, width=0.2):
    """Level [N] that falls slowly with the sliding speed [m/s]."""
    return kinetic + (static - kinetic) / (1.0 + speed / width)


if __name__ == "__main__":
    surface = MasslessImpedance(rubber(static=5.0), stiffness=6000.0, damping=10.0)
    speeds = np.linspace(0.0, 0.5, 2000)
    run = simulate(surface, np.column_stack([speeds, np.zeros_like(speeds)]))
    print(f"breaks away at {run.friction_force[:, 0].max():.3f} N, slides at {run.friction_force[-1, 0]:.3f} N")
    print(f"condition (15): a mobility of {surface.mobility:.3g} m/(N s), below {surface.law.mobility_limit:.3g}")
