"""``haptics calibrate terms``: which terms friction and load have, chosen by what they predict."""

from __future__ import annotations

import argparse
from collections.abc import Container, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apps.answer import Answer
from apps.calibrate.options import add_check_option, add_source_options, parse_columns
from apps.calibrate.places import require_place
from apps.progress import Line

if TYPE_CHECKING:
    from calibration.observation import Observation
    from calibration.observed_files import Observed
    from calibration.prediction_error import ErrorEstimate
    from calibration.selection import Selection
    from calibration.term_model import TermModel

KINDS = ("friction", "inertia", "load", "drive")
"""As of `calibration.terms`, which is not imported to print a help text."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    add_source_options(parser, "what was measured, or a recording of a serial robot with its load")
    parser.add_argument(
        "--kind",
        dest="kinds",
        choices=KINDS,
        action="append",
        default=[],
        help="only terms of this kind (repeatable; all)",
    )
    parser.add_argument("--out", metavar="FILE.toml", type=Path, required=True, help="file for the models")
    add_check_option(parser)


def run(options: argparse.Namespace) -> Answer:
    """Choose the terms of every joint."""
    from calibration.term_files import write_term_file

    require_place(options.out)
    joints = _by_joint(options)
    checks = {path: _checked(options, path, joints) for path in options.check}
    found = _choose_all(options, joints)
    models = {name: selection.model for name, selection in found.items()}
    write_term_file(options.out, models, _facts([one for seen in joints.values() for one in seen]))
    errors = {name: _check(model, name, checks) for name, model in models.items()}
    warnings = {name: _warnings([one.observation for one in seen]) for name, seen in joints.items()}
    result = {
        "out": str(options.out),
        "joints": [
            {**_as_object(name, selection, errors[name]), "warnings": warnings[name]}
            for name, selection in found.items()
        ],
    }
    lines = [
        line
        for name, selection in found.items()
        for line in (
            *_describe(name, selection, errors[name]),
            *(f"  warning: {warning}" for warning in warnings[name]),
        )
    ]
    return Answer(result, "\n".join([*lines, "", f"Models: {options.out}"]))


def _read(options: argparse.Namespace, path: str) -> dict[str, Observed]:
    from calibration.observed_files import read_observations

    return {one.joint: one for one in read_observations(path, parse_columns(options.columns), tuple(options.joints))}


def _checked(options: argparse.Namespace, path: str, joints: Container[str]) -> dict[str, Observed]:
    """Return what was seen in another recording of the joints."""
    from haptics.errors import ConfigurationError

    file = _read(options, path)
    if not any(name in joints for name in file):
        raise ConfigurationError(f"{path}: has the joints {', '.join(file)}, none of those of --data.")
    return file


def _by_joint(options: argparse.Namespace) -> dict[str, list[Observed]]:
    """Return what was seen of every joint, over all files of ``--data``."""
    from haptics.errors import ConfigurationError

    files = {path: _read(options, path) for path in options.data}
    names = list(files[options.data[0]])
    for path, file in files.items():
        if set(file) != set(names):
            raise ConfigurationError(f"{path}: has the joints {', '.join(file)}; others have {', '.join(names)}.")
    return {name: [file[name] for file in files.values()] for name in names}


def _choose_all(options: argparse.Namespace, joints: dict[str, list[Observed]]) -> dict[str, Selection]:
    from calibration.selection import SelectionSettings, select_terms

    settings = SelectionSettings(kinds=tuple(options.kinds) or KINDS)
    found: dict[str, Selection] = {}
    with Line() as line:
        for name, seen in joints.items():
            line.show(f"choosing the terms of {name} ({len(found) + 1} of {len(joints)})")
            found[name] = select_terms([one.observation for one in seen], settings=settings)
    return found


def _facts(seen: list[Observed]) -> dict[str, Any]:
    from apps.calibrate.results import provenance

    return vars(provenance("forward selection by blocked cross-validation", [one.source for one in seen], ""))


def _check(model: TermModel, name: str, checks: dict[str, dict[str, Observed]]) -> dict[str, ErrorEstimate]:
    return {path: model.error(file[name].observation) for path, file in checks.items() if name in file}


def _warnings(seen: Sequence[Observation]) -> list[str]:
    """Return what makes a model doubtful."""
    if any(one.both_ways for one in seen):
        return []
    return ["Hardly moves in one of the directions: friction is not told from an offset; record both."]


def _as_object(name: str, selection: Selection, errors: dict[str, ErrorEstimate]) -> dict[str, Any]:
    from calibration.term_files import model_table

    return {
        "name": name,
        **model_table(selection.model),
        "cross_validated": vars(selection.score),
        "condition_number": selection.condition,
        "checks": {path: vars(error) for path, error in errors.items()},
    }


def _describe(name: str, selection: Selection, errors: dict[str, ErrorEstimate]) -> list[str]:
    from calibration.term_files import unit_key

    lines = [f"{name}: leaves {_share(selection.score)} of the torque where it was not fitted"]
    for one in selection.model.fitted:
        unit = unit_key(one.term.dimension, selection.model.rotary)
        numbers = ", ".join(
            f"{value:10.4g} {unit}   95 % between {low:.4g} and {high:.4g}"
            for value, low, high in zip(one.values, one.low, one.high, strict=True)
        )
        lines.append(f"  {one.term.label:<24} {one.term.kind:<9}{numbers}")
    return lines + [
        f"  {Path(path).name}: the error is {_share(error)} of the torque" for path, error in errors.items()
    ]


def _share(error: ErrorEstimate) -> str:
    return f"{error.value:.1%} ({error.low:.1%} to {error.high:.1%})"
