"""Command ``haptics calibrate coupled``: friction of motors that drive several joints together.

Each motor is identified from the part of the recording in which it moves alone.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING

from apps.calibrate.friction import identify_all, require_places
from apps.calibrate.options import (
    add_data_options,
    add_fit_options,
    add_result_options,
    behind,
    by_joint,
    identification_options,
)
from apps.shared.answer import Answer
from haptics.errors import ConfigurationError
from haptics.reading import read_toml
from haptics.settings import unknown_name

if TYPE_CHECKING:
    from calibration.coupled import Coupling
    from calibration.data.joint_recording import JointRecording


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.add_argument(
        "--coupling",
        metavar="NAME|FILE.toml",
        required=True,
        help="icub-torso, icub-left-shoulder, icub-right-shoulder, or a file with joints, motors and matrix",
    )
    add_data_options(parser, "recording of all joints while one motor at a time moves and the others are held")
    add_result_options(parser)
    add_fit_options(parser)


def run(options: argparse.Namespace) -> Answer:
    """Identify the friction of motors behind a coupling."""
    from apps.calibrate.outcome import deliver

    require_places(options)
    wishes = identification_options(options)
    coupling = coupling_of(options.coupling)
    joints = by_joint(options)
    motors: dict[str, list[JointRecording]] = {}
    for number in range(len(options.data)):
        found, left = behind(coupling, [recordings[number] for recordings in joints.values()], wishes)
        for motor in found:
            motors.setdefault(motor.joint, []).append(motor)
    in_order = {name: motors[name] for name in coupling.motors if name in motors}
    answer = deliver(options, identify_all(in_order, left), wishes, coupling)
    missing = [name for name in coupling.motors if name not in motors]
    said = f"\nNot identified, because they never moved alone: {', '.join(missing)}" if missing else ""
    return replace(answer, result={**answer.result, "missing": missing}, text=answer.text + said)


def coupling_of(text: str) -> Coupling:
    """Return a coupling by name, or read it from a TOML file.

    Raises
    ------
    ConfigurationError
        If the coupling is unknown or the file is invalid.
    """
    from calibration.coupled import COUPLINGS
    from calibration.parameters.files import read_coupling

    if text in COUPLINGS:
        return COUPLINGS[text]
    if not text.endswith(".toml"):
        raise unknown_name("coupling", text, [*COUPLINGS, "FILE.toml"])
    content = read_toml(text, f"--coupling = {text!r}")
    try:
        return read_coupling(content.get("coupling", content))
    except ConfigurationError as error:
        raise ConfigurationError(f"{text}: {error}") from error
