"""Report of a calibration: a self-contained HTML file with one page for each joint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apps.calibrate.reports.friction_figure import friction_figure
from apps.calibrate.reports.motor_figure import motor_figure
from apps.shared.html import document, picture, table, warnings

if TYPE_CHECKING:
    from calibration.friction import Candidate
    from calibration.identification import IdentifiedFriction, PredictionError
    from calibration.motor.gain import MotorFit
    from calibration.parameters.parameters import Found, JointParameters, ParameterFile

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
    return [
        Page(
            joint,
            "friction",
            _friction_lead(one),
            friction_figure(one),
            checks[joint.name],
            one.choice.candidates if len(one.choice.candidates) > 1 else (),
        )
        for one, joint in zip(identified, joints, strict=True)
    ]


def motor_pages(fits: Sequence[MotorFit], joints: Sequence[JointParameters]) -> list[Page]:
    """Return the report pages of joints whose motors were identified."""
    return [
        Page(joint, "motor", _motor_lead(fit), motor_figure(fit), {}) for fit, joint in zip(fits, joints, strict=True)
    ]


def write_report(path: Path, file: ParameterFile, pages: Sequence[Page]) -> None:
    """Write the report.

    Raises
    ------
    ConfigurationError
        If the file cannot be written.
    """
    from haptics.files import write_atomically

    write_atomically(path, _document(file, pages))


def _document(file: ParameterFile, pages: Sequence[Page]) -> str:
    title = f"Calibration of {file.provenance.device or ', '.join(page.joint.name for page in pages)}"
    return document(title, [_section(page, file) for page in pages])


def _section(page: Page, file: ParameterFile) -> str:
    found = page.found
    word = {"friction": f"friction, {found.model}", "motor": "motor"}[page.kind]
    return "\n".join(
        (
            "<section>",
            f"<h1>{escape(page.joint.name)}: {escape(word)}</h1>",
            f'<p class="lead">{escape(page.lead)}</p>',
            warnings(found.warnings),
            '<div class="columns">',
            f"<div><h2>Parameters</h2>{_parameters(page)}</div>",
            f"<div><h2>Fit</h2>{_facts(page)}</div>",
            "</div>",
            picture(page.figure, f"Figures of {page.joint.name}"),
            _candidates(page),
            f"<h2>Where it comes from</h2>{_origin(file)}",
            "</section>",
        )
    )


def _candidates(page: Page) -> str:
    if not page.candidates:
        return ""
    rows = [[one.name, str(one.parameters), f"{one.score:.1%}", one.reason] for one in page.candidates]
    head = ["model", "parameters", "cross-validated residual", ""]
    return f"<h2>Models that were compared</h2>{table(head, rows, words=1)}"


def _friction_lead(one: IdentifiedFriction) -> str:
    seconds = sum(recording.duration for recording in one.recordings)
    recordings = len(one.recordings)
    count = "1 recording" if recordings == 1 else f"{recordings} recordings"
    return (
        f"{count}, {seconds:.0f} s. Friction has the direction of the velocity; a joint that nothing drives gives "
        "minus it."
    )


def _motor_lead(fit: MotorFit) -> str:
    how = "The joint was held" if fit.held else "The joint moved"
    known = "" if fit.held or "hysteresis" in fit.values else "; its friction is known and was added"
    return f"{how} while its motor was driven for {fit.recording.duration:.0f} s{known}."


def _parameters(page: Page) -> str:
    from calibration.parameters.keys import parameter_unit

    found, rows = page.found, []
    for name, value in found.values.items():
        low, high = found.intervals.get(name, (None, None))
        interval = "" if low is None else f"below {high:.4g}" if low == 0.0 else f"{low:.4g} to {high:.4g}"
        unit = parameter_unit(name, page.joint.rotary, found.model)
        word = "mass" if name == "inertia" and not page.joint.rotary else name.replace("_", " ")
        rows.append([word, f"{value:.4g} {unit}", interval])
    return table(["", "value", "95 % interval"], rows)


def _facts(page: Page) -> str:
    facts = page.found.facts.items()
    rows = [[_fact_name(name), _fact(name, value)] for name, value in facts if not (_excluded(name) and value == 0)]
    for name, error in page.checks.items():
        rows.append([f"error on {name}", f"{error.relative:.1%}"])
        rows.append([f"error on {name}, with the offset of that recording", f"{error.relative_own_offset:.1%}"])
    return table([], rows)


def _excluded(name: str) -> bool:
    return name.startswith("excluded_")


def _fact_name(name: str) -> str:
    if _excluded(name):
        return f"left out: {name.removeprefix('excluded_').replace('_', ' ')}"
    return _WORDS[name] if name in _WORDS else _spoken(name)


def _spoken(key: str) -> str:
    """Return a key with its unit in brackets and spaces instead of underscores."""
    from devices.common.parameter_keys import UNIT_WORDS

    for unit in sorted(UNIT_WORDS, key=len, reverse=True):
        if key.endswith(f"_{unit}"):
            return f"{key.removesuffix(f'_{unit}').replace('_', ' ')} [{UNIT_WORDS[unit]}]"
    return key.replace("_", " ")


def _fact(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name in _PARTS:
        return f"{value:.1%}"
    if isinstance(value, list):
        return ", ".join(f"{one:.4g}" for one in value)
    return str(value) if isinstance(value, int) else f"{value:.4g}"


def _origin(file: ParameterFile) -> str:
    known = file.provenance
    rows = [
        ("made", known.date),
        ("how", known.method),
        ("of", known.device or "not said"),
        ("with", ", ".join(f"{name} {version}" for name, version in known.versions.items())),
    ]
    cells = [f"<tr><td>{escape(name)}</td><td>{escape(text)}</td></tr>" for name, text in rows]
    cells += [
        f'<tr><td>from</td><td>{escape(name)} <span class="hash">sha256 {escape(digest)}</span></td></tr>'
        for name, digest in zip(known.data_files, known.data_sha256, strict=True)
    ]
    return f"<table>{''.join(cells)}</table>"
