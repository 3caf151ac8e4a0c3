"""Results of calibrations from data: provenance, text for the terminal and objects for ``--json``."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apps.shared.command import package_versions
from devices.common.parameter_keys import key

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
    return Provenance(
        date=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        method="; then ".join(filter(None, (old.method, method))),
        device=next((source.device for source in known if source.device), identity or old.device),
        data_files=(*old.data_files, *(Path(source.path).name for source in known)),
        data_sha256=(*old.data_sha256, *(source.sha256 for source in known)),
        versions={name: str(version) for name, version in package_versions(_PACKAGES, "not installed").items()},
    )


def units_of(rotary: bool) -> tuple[str, str, str]:
    """Return the units of position, velocity and torque or force."""
    return ("rad", "rad/s", "N m") if rotary else ("m", "m/s", "N")


def effort_word(rotary: bool) -> str:
    """Return ``torque`` for a rotary joint and ``force`` for a linear one."""
    return "torque" if rotary else "force"


def as_object(joint: JointParameters) -> dict[str, Any]:
    """Return the parameters of a joint for ``--json``: its table in the parameter file, with its name."""
    from calibration.parameters import joint_table

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
            unit, spread = units_of(joint.rotary)[2], facts[key("offset_spread", "force", joint.rotary)]
            numbers = ", ".join(f"{one:.4g}" for one in offsets)
            lines.append(f"  offsets of the recordings: {numbers} {unit} (standard deviation {spread:.3g} {unit})")
    if joint.motor is not None:
        lines += [f"{joint.name}: motor", *_values(joint, joint.motor, "motor")]
    return lines + [f"  {name}: {describe_error(error, joint.rotary)}" for name, error in (errors or {}).items()]


def describe_error(error: PredictionError, rotary: bool) -> str:
    """Describe the error of predicted torques on a recording."""
    own, offset = _percent(error.relative_own_offset), f"{error.offset:.3g} {units_of(rotary)[2]}"
    whole = f"residual {_percent(error.relative)} of the {effort_word(rotary)} (rms)"
    return f"{whole}; {own} with the offset of this recording ({offset})"


def describe_candidates(candidates: Sequence[Candidate]) -> list[str]:
    """Return the table of the compared models, one line each."""
    width = max(len(one.name) for one in candidates)
    rows = (
        f"  {one.name:<{width}}  {one.parameters:>10}  {_percent(one.score):>9}   {one.reason}" for one in candidates
    )
    return [f"  {'model':<{width}}  parameters  cross-validated residual", *rows]


def _percent(fraction: float) -> str:
    return f"{100.0 * fraction:.3g} %"


def _values(joint: JointParameters, found: Found, kind: str) -> list[str]:
    from calibration.parameters import parameter_keys

    keys = parameter_keys(kind, found.model, joint.rotary)
    width = max(len(keys[name]) for name in found.values)
    lines = []
    for name, value in found.values.items():
        low, high = found.intervals.get(name, (None, None))
        interval = ""
        if low is not None and high is not None:
            interval = f"   95 % below {high:.4g}" if low == 0.0 else f"   95 % between {low:.4g} and {high:.4g}"
        lines.append(f"  {keys[name]:<{width}}  {value:10.4g}{interval}")
    return lines + [f"  warning: {warning}" for warning in found.warnings]


def names_of(sources: Sequence[str]) -> list[str]:
    """Return the file names of `sources`, or full paths where names would be ambiguous."""
    short = [Path(source).name for source in sources]
    return [name if short.count(name) == 1 else source for name, source in zip(short, sources, strict=True)]
