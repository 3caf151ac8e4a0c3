"""Command ``haptics calibrate check``: validate identified parameters on another recording."""

from __future__ import annotations

import argparse
from pathlib import Path

from apps.calibrate.options import add_data_options, identification_options
from apps.shared.answer import Answer
from haptics.errors import ConfigurationError


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.add_argument("--parameters", metavar="FILE.toml", type=Path, required=True, help="parameters to check")
    add_data_options(parser, "a recording that the parameters were not identified from")


def run(options: argparse.Namespace) -> Answer:
    """Compare predicted and measured torques."""
    from apps.calibrate.outcome import check_file
    from apps.calibrate.reports.results import describe_error, names_of
    from calibration.parameters.files import read_parameter_file
    from calibration.terms.files import holds_terms

    if holds_terms(options.parameters):
        return _check_terms(options)
    file = read_parameter_file(options.parameters)
    if not file.joints:
        raise ConfigurationError(f"{options.parameters}: has no table [joint.NAME], so there is nothing to check.")
    wishes = identification_options(options)
    files = {
        name: check_file(options, path, file.joints, wishes, file.coupling)
        for path, name in zip(options.data, names_of(options.data), strict=True)
    }
    rotary = {joint.name: joint.rotary for joint in file.joints}
    lines = [
        f"{name}, {joint}: {describe_error(error, rotary[joint])}"
        for name, errors in files.items()
        for joint, error in errors.items()
    ]
    result = {
        "parameters": str(options.parameters),
        "relative_errors": {
            name: {joint: error.relative for joint, error in errors.items()} for name, errors in files.items()
        },
        "relative_errors_own_offset": {
            name: {joint: error.relative_own_offset for joint, error in errors.items()}
            for name, errors in files.items()
        },
    }
    return Answer(result, "\n".join(lines))


def _check_terms(options: argparse.Namespace) -> Answer:
    """Validate term models, as written by ``haptics calibrate terms``."""
    from apps.calibrate.options import parse_columns
    from apps.calibrate.reports.results import effort_word, names_of
    from calibration.data.reading import read_joint_recordings
    from calibration.terms.files import read_term_file

    if options.smooth is not None or options.inertia:
        raise ConfigurationError("--smooth, --inertia: models made of terms need neither; leave them out.")
    models = read_term_file(options.parameters)
    files: dict[str, dict[str, float]] = {}
    for path, name in zip(options.data, names_of(options.data), strict=True):
        seen = {one.joint: one for one in read_joint_recordings(path, parse_columns(options.columns), options.joints)}
        if not seen.keys() & models.keys():
            raise ConfigurationError(
                f"{path}: has the joints {', '.join(seen)}; the models are of {', '.join(models)}."
            )
        files[name] = {joint: models[joint].error(one).value for joint, one in seen.items() if joint in models}
    lines = [
        f"{name}, {joint}: residual {100.0 * error:.3g} % of the {effort_word(models[joint].rotary)} (rms)"
        for name, errors in files.items()
        for joint, error in errors.items()
    ]
    return Answer({"parameters": str(options.parameters), "relative_errors": files}, "\n".join(lines))
