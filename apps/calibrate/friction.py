"""Command ``haptics calibrate friction``: identify friction from recordings or with a device."""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from typing import TYPE_CHECKING

from apps.calibrate.law import add_law_options, require_law, write_law
from apps.calibrate.moving import add_device_options, measure
from apps.calibrate.options import (
    AUTOMATIC,
    add_data_options,
    add_fit_options,
    add_result_options,
    by_joint,
    chosen,
    identification_options,
)
from apps.calibrate.places import require_place
from apps.shared.answer import Answer
from apps.shared.progress import Line
from haptics.errors import ConfigurationError

if TYPE_CHECKING:
    from calibration.data.joint_recording import JointRecording
    from calibration.identification import IdentificationOptions, IdentifiedFriction


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    add_data_options(parser, "recording of joints moved from outside, with their motors off", required=False)
    add_device_options(parser)
    add_result_options(parser)
    add_fit_options(parser)
    add_law_options(parser)


def run(options: argparse.Namespace) -> Answer:
    """Identify friction, from files or on a device, and write parameters and report."""
    from apps.calibrate.outcome import deliver

    if bool(options.data) == bool(options.device):
        raise ConfigurationError("give either --data FILE (a recording) or --device NAME (measure on a device).")
    require_places(options)
    wishes = identification_options(options)
    if options.device:
        joints = chosen(measure(options), options.joints)
        wishes = options_for_device(wishes, joints)
    else:
        joints = by_joint(options)
    require_law(options, joints)
    identified = identify_all(joints, wishes)
    answer = deliver(options, identified, wishes)
    return answer if options.law is None else write_law(options, identified[0], answer)


def options_for_device(wishes: IdentificationOptions, joints: dict[str, list[JointRecording]]) -> IdentificationOptions:
    """Return the settings for motions made by the device itself, without a hand.

    Velocities are derived from smoothed positions, if available, and the moving mass is identified.
    """
    from calibration.friction import FitSettings

    settings = wishes.settings or FitSettings()
    positions = any(one.position is not None for rounds in joints.values() for one in rounds)
    return replace(
        wishes,
        smooth=AUTOMATIC if wishes.smooth is None and positions else wishes.smooth,
        settings=replace(settings, fit_inertia=wishes.inertia == 0.0, common_offset=True),
    )


def require_places(options: argparse.Namespace) -> None:
    """Check that the result files are writable and that no path is used twice.

    Raises
    ------
    ConfigurationError
        If a file cannot be written, or is also an input or another result.
    """
    taken = {os.path.realpath(path) for path in options.data}
    given = vars(options)
    for option in ("--out", "--report", "--law", "--law-hand"):
        path = given.get(option[2:].replace("-", "_"))
        if path is None:
            continue
        require_place(path, option)
        place = os.path.realpath(path)
        if place in taken:
            raise ConfigurationError(
                f"{option} = {str(path)!r}: is already used for another file; name a different one."
            )
        taken.add(place)


def identify_all(joints: dict[str, list[JointRecording]], wishes: IdentificationOptions) -> list[IdentifiedFriction]:
    """Identify the friction of all joints and show the progress."""
    from calibration.identification import identify

    found: list[IdentifiedFriction] = []
    with Line() as line:
        for name, recordings in joints.items():
            line.show(f"identifying {name} ({len(found) + 1} of {len(joints)})")
            found.append(identify(recordings, wishes))
    return found
