"""Coverage of the intervals for simulated handles of known friction, moved by their motors.

``python -m calibration.motions.trials`` prints the table. The noise is the quantization of the encoder; it differs
between trials, as the motions do.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from calibration.friction import FitSettings, FrictionFit, fit_friction, joined
from calibration.identification import AUTOMATIC, IdentificationOptions, samples_of
from calibration.motions import Mover
from calibration.motions.excitation import Excitation
from calibration.motions.handle_motion import HandleExcitation

TRIALS = 30
TRUTH = {"inertia": 0.2, "viscosity": 1.0}
"""True parameters of the virtual joystick."""

_USUAL = Excitation()
_NOBODY = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]]}
_OPTIONS = IdentificationOptions(smooth=AUTOMATIC, settings=FitSettings(fit_inertia=True))


@dataclass(frozen=True)
class Handle:
    """Handle, and the model fitted to it.

    Attributes
    ----------
    name : str
        Description.
    coulomb : float
        Dry friction [N].
    model : str
        Fitted model.
    """

    name: str
    coulomb: float
    model: str

    @property
    def truth(self) -> dict[str, float]:
        """True parameters."""
        return TRUTH | ({"coulomb": self.coulomb} if self.coulomb else {})


HANDLES = (Handle("no dry friction", 0.0, "viscous"), Handle("0.3 N of dry friction", 0.3, "coulomb-viscous"))


def varied(excitation: Excitation, seed: int) -> Excitation:
    """Return an excitation with settings varied by up to a fifth."""
    slowest, fastest, time, acceleration = np.random.default_rng(seed).uniform(0.8, 1.2, 4).tolist()
    return replace(
        excitation,
        slowest=excitation.slowest * slowest,
        fastest=excitation.fastest * fastest,
        stroke_time=excitation.stroke_time * time,
        acceleration=excitation.acceleration * acceleration,
    )


def fits_of(handle: Handle, seed: int, excitation: Excitation = _USUAL) -> list[FrictionFit]:
    """Move a handle and return the fits of its axes."""
    level = {"coulomb_forward": handle.coulomb, "coulomb_backward": handle.coulomb}
    friction = {"friction": {"x": level, "y": level}} if handle.coulomb else {}
    mover = Mover.of("virtual-joystick", {"hand": _NOBODY, **friction})
    with tempfile.TemporaryDirectory() as place:
        measured = HandleExcitation(varied(excitation, seed)).run(mover, Path(place) / "run")
    settings = _OPTIONS.settings or FitSettings()
    return [
        fit_friction(joined([samples_of(one, _OPTIONS) for one in rounds]), handle.model, settings)
        for rounds in measured.values()
    ]


def held(handle: Handle, fits: Iterable[FrictionFit]) -> dict[str, float]:
    """Return the coverage of the interval of each parameter."""
    every = list(fits)
    return {
        name: float(np.mean([fit.intervals[name][0] <= truth <= fit.intervals[name][1] for fit in every]))
        for name, truth in handle.truth.items()
    }


def table(handles: Iterable[Handle] = HANDLES, trials: int = TRIALS) -> str:
    """Return the table of all handles as Markdown."""
    lines = ["| handle | parameter | interval holds it | mean error | half the interval |", "|---|---|---|---|---|"]
    for handle in handles:
        fits = [fit for seed in range(trials) for fit in fits_of(handle, seed)]
        often = held(handle, fits)
        for name, truth in handle.truth.items():
            error = float(np.mean([fit.values[name] / truth - 1.0 for fit in fits]))
            half = float(np.mean([np.ptp(fit.intervals[name]) / (2.0 * truth) for fit in fits]))
            lines.append(f"| {handle.name} | {name} | {often[name]:.2f} | {error:+.3%} | {half:.3%} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(table() + "\n")
