"""``haptics calibrate check``: how far parameters that were found are from another recording."""

from __future__ import annotations

import argparse
from pathlib import Path

from apps.calibrate.options import add_data_options, wishes_of
from apps.shared.answer import Answer
from haptics.errors import ConfigurationError


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.add_argument("--parameters", metavar="FILE.toml", type=Path, required=True, help="what was found")
    add_data_options(parser, "another recording of the joints")


def run(options: argparse.Namespace) -> Answer:
    """Compare."""
    from apps.calibrate.outcome import check_file
    from apps.calibrate.reports.results import effort_word, names_of
    from calibration.parameters.files import read_parameter_file

    file = read_parameter_file(options.parameters)
    if not file.joints:
        raise ConfigurationError(f"{options.parameters}: has no table [joint.NAME], so nothing that can be checked.")
    wishes = wishes_of(options)
    files = {
        name: check_file(options, path, file.joints, wishes, file.coupling)
        for path, name in zip(options.data, names_of(options.data), strict=True)
    }
    lines = [
        f"{name}, {joint}: residual {100.0 * error:.3g} % of the {effort_word(file.joint(joint).rotary)} (rms)"
        for name, errors in files.items()
        for joint, error in errors.items()
    ]
    return Answer({"parameters": str(options.parameters), "relative_errors": files}, "\n".join(lines))
