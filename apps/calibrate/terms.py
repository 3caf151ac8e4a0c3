"""Command ``haptics calibrate terms``: select friction and load terms by cross-validation."""

from __future__ import annotations

import argparse
from collections.abc import Container, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apps.calibrate.options import add_check_option, add_source_options, parse_columns
from apps.calibrate.places import require_place
from apps.calibrate.reports.term_table import as_object, table
from apps.shared.answer import Answer
from apps.shared.progress import Line

if TYPE_CHECKING:
    from calibration.data.joint_recording import JointRecording
    from calibration.fitting.prediction_error import ErrorEstimate
    from calibration.terms.comparison import Compared
    from calibration.terms.selection import Selection, SelectionSettings

_Judged = dict[str, "tuple[Compared, ...]"]

KINDS = ("friction", "inertia", "load", "drive")
"""Kinds of `calibration.terms.terms`, repeated here so that the help text needs no import."""
_PARTS = (2, 20)
"""Smallest and largest number of parts in cross-validation."""


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
    parser.add_argument("--out", metavar="FILE.toml", type=Path, required=True, help="file to write the models to")
    add_check_option(parser)
    parser.add_argument(
        "--hold-out",
        metavar="PART",
        type=float,
        help="fit without the last part of every recording (0.4: the last 40 %%) and judge the models on it",
    )
    parser.add_argument(
        "--in-turn",
        metavar="N",
        type=int,
        help="N-fold cross-validation: judge the models on each of N parts, selected and fitted without it (N times "
        "the work)",
    )


def run(options: argparse.Namespace) -> Answer:
    """Select the terms of every joint and write the models."""
    from calibration.terms.files import write_term_file

    require_place(options.out)
    _check_parts(options)
    joints = _by_joint(options)
    checks = {path: _checked(options, path, joints) for path in options.check}
    fitted = {name: [_first(options, one) for one in seen] for name, seen in joints.items()}
    found = _choose_all(options, fitted)
    models = {name: selection.model for name, selection in found.items()}
    write_term_file(options.out, models, _facts([one for seen in joints.values() for one in seen]))
    judged = _judge_all(options, found, joints, fitted, checks)
    warnings = {name: _warnings(seen) for name, seen in fitted.items()}
    result = {
        "out": str(options.out),
        "joints": [
            {**_as_object(name, selection, judged[name]), "warnings": warnings[name]}
            for name, selection in found.items()
        ],
    }
    lines = [
        line
        for name, selection in found.items()
        for line in (
            *_describe(name, selection, judged[name]),
            *(f"  warning: {warning}" for warning in warnings[name]),
        )
    ]
    return Answer(result, "\n".join([*lines, "", f"Models: {options.out}"]))


def _check_parts(options: argparse.Namespace) -> None:
    from haptics.errors import ConfigurationError

    if options.hold_out is not None and not 0.0 < options.hold_out < 1.0:
        raise ConfigurationError(f"--hold-out = {options.hold_out:g}: must be a number between 0 and 1.")
    if options.in_turn is not None and not _PARTS[0] <= options.in_turn <= _PARTS[1]:
        raise ConfigurationError(f"--in-turn = {options.in_turn}: must be {_PARTS[0]} to {_PARTS[1]} parts.")


def _first(options: argparse.Namespace, seen: JointRecording) -> JointRecording:
    """Return the part of a recording that the models are fitted to."""
    return seen if options.hold_out is None else seen.part(0.0, 1.0 - options.hold_out)


def _read(options: argparse.Namespace, path: str) -> dict[str, JointRecording]:
    from calibration.data.reading import read_joint_recordings

    found = read_joint_recordings(path, parse_columns(options.columns), tuple(options.joints))
    return {one.joint: one for one in found}


def _checked(options: argparse.Namespace, path: str, joints: Container[str]) -> dict[str, JointRecording]:
    """Read a validation recording and require at least one of the joints."""
    from haptics.errors import ConfigurationError

    file = _read(options, path)
    if not any(name in joints for name in file):
        raise ConfigurationError(f"{path}: has the joints {', '.join(file)}, none of those of --data.")
    return file


