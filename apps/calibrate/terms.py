"""Command ``haptics calibrate terms``: select friction and load terms by cross-validation."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apps.calibrate.options import add_check_option, add_out, add_source_options, measured, require_place
from apps.calibrate.results import provenance
from apps.shared.command import Answer, repeatable
from apps.shared.terminal import Line
from haptics.errors import ConfigurationError

if TYPE_CHECKING:
    from calibration.data.joint_recording import JointRecording
    from calibration.fitting.intervals import ErrorEstimate
    from calibration.terms.selection import Compared, Selection

_Judged = dict[str, "tuple[Compared, ...]"]

KINDS = ("friction", "inertia", "load", "drive")
"""Kinds of `calibration.terms.model`, repeated here so that the help text needs no import."""
_PARTS = (2, 20)
"""Smallest and largest number of parts in cross-validation."""
_ONE_WAY = "The joint hardly moves in one direction: friction cannot be told from an offset. Record both directions."


def terms_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    add_source_options(parser, "what was measured, or a recording of a serial robot with its load")
    text = "use only terms of this kind (repeatable; default: all)"
    repeatable(parser, "--kind", "kinds", None, text, choices=KINDS)
    add_out(parser, "file to write the models to")
    add_check_option(parser)
    text = "fit without the last part of every recording (0.4: the last 40 %%) and judge the models on it"
    parser.add_argument("--hold-out", metavar="PART", type=float, help=text)
    text = "N-fold cross-validation: judge the models on each of N parts, selected and fitted without it"
    parser.add_argument("--in-turn", metavar="N", type=int, help=f"{text} (N times the work)")


def run_terms(options: argparse.Namespace) -> Answer:
    """Select the terms of every joint and write the models."""
    from calibration.terms.model import write_term_file
    from calibration.terms.selection import select_terms

    require_place(options.out)
    if options.hold_out is not None and not 0.0 < options.hold_out < 1.0:
        raise ConfigurationError(f"--hold-out = {options.hold_out:g}: must be a number between 0 and 1.")
    if options.in_turn is not None and not _PARTS[0] <= options.in_turn <= _PARTS[1]:
        raise ConfigurationError(f"--in-turn = {options.in_turn}: must be {_PARTS[0]} to {_PARTS[1]} parts.")
    files = {path: _read(options, path) for path in options.data}
    names = list(files[options.data[0]])
    for path, file in files.items():
        if set(file) != set(names):
            raise ConfigurationError(f"{path}: has the joints {', '.join(file)}; others have {', '.join(names)}.")
    joints = {name: [file[name] for file in files.values()] for name in names}
    checks = {path: _read(options, path) for path in options.check}
    for path, file in checks.items():
        if not any(name in joints for name in file):
            raise ConfigurationError(f"{path}: has the joints {', '.join(file)}, none of those of --data.")
    fitted = joints
    if options.hold_out is not None:
        fitted = {name: [one.part(0.0, 1.0 - options.hold_out) for one in seen] for name, seen in joints.items()}
    kinds = tuple(options.kinds) or KINDS
    found: dict[str, Selection] = {}
    with Line() as line:
        for name, seen in fitted.items():
            line.show(f"choosing the terms of {name} ({len(found) + 1} of {len(joints)})")
            found[name] = select_terms(seen, kinds=kinds)
    models = {name: selection.model for name, selection in found.items()}
    sources = [one.source for seen in joints.values() for one in seen]
    write_term_file(options.out, models, vars(provenance("forward selection by blocked cross-validation", sources, "")))
    judged = _judge_all(options, kinds, found, joints, fitted, checks)
    lines, objects = [], []
    for name, selection in found.items():
        warnings = [] if any(one.both_ways for one in fitted[name]) else [_ONE_WAY]
        objects.append({**_as_object(name, selection, judged[name]), "warnings": warnings})
        lines += [*_describe(name, selection, judged[name]), *(f"  warning: {warning}" for warning in warnings)]
    result = {"out": str(options.out), "joints": objects}
    return Answer(result, "\n".join([*lines, "", f"Models: {options.out}"]))


def _read(options: argparse.Namespace, path: str) -> dict[str, JointRecording]:
    return {one.joint: one for one in measured(options, path)}


def _judge_all(
    options: argparse.Namespace,
    permitted: Sequence[str],
    found: dict[str, Selection],
    joints: dict[str, list[JointRecording]],
    fitted: dict[str, list[JointRecording]],
    checks: dict[str, dict[str, JointRecording]],
) -> dict[str, _Judged]:
    """Return the errors of every kind of model, by joint and validation data."""
    from calibration.terms.selection import compare, compare_in_turn, fit_kinds

    judged: dict[str, _Judged] = {}
    with Line() as line:
        for name, selection in found.items():
            line.show(f"judging the models of {name} ({len(judged) + 1} of {len(found)})")
            others = {path: file[name] for path, file in checks.items() if name in file}
            if options.hold_out is not None:
                for path, one in zip(options.data, joints[name], strict=True):
                    others[f"{path}, the last {options.hold_out:.0%}"] = one.part(1.0 - options.hold_out, 1.0)
            kinds = fit_kinds(fitted[name], permitted, selection) if others else None
            judged[name] = (
                {} if kinds is None else {place: compare([kinds], [other]) for place, other in others.items()}
            )
            if options.in_turn is not None:
                place = f"each of {options.in_turn} parts, left out in turn"
                judged[name][place] = compare_in_turn(fitted[name], permitted, options.in_turn)
    return judged


def _as_object(name: str, selection: Selection, judged: _Judged) -> dict[str, Any]:
    from calibration.terms.model import model_table

    def of_kind(one: Compared) -> dict[str, Any]:
        ratio = one.ratio and dict(zip(("value", "low", "high"), one.ratio, strict=True))
        return {**vars(one.error), "ratio_to_first": ratio, "note": one.note}

    checks = {
        place: {**vars(_chosen(kinds).error), "kinds": {one.kind: of_kind(one) for one in kinds}}
        for place, kinds in judged.items()
    }
    return {
        "name": name,
        **model_table(selection.model),
        "cross_validated": vars(selection.score),
        "condition_number": selection.condition,
        "checks": checks,
    }


def _describe(name: str, selection: Selection, judged: _Judged) -> list[str]:
    from calibration.terms.model import unit_key

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
    from calibration.terms.selection import LATE

    return [one for one in kinds if one.kind != LATE][-1]


def _percent(error: ErrorEstimate) -> str:
    return f"{error.value:.1%} ({error.low:.1%} to {error.high:.1%})"


# --- comparison -------------------------------------------------------------------------------------------------------

_HEAD = ("kind", "rms error / rms torque", "by that of the first", "expected by cross-validation")


def table(kinds: Sequence[Compared]) -> list[str]:
    """Return the lines of a table with one row for each kind of model."""
    rows = [_HEAD]
    for one in kinds:
        error, score = one.error, one.cross_validated
        rows.append(
            (
                one.kind,
                f"{error.value:.3f} [{error.low:.3f}, {error.high:.3f}]",
                "" if one.ratio is None else "{:.2f} [{:.2f}, {:.2f}]".format(*one.ratio),
                "" if score is None else f"{score.value:.3f} [{score.low:.3f}, {score.high:.3f}]",
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    notes = ["", *(one.note for one in kinds)]
    return [
        "    " + "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=True)), note]).rstrip()
        for row, note in zip(rows, notes, strict=True)
    ]
