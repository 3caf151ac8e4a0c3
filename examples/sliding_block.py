"""Block that is pushed, slides and stops exactly, for any step size (Kikuuwe et al. 2006, Fig. 6).

Run with ``./run python examples/sliding_block.py`` or with the Python of your environment.
"""

import numpy as np

from haptics import Coulomb, RigidAdmittance, simulate

for period in (0.001, 0.004):
    block = RigidAdmittance(Coulomb(8.0), mass=1.0, period=period)
    block.reset(velocity=(0.7, 0.0))
    pull = np.tile((-1.0, 0.0), (round(0.2 / period), 1))  # against the motion, too weak to turn it round
    run = simulate(block, pull)
    stop = int(np.argmax(run.sticking))
    print(
        f"T = {period * 1e3:.0f} ms: stops at tick {stop + 1} (t = {(stop + 1) * period:.3f} s) and stays: "
        f"largest speed afterwards {np.abs(run.velocity[stop:]).max()} m/s"
    )