def _by_joint(options: argparse.Namespace) -> dict[str, list[JointRecording]]:
    """Return the recordings of every joint from all files of ``--data``."""
    from haptics.errors import ConfigurationError

    files = {path: _read(options, path) for path in options.data}
    names = list(files[options.data[0]])
    for path, file in files.items():
        if set(file) != set(names):
            raise ConfigurationError(f"{path}: has the joints {', '.join(file)}; others have {', '.join(names)}.")
    return {name: [file[name] for file in files.values()] for name in names}


def _choose_all(options: argparse.Namespace, joints: dict[str, list[JointRecording]]) -> dict[str, Selection]:
    from calibration.terms.selection import select_terms

    found: dict[str, Selection] = {}
    with Line() as line:
        for name, seen in joints.items():
            line.show(f"choosing the terms of {name} ({len(found) + 1} of {len(joints)})")
            found[name] = select_terms(seen, settings=_settings(options))
    return found


def _settings(options: argparse.Namespace) -> SelectionSettings:
    from calibration.terms.selection import SelectionSettings

    return SelectionSettings(kinds=tuple(options.kinds) or KINDS)


def _judge_all(
    options: argparse.Namespace,
    found: dict[str, Selection],
    joints: dict[str, list[JointRecording]],
    fitted: dict[str, list[JointRecording]],
    checks: dict[str, dict[str, JointRecording]],
) -> dict[str, _Judged]:
    """Return the errors of every kind of model, by joint and validation data."""
    from calibration.terms.comparison import compare_in_turn, fit_kinds

    judged: dict[str, _Judged] = {}
    with Line() as line:
        for name, selection in found.items():
            line.show(f"judging the models of {name} ({len(judged) + 1} of {len(found)})")
            others = {path: file[name] for path, file in checks.items() if name in file}
            if options.hold_out is not None:
                for path, one in zip(options.data, joints[name], strict=True):
                    others[f"{path}, the last {options.hold_out:.0%}"] = one.part(1.0 - options.hold_out, 1.0)
            kinds = fit_kinds(fitted[name], _settings(options), selection) if others else None
            judged[name] = {} if kinds is None else {place: kinds.compared(other) for place, other in others.items()}
            if options.in_turn is not None:
                place = f"each of {options.in_turn} parts, left out in turn"
                judged[name][place] = compare_in_turn(fitted[name], _settings(options), options.in_turn)
    return judged


def _facts(seen: list[JointRecording]) -> dict[str, Any]:
    from apps.calibrate.reports.results import provenance

    return vars(provenance("forward selection by blocked cross-validation", [one.source for one in seen], ""))


def _warnings(seen: Sequence[JointRecording]) -> list[str]:
    """Return the warnings about the data of a joint."""
    if any(one.both_ways for one in seen):
        return []
    return ["The joint hardly moves in one direction: friction cannot be told from an offset. Record both directions."]


def _as_object(name: str, selection: Selection, judged: _Judged) -> dict[str, Any]:
    from calibration.terms.files import model_table

    return {
        "name": name,
        **model_table(selection.model),
        "cross_validated": vars(selection.score),
        "condition_number": selection.condition,
        "checks": {
            place: {**vars(_chosen(kinds).error), "kinds": {one.kind: as_object(one) for one in kinds}}
            for place, kinds in judged.items()
        },
    }


def _describe(name: str, selection: Selection, judged: _Judged) -> list[str]:
    from calibration.terms.files import unit_key

    lines = [f"{name}: the error is {_percent(selection.score)} of the torque where it was not fitted"]
    for one in selection.model.fitted:
        unit = unit_key(one.term.dimension, selection.model.rotary)
        numbers = ", ".join(
            f"{value:10.4g} {unit}   95 % between {low:.4g} and {high:.4g}"
            for value, low, high in zip(one.values, one.low, one.high, strict=True)
        )
        lines.append(f"  {one.term.label:<24} {one.term.kind:<9}{numbers}")
    for place, kinds in judged.items():
        short = Path(place).name
        lines += [f"  {short}: the error is {_percent(_chosen(kinds).error)} of the torque", *table(kinds)]
    return lines


def _chosen(kinds: Sequence[Compared]) -> Compared:
    """Return the selected model: the last kind other than `LATE`, which serves for comparison only."""
    from calibration.terms.comparison import LATE

    return [one for one in kinds if one.kind != LATE][-1]


def _percent(error: ErrorEstimate) -> str:
    return f"{error.value:.1%} ({error.low:.1%} to {error.high:.1%})"
