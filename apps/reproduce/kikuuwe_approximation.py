"""Kikuuwe et al. 2006, (46) and (57): errors of the closed-form approximation.

(46) uses the law itself instead of its implicit counterpart whenever the contact does not stick. This is accurate for
the mobility of a stiff element. With the mobility of the paper's joystick, Z = 1/(B + T K) = 1/16, it loses most of the
break-away peak of a Stribeck law, and with a large viscosity it never slips.
"""

from __future__ import annotations

import warnings

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from apps.reproduce.outcome import Outcome, Row, derived
from apps.reproduce.planar import Array, along_x
from apps.reproduce.style import BLUE, INK, ORANGE, PALE, dress
from haptics import AmbiguousLawWarning, Law, Stribeck
from haptics.friction.laws import ClosedForm

LAW = Stribeck(kinetic_force=4.0, static_force=5.0, stribeck_velocity=0.1)
VISCOUS = Stribeck(kinetic_force=4.0, static_force=5.0, stribeck_velocity=0.1, viscosity=20.0)

MOBILITIES = {"1/2000": 1 / 2000, "1/330": 1 / 330, "1/16": 1 / 16}
"""Mobilities of model A with M = 2 kg, of Fig. 11 (K = 3e4 N/m, B = 300 N s/m), and of model C (K = 6000 N/m, B = 10 N
s/m), for T = 1 ms.
"""

_EXPECTED = {"1/2000": (0.5, 0.05, 4.975, 5e-4), "1/330": (2.8, 0.05, 4.86, 5e-3), "1/16": (19.0, 0.5, 4.08, 5e-3)}
"""Per mobility: largest error [%] and its tolerance, break-away force [N] and its tolerance."""


def forces(law: Law, reach: Array, mobility: float) -> Array:
    """Return the friction force (n,) [N] for arguments of norm `reach` (n,) [m/s]."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AmbiguousLawWarning)  # the test leaves the region of condition (48) on purpose
        return law.implicit(along_x(reach), mobility)[:, 0]


def reproduce() -> Outcome:
    """Compare exact and approximate forces over the argument of Phi_Z."""
    rows: list[Row] = []
    for name, mobility in MOBILITIES.items():
        breakaway = mobility * LAW.breakaway_force
        near = breakaway * (1.0 + np.linspace(-0.5, 1.0, 3001))
        just_beyond = breakaway * (1.0 + np.geomspace(1e-12, 1e-4, 20))
        reach = np.sort(np.concatenate((near, just_beyond, np.geomspace(2.0 * breakaway, 3.0, 300))))
        exact, approximate = forces(LAW, reach, mobility), forces(ClosedForm(LAW), reach, mobility)
        error, error_tolerance, peak, peak_tolerance = _EXPECTED[name]
        worst = 100.0 * float(np.max(np.abs(approximate - exact) / exact))
        where = f"Stribeck 4 to 5 N, Z = {name}"
        rows += [
            derived(f"{where}: break-away force of (46)", peak, approximate.max(), peak_tolerance, "N"),
            derived(f"{where}: largest error of (46)", error, worst, error_tolerance, "%"),
            derived(f"{where}: break-away force, exact", 5.0, exact.max(), 1e-3, "N"),
        ]
    reach = np.linspace(1e-3, 10.0, 2001)
    mobility = MOBILITIES["1/16"]
    slip = {law: reach - mobility * forces(law, reach, mobility) for law in (VISCOUS, ClosedForm(VISCOUS))}
    exact_slip, approximate_slip = (float(values.max()) for values in slip.values())
    where = "D = 20 N s/m, Z = 1/16, arguments up to 10 m/s: fastest slip"
    rows.append(derived(f"{where} of (46), which sticks for ever", 0.0, approximate_slip, 1e-12, "m/s"))
    # Far from rest the Stribeck part vanishes: s + Z (4 N + D s) = 10 m/s.
    fastest = (10.0 - mobility * VISCOUS.kinetic_force) / (1.0 + mobility * VISCOUS.viscosity)
    rows.append(derived(f"{where}, exact", fastest, exact_slip, 1e-9, "m/s"))
    return Outcome(rows, _draw)


def _draw(figure: Figure) -> None:
    figure.set_size_inches(14.0, 6.0)
    left, middle, right = figure.subplots(1, 3)
    _panel(left, LAW, "1/2000", (0.12, 3.0, 5.5), "Stribeck from 5 to 4 N")
    _panel(middle, LAW, "1/16", (1.0, 3.0, 5.5), "Stribeck from 5 to 4 N")
    _panel(right, VISCOUS, "1/16", (1.0, 0.0, 16.5), "the same with D = 20 N s/m")
    figure.suptitle(
        "(46) against the exact solution: the friction force of an element over its free velocity x", color=INK
    )


def _panel(axes: Axes, law: Law, name: str, extent: tuple[float, float, float], title: str) -> None:
    """Plot both forces up to the free velocity `extent[0]`, in the force range `extent[1:3]`."""
    mobility, (fastest, bottom, top) = MOBILITIES[name], extent
    reach = np.linspace(0.0, fastest, 2001)[1:]
    axes.plot(reach, reach / mobility, color=PALE, linewidth=0.9, linestyle=":", label="x/Z: sticking")
    axes.plot(reach, forces(law, reach, mobility), color=BLUE, linewidth=1.8, label="exact")
    axes.plot(
        reach, forces(ClosedForm(law), reach, mobility), color=ORANGE, linewidth=1.6, linestyle="--", label="(46)"
    )
    axes.set_ylim(bottom, top)
    dress(axes, "free velocity x [m/s]", "friction force f [N]", f"{title}, Z = {name} m/(N s)", legend="lower right")
