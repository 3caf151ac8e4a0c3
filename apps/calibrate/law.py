"""Option ``--law`` of ``haptics calibrate friction``: write a session file that renders the friction."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from apps.shared.answer import Answer
from haptics.errors import ConfigurationError
from haptics.files import write_atomically

if TYPE_CHECKING:
    from calibration.data.joint_recording import JointRecording
    from calibration.identification import IdentifiedFriction


def add_law_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the session file."""
    parser.add_argument(
        "--law",
        metavar="FILE.toml",
        type=Path,
        help="session file to write, which renders the friction: haptics run --config FILE.toml",
    )
    parser.add_argument(
        "--law-hand",
        metavar="FILE.csv",
        type=Path,
        help="recorded motion to write, for a virtual device: haptics run --config FILE.toml --hand FILE.csv",
    )
    parser.add_argument(
        "--lever-arm", metavar="M", type=float, help="distance from the axis at which the friction is felt [m]"
    )
    parser.add_argument("--scale", metavar="S", type=float, default=1.0, help="factor on the rendered forces (1)")


def require_law(options: argparse.Namespace, joints: dict[str, list[JointRecording]]) -> None:
    """Validate the options of the session file before the identification.

    Raises
    ------
    ConfigurationError
        If there are several joints, the lever arm does not suit the joint, or an option needs ``--law``.
    """
    from calibration.rendering import Conversion

    if options.law is None:
        for option, given in (("--law-hand", options.law_hand), ("--lever-arm", options.lever_arm)):
            if given is not None:
                raise ConfigurationError(f"{option} belongs to --law FILE.toml, the session file; add it.")
        return
    if len(joints) > 1:
        raise ConfigurationError(
            f"--law renders one joint, and the data have {', '.join(joints)}: choose one with --joint NAME."
        )
    (recordings,) = joints.values()
    Conversion.of(recordings[0].rotary, options.lever_arm, options.scale)


def write_law(options: argparse.Namespace, identified: IdentifiedFriction, answer: Answer) -> Answer:
    """Write the session file and the recorded motion, and add both to the answer."""
    from calibration.rendering import Conversion, felt_friction, format_hand, format_session

    joint = identified.parameters()
    conversion = Conversion.of(joint.rotary, options.lever_arm, options.scale)
    recordings = identified.recordings
    velocity = np.concatenate([recording.smooth_velocity for recording in recordings])
    felt = felt_friction(joint, conversion, velocity, [recording.source for recording in recordings])
    write_atomically(options.law, format_session(felt, joint))
    lines = [f"Session:    {options.law} (haptics run --config {options.law})"]
    if options.law_hand is not None:
        write_atomically(options.law_hand, format_hand(recordings[0], conversion))
        lines.append(f"Motion:     {options.law_hand} (--hand {options.law_hand})")
    lines += [f"  left out: {text}" for text in felt.left_out]
    lines += [f"  approximated: {text}" for text in felt.approximated]
    lines += [f"  warning: {text}" for text in felt.warnings]
    hand = None if options.law_hand is None else str(options.law_hand)
    result = {**answer.result, "law": str(options.law), "law_hand": hand, "law_warnings": list(felt.warnings)}
    return replace(answer, result=result, text="\n".join([answer.text, *lines]))
