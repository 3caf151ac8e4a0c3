"""Results of calibrations from data: provenance, text for the terminal and objects for ``--json``."""

from __future__ import annotations

import datetime
import platform
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from devices.common.parameter_keys import UNIT_WORDS, key, unit_key

if TYPE_CHECKING:
    from calibration.data.joint_recording import Source
    from calibration.friction import Candidate
    from calibration.identification import PredictionError
    from calibration.parameters import Found, JointParameters, Provenance

_PACKAGES = ("haptics", "numpy", "scipy")


def provenance(method: str, sources: Iterable[Source], identity: str, before: Provenance | None = None) -> Provenance:
    """Return the provenance of parameters that are written now.

    Parameters
    ----------
    method : str
        Identification method.
    sources : iterable of Source
        Input files. Each is listed once.
    identity : str
        Name of the device, used if the files do not contain one.
    before : Provenance, optional
        Provenance of the parameters that are extended.
    """
    from calibration.parameters import Provenance

    known, old = dict.fromkeys(sources), before or Provenance()
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:  # run from a source tree
            versions[package] = "not installed"
    return Provenance(
        date=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        method="; then ".join(filter(None, (old.method, method))),
        device=next((source.device for source in known if source.device), identity or old.device),
        data_files=(*old.data_files, *(Path(source.path).name for source in known)),
        data_sha256=(*old.data_sha256, *(source.sha256 for source in known)),
        versions=versions,
    )


def effort_word(rotary: bool) -> str:
    """Return ``torque`` for a rotary joint and ``force`` for a linear one."""
    return "torque" if rotary else "force"


def as_object(joint: JointParameters) -> dict[str, Any]:
    """Return the parameters of a joint for ``--json``: its table in the parameter file, with its name."""
    from calibration.parameter_files import joint_table

    return {"name": joint.name, **joint_table(joint)}


def describe(joint: JointParameters, errors: Mapping[str, PredictionError] | None = None) -> list[str]:
    """Describe the parameters of a joint, one line each.

    Parameters
    ----------
    joint : JointParameters
    errors : mapping, optional
        Prediction errors by the name of the validation recording.
    """
    lines = []
    if joint.friction is not None:
        facts, effort = joint.friction.facts, effort_word(joint.rotary)
        score = facts.get("relative_error_cross_validated")
        cross_validated = "" if score is None else f"; cross-validated {_percent(score)}"
        lines.append(
            f"{joint.name}: {joint.friction.model} friction, residual {_percent(facts['relative_error'])} of the "
            f"{effort} (rms{cross_validated}); {facts['samples_used']} of {facts['samples']} samples"
        )
        lines += _values(joint, joint.friction, "friction")
        offsets = facts.get(key("offset_recordings", "force", joint.rotary))
        if offsets is not None:
            unit, spread = (
                UNIT_WORDS[unit_key("force", joint.rotary)],
                facts[key("offset_spread", "force", joint.rotary)],
            )
            numbers = ", ".join(f"{one:.4g}" for one in offsets)
            lines.append(f"  offsets of the recordings: {numbers} {unit} (standard deviation {spread:.3g} {unit})")
    if joint.motor is not None:
        lines += [f"{joint.name}: motor"]
        lines += _values(joint, joint.motor, "motor")
    return lines + [f"  {name}: {describe_error(error, joint.rotary)}" for name, error in (errors or {}).items()]


def describe_error(error: PredictionError, rotary: bool) -> str:
    """Describe the error of predicted torques on a recording."""
    unit = UNIT_WORDS[unit_key("force", rotary)]
    return (
        f"residual {_percent(error.relative)} of the {effort_word(rotary)} (rms); "
        f"{_percent(error.relative_own_offset)} with the offset of this recording ({error.offset:.3g} {unit})"
    )


def describe_candidates(candidates: Sequence[Candidate]) -> list[str]:
    """Return the table of the compared models, one line each."""
    width = max(len(one.name) for one in candidates)
    head = f"  {'model':<{width}}  parameters  cross-validated residual"
    return [
        head,
        *(
            f"  {one.name:<{width}}  {one.parameters:>10}  {_percent(one.score):>9}   {one.reason}"
            for one in candidates
        ),
    ]


def _percent(fraction: float) -> str:
    return f"{100.0 * fraction:.3g} %"


def _values(joint: JointParameters, found: Found, kind: str) -> list[str]:
    from calibration.parameter_files import friction_keys, motor_keys

    keys = (friction_keys if kind == "friction" else motor_keys)(found.model, joint.rotary)
    width = max(len(keys[name]) for name in found.values)
    lines = []
    for name, value in found.values.items():
        low, high = found.intervals.get(name, (None, None))
        interval = ""
        if low is not None and high is not None:
            interval = f"   95 % below {high:.4g}" if low == 0.0 else f"   95 % between {low:.4g} and {high:.4g}"
        lines.append(f"  {keys[name]:<{width}}  {value:10.4g}{interval}")
    return lines + [f"  warning: {warning}" for warning in found.warnings]


def ending(out: Path, report: Path | None) -> list[str]:
    """Return the lines that list the written files."""
    written = [f"Parameters: {out}"] + ([f"Report:     {report}"] if report is not None else [])
    return ["", *written]


def names_of(sources: Sequence[str]) -> list[str]:
    """Return the file names of `sources`, or full paths where names would be ambiguous."""
    short = [Path(source).name for source in sources]
    return [name if short.count(name) == 1 else source for name, source in zip(short, sources, strict=True)]
