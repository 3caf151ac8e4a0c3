"""Report of a calibration: a self-contained HTML file with one page and its figures for each joint.

The figures are modelled on Fig. 10 (friction) and Fig. 11 (motors) of Guedelha et al. 2018.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from apps.calibrate.results import effort_word, units_of
from apps.reproduce.style import BLUE, GREEN, INK, ORANGE, PALE, PINK, dress
from apps.shared.command import Answer
from apps.shared.html import document, new_figure, picture, svg, table, warnings
from devices.common.parameter_keys import UNIT_WORDS
from haptics.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from calibration.friction import Candidate, FrictionFit
    from calibration.identification import IdentifiedFriction, PredictionError
    from calibration.motor import MotorFit
    from calibration.parameters import Found, JointParameters, ParameterFile, Provenance

_WORDS = {
    "samples": "samples",
    "samples_used": "samples that were fitted",
    "condition_number": "condition number",
    "relative_error": "residual (rms, of the measured rms)",
    "relative_error_cross_validated": "cross-validated residual (rms)",
    "residual_autocorrelation": "autocorrelation of the residuals (lag 1)",
    "effective_samples": "effective number of independent samples",
    "outlier_share": "fraction of outliers",
    "held": "the joint was held",
}
_PARTS = {"relative_error", "relative_error_cross_validated", "outlier_share"}


@dataclass(frozen=True)
class Page:
    """Contents of one page of the report.

    Attributes
    ----------
    joint : JointParameters
        The joint.
    kind : str
        Parameters on the page, ``friction`` or ``motor``.
    lead : str
        Sentence below the title.
    figure : str
        Figure as SVG.
    checks : mapping
        Prediction errors by the name of the validation recording.
    candidates : tuple of Candidate
        The compared models.
    """

    joint: JointParameters
    kind: str
    lead: str
    figure: str
    checks: Mapping[str, PredictionError]
    candidates: tuple[Candidate, ...] = ()

    @property
    def found(self) -> Found:
        """Identified parameters on the page."""
        found: Found = getattr(self.joint, self.kind)
        return found


def friction_pages(
    identified: Sequence[IdentifiedFriction],
    joints: Sequence[JointParameters],
    checks: Mapping[str, Mapping[str, PredictionError]],
) -> list[Page]:
    """Return the report pages of joints whose friction was identified."""
    pages = []
    for one, joint in zip(identified, joints, strict=True):
        count = "1 recording" if len(one.recordings) == 1 else f"{len(one.recordings)} recordings"
        lead = (
            f"{count}, {sum(recording.duration for recording in one.recordings):.0f} s. Friction has the direction of "
            "the velocity; a joint that nothing drives gives minus it."
        )
        candidates = one.choice.candidates if len(one.choice.candidates) > 1 else ()
        pages.append(Page(joint, "friction", lead, friction_figure(one), checks[joint.name], candidates))
    return pages


def motor_pages(fits: Sequence[MotorFit], joints: Sequence[JointParameters]) -> list[Page]:
    """Return the report pages of joints whose motors were identified."""
    pages = []
    for fit, joint in zip(fits, joints, strict=True):
        how = "The joint was held" if fit.held else "The joint moved"
        known = "" if fit.held or "hysteresis" in fit.values else "; its friction is known and was added"
        lead = f"{how} while its motor was driven for {fit.recording.duration:.0f} s{known}."
        pages.append(Page(joint, "motor", lead, motor_figure(fit), {}))
    return pages


def write_report(path: Path, file: ParameterFile, pages: Sequence[Page]) -> None:
    """Write the report.

    Raises
    ------
    ConfigurationError
        If the file cannot be written.
    """
    title = f"Calibration of {file.provenance.device or ', '.join(page.joint.name for page in pages)}"
    write_atomically(path, document(title, [_section(page, file.provenance) for page in pages]))


def deliver(
    options: argparse.Namespace,
    file: ParameterFile,
    objects: Sequence[Mapping[str, Any]],
    lines: Sequence[str],
    pages: Callable[[], Sequence[Page]],
    **more: Any,
) -> Answer:
    """Write the parameter file and the report of ``--out`` and ``--report``, and return the answer of the command.

    `objects` and `lines` describe the joints, `more` adds keys to the result. The `pages` are made for a report only.
    """
    from calibration.parameters import write_parameter_file

    write_parameter_file(options.out, file)
    report = None
    if options.report is not None:
        write_report(options.report, file, pages())
        report = str(options.report)
    written = [f"Parameters: {options.out}", *([f"Report:     {report}"] if report else [])]
    result = {"out": str(options.out), "report": report, **more, "joints": list(objects)}
    return Answer(result, "\n".join([*lines, "", *written]))


def _section(page: Page, known: Provenance) -> str:
    from calibration.parameters import parameter_unit

    found, parameters = page.found, []
    for name, value in found.values.items():
        low, high = found.intervals.get(name, (None, None))
        interval = "" if low is None else f"below {high:.4g}" if low == 0.0 else f"{low:.4g} to {high:.4g}"
        unit = parameter_unit(name, page.joint.rotary, found.model)
        word = "mass" if name == "inertia" and not page.joint.rotary else name.replace("_", " ")
        parameters.append([word, f"{value:.4g} {unit}", interval])
    candidates = ""
    if page.candidates:
        rows = [[one.name, str(one.parameters), f"{one.score:.1%}", one.reason] for one in page.candidates]
        head = ["model", "parameters", "cross-validated residual", ""]
        candidates = f"<h2>Models that were compared</h2>{table(head, rows, words=1)}"
    origin = (
        ("made", known.date),
        ("how", known.method),
        ("of", known.device or "not said"),
        ("with", ", ".join(f"{name} {version}" for name, version in known.versions.items())),
    )
    cells = [f"<tr><td>{escape(name)}</td><td>{escape(text)}</td></tr>" for name, text in origin]
    cells += [
        f'<tr><td>from</td><td>{escape(name)} <span class="hash">sha256 {escape(digest)}</span></td></tr>'
        for name, digest in zip(known.data_files, known.data_sha256, strict=True)
    ]
    title = {"friction": f"friction, {found.model}", "motor": "motor"}[page.kind]
    return "\n".join(
        (
            "<section>",
            f"<h1>{escape(page.joint.name)}: {escape(title)}</h1>",
            f'<p class="lead">{escape(page.lead)}</p>',
            warnings(found.warnings),
            '<div class="columns">',
            f"<div><h2>Parameters</h2>{table(['', 'value', '95 % interval'], parameters)}</div>",
            f"<div><h2>Fit</h2>{_facts(page)}</div>",
            "</div>",
            picture(page.figure, f"Figures of {page.joint.name}"),
            candidates,
            f"<h2>Where it comes from</h2><table>{''.join(cells)}</table>",
            "</section>",
        )
    )


def _facts(page: Page) -> str:
    rows = []
    for name, value in page.found.facts.items():
        word = _WORDS.get(name, name.replace("_", " "))
        for unit in sorted(UNIT_WORDS, key=len, reverse=True):  # the unit in brackets
            if name.endswith(f"_{unit}"):
                word = f"{name.removesuffix(f'_{unit}').replace('_', ' ')} [{UNIT_WORDS[unit]}]"
                break
        if name.startswith("excluded_"):
            if value == 0:
                continue
            word = f"left out: {name.removeprefix('excluded_').replace('_', ' ')}"
        if isinstance(value, bool):
            text = "yes" if value else "no"
        elif name in _PARTS:
            text = f"{value:.1%}"
        elif isinstance(value, list):
            text = ", ".join(f"{one:.4g}" for one in value)
        else:
            text = str(value) if isinstance(value, int) else f"{value:.4g}"
        rows.append([word, text])
    for name, error in page.checks.items():
        own = [f"error on {name}, with the offset of that recording", f"{error.relative_own_offset:.1%}"]
        rows += [[f"error on {name}", f"{error.relative:.1%}"], own]
    return table([], rows)


# --- figures ----------------------------------------------------------------------------------------------------------


Array = NDArray[np.float64]

_MOST_POINTS = 6000


def dots(axes: Axes, x: Array, y: Array, colour: str, label: str = "") -> None:
    """Draw samples as rasterized dots, because thousands of vector dots would make the file large."""
    every = max(1, -(-len(x) // _MOST_POINTS))  # a figure cannot show more samples
    axes.plot(
        x[::every], y[::every], ".", color=colour, markersize=2.2, alpha=0.5, rasterized=True, label=label or None
    )


def legend(axes: Axes, place: Literal["upper left", "upper right", "center"]) -> None:
    """Add a legend with enlarged dots."""
    shown = axes.legend(loc=place, fontsize=8.5, framealpha=0.9)
    for handle in shown.legend_handles:
        if handle is not None and hasattr(handle, "set_markersize"):
            handle.set_markersize(6.0)


# --- figure of a friction fit -----------------------------------------------------------------------------------------


_CURVE = 2000
_SLOW = 8.0
"""Range of the near-rest plot [Stribeck velocities]."""
_LAGS = 60


def friction_figure(identified: IdentifiedFriction) -> str:
    """Return the figure of a friction fit as SVG: data and law, detail near rest, residuals, model scores."""
    from calibration.friction import fit_friction

    fit, scores = identified.fit, identified.choice.scores
    samples, kept, residual, rms = fit.samples, fit.kept, fit.residual, fit.diagnostics.rms
    velocity, friction, reach = samples.velocity, samples.friction, float(np.abs(samples.velocity).max())
    if samples.acceleration is not None:  # without the load of an inertia identified with it
        friction = friction - fit.values.get("inertia", 0.0) * samples.acceleration
    # the best Coulomb-viscous law for comparison, as in Fig. 10
    plain = fit_friction(samples, "coulomb-viscous", fit.settings) if fit.model.scaled else None
    figure = new_figure(11.0, 10.4)
    rows = figure.add_gridspec(2, 1, height_ratios=(2.3, 0.9))
    top, bottom = rows[0].subgridspec(2, 2, height_ratios=(1.3, 0.8)), rows[1].subgridspec(1, 2)
    _, speed, effort = units_of(identified.rotary)
    law = figure.add_subplot(top[0, 0])
    dots(law, velocity[~kept], friction[~kept], PALE, "left out")
    dots(law, velocity[kept], friction[kept], BLUE, "measured")
    _curves(law, fit, plain, reach)
    dress(law, f"velocity [{speed}]", f"friction [{effort}]", "friction and velocity")
    legend(law, "upper left")
    near = figure.add_subplot(top[0, 1])
    _near_rest(near, fit, plain, friction)
    near_title = "near rest (diamonds: static levels, 95 % intervals)"
    dress(near, f"velocity [{speed}]", f"friction [{effort}]", near_title)
    by_velocity = figure.add_subplot(top[1, 0])
    dots(by_velocity, velocity[kept], residual, BLUE)
    edges = np.linspace(velocity[kept].min(), velocity[kept].max(), 31)
    groups = np.digitize(velocity[kept], edges[1:-1])
    filled = [k for k in range(30) if np.count_nonzero(groups == k) >= 5]
    middles, means = ([float(of[groups == k].mean()) for k in filled] for of in (velocity[kept], residual))
    by_velocity.plot(middles, means, color=ORANGE, linewidth=1.8, label="mean of neighbours")
    by_velocity.axhline(0.0, color=INK, linewidth=0.8)
    dress(by_velocity, f"velocity [{speed}]", f"residual [{effort}]", "residual of the fit")
    legend(by_velocity, "upper right")
    by_time = figure.add_subplot(top[1, 1])
    dots(by_time, samples.time[kept], residual, BLUE)
    for level in (-rms, rms):
        by_time.axhline(level, color=ORANGE, linewidth=1.2, linestyle="--")
    by_time.axhline(0.0, color=INK, linewidth=0.8)
    dress(by_time, "time [s]", f"residual [{effort}]", f"the same by time (dashed: rms {rms:.3g} {effort})")
    _memory(figure.add_subplot(bottom[0]), residual - residual.mean())
    last = figure.add_subplot(bottom[1])
    if len(scores) > 1:
        _scores(last, scores, identified.choice.name, effort_word(identified.rotary))
    else:  # the residuals and a normal distribution of the same rms
        most = float(np.abs(residual).max()) or 1.0
        _, edges, _ = last.hist(residual, bins=80, range=(-most, most), color=BLUE, alpha=0.8)
        size, width = np.linspace(-most, most, 400), rms or most
        height = len(residual) * float(edges[1] - edges[0]) / (width * np.sqrt(2.0 * np.pi))
        normal = height * np.exp(-0.5 * (size / width) ** 2)
        last.plot(size, normal, color=ORANGE, linewidth=1.8, label="normal errors")
        dress(last, f"residual [{effort}]", "samples", "sizes of the residual")
        legend(last, "upper right")
    return svg(figure)


def _curves(axes: Axes, fit: FrictionFit, plain: FrictionFit | None, reach: float) -> None:
    """Draw the law, and a plain one if given, on both sides of zero.

    At rest the friction can have any value between the two levels.
    """
    laws: list[tuple[FrictionFit, Array, str, dict[str, Any]]] = []
    if plain is not None:
        dashed = {"color": GREEN, "linewidth": 1.4, "linestyle": "--"}
        laws.append((plain, np.array([1e-6, 1.0]), "Coulomb and viscous", dashed))
    laws.append((fit, np.geomspace(1e-5, 1.0, _CURVE), "identified", {"color": ORANGE, "linewidth": 2.0}))
    for law, part, label, style in laws:
        for side in (-1.0, 1.0):
            velocity = side * part * reach
            axes.plot(velocity, law.evaluate(velocity), label=label if side > 0.0 else None, **style)
    levels = fit.evaluate(np.array([-1e-9, 1e-9]) * reach)
    axes.plot([0.0, 0.0], levels, color=ORANGE, linewidth=1.2, linestyle=":")


def _near_rest(axes: Axes, fit: FrictionFit, plain: FrictionFit | None, friction: Array) -> None:
    velocity = fit.samples.velocity
    reach = float(np.abs(velocity).max())
    reach = min(reach, max(_SLOW * fit.values.get("stribeck_velocity", 0.1 * reach), 4.0 * fit.dead_band))
    slow = np.abs(velocity) <= reach
    for chosen, colour in ((slow & ~fit.kept, PALE), (slow & fit.kept, BLUE)):
        dots(axes, velocity[chosen], friction[chosen], colour)
    if fit.dead_band > 0.0:
        axes.axvspan(-fit.dead_band, fit.dead_band, color=PALE, alpha=0.2, linewidth=0.0)
        style: dict[str, Any] = {"ha": "center", "va": "bottom", "fontsize": 8.5, "color": INK}
        axes.text(0.5, 0.02, "grey: left out", transform=axes.transAxes, **style)
    _curves(axes, fit, plain, reach)
    # the levels at zero speed and their intervals
    kind, offset = "static" if fit.model.scaled else "coulomb", fit.values.get("offset", 0.0)
    for direction, side in (("forward", 1.0), ("backward", -1.0)):
        for key in (kind, f"{kind}_{direction}"):
            if key in fit.values:
                level, (low, high) = fit.values[key], fit.intervals[key]
                axes.plot([0.0, 0.0], [offset + side * low, offset + side * high], color=INK, linewidth=2.2, zorder=4)
                axes.plot([0.0], [offset + side * level], "D", color=INK, markersize=5.0, zorder=5)
    axes.set_xlim(-reach, reach)


def _memory(axes: Axes, residual: Array) -> None:
    """Draw the autocorrelation of the residual.

    It is zero for independent errors.
    """
    lags = np.arange(1, min(_LAGS, len(residual) // 4))
    power = float(residual @ residual) or 1.0
    values = [float(residual[lag:] @ residual[:-lag]) / power for lag in lags]
    axes.bar(lags, values, width=0.75, color=PINK)
    band = 1.96 / np.sqrt(len(residual))
    axes.axhspan(-band, band, color=PALE, alpha=0.3, linewidth=0.0)
    axes.axhline(0.0, color=INK, linewidth=0.8)
    axes.set_ylim(min(-0.25, min(values, default=0.0) - 0.05), max(0.5, max(values, default=0.0) + 0.05))
    dress(axes, "samples later", "correlation", "memory of the residual (grey: none)")


def _scores(axes: Axes, scores: Mapping[str, float], chosen: str, effort: str) -> None:
    """Draw the cross-validated error of every model."""
    names = list(scores)
    percent = [100.0 * scores[name] for name in names]
    axes.barh(range(len(names)), percent, height=0.62, color=[ORANGE if name == chosen else BLUE for name in names])
    for row, value in enumerate(percent):
        axes.text(value + 0.012 * max(percent), row, f"{value:.3g} %", va="center", fontsize=8.5, color=INK)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlim(0.0, 1.16 * max(percent) or 1.0)
    dress(axes, f"cross-validated residual [% of the {effort}]", "", "models (orange: chosen, the simplest as good)")


# --- figure of a motor fit --------------------------------------------------------------------------------------------


_DRIVES = {"percent": "PWM [%]", "count": "PWM [counts]", "duty": "PWM [1]", "a": "current [A]", "v": "voltage [V]"}


def motor_figure(fit: MotorFit) -> str:
    """Return the figure of a motor fit as SVG: hysteresis, line with the friction added, and residuals."""
    figure = new_figure(11.0, 8.4)
    grid = figure.add_gridspec(2, 2, height_ratios=(1.25, 0.8))
    effort = units_of(fit.recording.rotary)[2]
    drive, label, word = (
        np.asarray(fit.recording.drive),
        _DRIVES[fit.recording.drive_unit],
        effort_word(fit.recording.rotary),
    )
    # The output torque, one colour for each direction: the branches differ by twice the friction (Fig. 11).
    output = figure.add_subplot(grid[0, 0])
    words = ("drive falling", "drive rising") if fit.held else ("moving backward", "moving forward")
    for side, colour, name in ((-1.0, PINK, words[0]), (1.0, BLUE, words[1])):
        chosen = fit.branch == side
        dots(output, drive[chosen], fit.gross[chosen], colour, name)
    ends = np.array([drive.min(), drive.max()])
    middle = fit.values["gain"] * ends + fit.values["offset"]
    output.plot(ends, middle, color=ORANGE, linewidth=2.0, label="identified")
    half = fit.values.get("hysteresis", 0.0)
    for side in (-1.0, 1.0) if half else ():
        output.plot(ends, middle + side * half, color=ORANGE, linewidth=1.2, linestyle="--")
    dress(output, label, f"{word} that came out [{effort}]", "before the friction is added")
    legend(output, "upper left")
    motor = figure.add_subplot(grid[0, 1])
    torque = fit.net + fit.branch * half
    dots(motor, drive[~fit.used], torque[~fit.used], PALE, "left out")
    dots(motor, drive[fit.used], torque[fit.used], BLUE, "motor")
    motor.plot(ends, middle, color=ORANGE, linewidth=2.0, label="identified")
    motor.axhline(0.0, color=INK, linewidth=0.8)
    dress(motor, label, f"{word} of the motor [{effort}]", "with the friction added")
    legend(motor, "upper left")
    left = figure.add_subplot(grid[1, 0])
    dots(left, fit.recording.time[fit.used], fit.residual, BLUE)
    dress(left, "time [s]", f"residual [{effort}]", "what the fit leaves")
    by_drive = figure.add_subplot(grid[1, 1])
    dots(by_drive, drive[fit.used], fit.residual, BLUE)
    dress(by_drive, label, f"residual [{effort}]", "the same by the drive")
    return svg(figure)
