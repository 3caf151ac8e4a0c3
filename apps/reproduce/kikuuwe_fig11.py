"""Kikuuwe et al. 2006, Fig. 11: stick-slip of two stacked blocks with model-C contacts.

The paper prints no numbers of these curves. The expected result is therefore the motion over rigid contacts, which the
compliant ones approximate. `apps.reproduce.stacked_blocks` computes both, for both readings of the caption. The bound
on the difference in position is a guard, because it follows from no equation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from apps.reproduce.outcome import Bound, Outcome, Row
from apps.reproduce.planar import Array
from apps.reproduce.stacked_blocks import (
    FRICTION,
    WIRINGS,
    Motion,
    Wiring,
    compliant,
    drive,
    law_residual,
    network,
    rigid,
)
from apps.reproduce.style import BLUE, INK, ORANGE, PALE, dress

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "stick-slip in two contacts with model-C elements (Kikuuwe et al. 2006, Fig. 11)"

DURATION = 6.0
_MILLI = 1e3
_BLOCKS = ("M1", "M2")
_LARGEST_RMS = (0.8, 0.4)
"""Guard of the rms difference in position [mm]: a few times the elastic displacement 5 N/(3e4 N/m) = 0.17 mm."""

_STIFF = (1e-4, 3e6, 3e3)
"""Period [s], stiffness [N/m] and damping [N s/m] of contacts that are nearly rigid."""

_LARGEST_RMS_STIFF = 0.1

Runs = dict[Wiring, tuple[Motion, Motion]]


def reproduce() -> Outcome:
    """Run both readings of the caption, with model-C contacts and with rigid ones."""
    runs: Runs = {wiring: (compliant(network(wiring), DURATION), rigid(wiring, DURATION)) for wiring in WIRINGS}
    rows = [row for wiring, (ours, reference) in runs.items() for row in _rows(wiring, ours, reference)]
    return Outcome(rows, lambda figure: _draw(figure, runs))


def _rows(wiring: Wiring, ours: Motion, reference: Motion) -> list[Row]:
    blocks = network(wiring)
    rms = rms_difference(ours, reference)
    stiff = rms_difference(compliant(network(wiring, *_STIFF), DURATION), reference)
    rows = [
        _row(
            f"{wiring}: distance of the rigid reference from the set-valued law",
            0.0,
            law_residual(reference),
            1e-9,
            "N",
        ),
        _row(f"{wiring}: share of the limit of stability in use", Bound(0.0, 1.0), blocks.stability_number),
    ]
    for i, block in enumerate(_BLOCKS):
        extent, wanted = (_MILLI * float(np.ptp(run.position[:, i])) for run in (ours, reference))
        stuck, wanted_stuck = (100.0 * float(run.sticking[:, i].mean()) for run in (ours, reference))
        largest = float(np.abs(ours.friction_force[:, i]).max())
        where = f"{wiring}: {block}"
        rows += [
            _guard(f"{where}, rms difference to rigid", _LARGEST_RMS[i], rms[i]),
            _guard(f"{where}, the same, 100 times as stiff", _LARGEST_RMS_STIFF, stiff[i]),
            _row(f"{where}, range of positions as rigid", wanted, extent, 1.0, "mm"),
            _row(f"{where}, time it sticks as rigid", wanted_stuck, stuck, 1.0, "%"),
            Row(f"{where}, largest friction below it", FRICTION[i], largest, 0.0, "N"),
        ]
        if wiring == "base":  # in the other reading, rigid contacts also stick briefly
            rows.append(_row(f"{where}, times it begins to stick as rigid", _onsets(reference, i), _onsets(ours, i)))
    return rows


def _row(what: str, expected: float | Bound, ours: float, tolerance: float = 0.0, unit: str = "") -> Row:
    return Row(what, expected, float(ours), tolerance, unit, "derived")


def _guard(what: str, largest: float, ours: float) -> Row:
    return Row(what, Bound(0.0, largest), float(ours), 0.0, "mm", "guard")


def rms_difference(ours: Motion, reference: Motion) -> Array:
    """Return the root mean square difference in position of each block, (2,) [mm]."""
    difference = ours.position - _sampled(reference, ours).position
    return np.asarray(_MILLI * np.sqrt(np.mean(difference**2, axis=0)))


def _sampled(run: Motion, like: Motion) -> Motion:
    """Return the samples of `run` at the times of `like`."""
    every = round(len(run.time) / len(like.time))
    return Motion(*(getattr(run, name)[every - 1 :: every] for name in Motion.__dataclass_fields__))


def _onsets(run: Motion, block: int) -> int:
    return int(np.count_nonzero(np.diff(run.sticking[:, block].astype(np.int8)) == 1))


def _draw(figure: Figure, runs: Runs) -> None:
    figure.set_size_inches(13, 8.5)
    axes = figure.subplots(3, 2, sharex=True, sharey="row")
    words = {"base": "the base moves at u", "ground": "u drives the spring of M1"}
    for column, (wiring, (ours, reference)) in enumerate(runs.items()):
        axes[0, column].set_title(f'"{wiring}": {words[wiring]}', fontsize=12, color=INK)
        _draw_column(list(axes[:, column]), ours, _sampled(reference, ours))
    axes[0, 0].set_xlim(0.0, DURATION)
    handles, labels = axes[1, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=10, frameon=False)
    figure.suptitle(
        "Fig. 11: M2 rubs on M1 (up to 2.5 N), M1 on the base (up to 5 N), springs hold both", fontsize=13, color=INK
    )


def _draw_column(axes: list[Axes], ours: Motion, reference: Motion) -> None:
    panels = (("position", _MILLI, "position [mm]"), ("velocity", 1.0, "velocity [m/s]"), ("friction_force", 1.0, ""))
    axes[1].plot(ours.time, drive(ours.time), color=INK, linewidth=0.8, linestyle=":", label="u")
    for panel, (name, scale, label) in zip(axes, panels, strict=True):
        for i, (block, colour) in enumerate(zip(_BLOCKS, (BLUE, ORANGE), strict=True)):
            exact, model = scale * getattr(reference, name)[:, i], scale * getattr(ours, name)[:, i]
            panel.plot(reference.time, exact, color=PALE, alpha=0.55, linewidth=3.5, label=_once(i, "rigid contacts"))
            panel.plot(
                ours.time, model, color=colour, linewidth=1.1, label=f"{block} and the contact below it, model C"
            )
        dress(panel, "", label or "friction f [N]")
    axes[2].set_xlabel("time [s]")


def _once(i: int, label: str) -> str:
    return label if i == 0 else "_"
