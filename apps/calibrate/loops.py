"""Command ``haptics calibrate loops``: compare measured and rendered hysteresis loop of a joint."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from apps.calibrate.options import add_out, add_source_options, by_joint, require_place
from apps.calibrate.results import units_of
from apps.shared.command import Answer
from haptics.errors import ConfigurationError
from haptics.files import read_toml

if TYPE_CHECKING:
    from calibration.data.joint_recording import JointRecording
    from calibration.hysteresis import Comparison, Motion
    from calibration.rendering import Conversion
    from haptics.recording.recording import Recording


def loops_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    add_source_options(parser, "recording of the joint")
    text = "recording of the session that renders the friction"
    parser.add_argument("--recording", metavar="FOLDER", type=Path, required=True, help=text)
    text = "session file of haptics calibrate friction --law"
    parser.add_argument("--law", metavar="FILE.toml", type=Path, required=True, help=text)
    add_out(parser, "picture to write, PNG or SVG", "FILE.png")


def run_loops(options: argparse.Namespace) -> Answer:
    """Compare the measured loop with the loop of the session that renders it."""
    from calibration.hysteresis import Motion, compare_loops
    from calibration.rendering import read_provenance
    from haptics.recording.recording import Recording

    require_place(options.out)
    if options.out.suffix.lower() not in {".png", ".svg"}:
        raise ConfigurationError(f"--out = {str(options.out)!r}: must end in .png or .svg.")
    name, conversion, left_out = read_provenance(
        read_toml(options.law, remedy="haptics calibrate friction --law makes such a file"), options.law
    )
    joints = by_joint(options)
    if len(joints) > 1 and name not in joints:
        raise ConfigurationError(f"--data has the joints {', '.join(joints)}, not {name!r}: choose one with --joint.")
    recordings = joints.get(name) or next(iter(joints.values()))
    if recordings[0].rotary != conversion.rotary:
        raise recordings[0].error(f"is not of the kind of joint that {options.law} was made from")
    parts = [_measured(recording, left_out) for recording in recordings]
    measured = Motion(*(np.concatenate([getattr(one, key) for one in parts]) for key in Motion.__dataclass_fields__))
    rendered = _rendered(Recording(options.recording), conversion, parts[0])
    found = compare_loops(measured, rendered)
    _draw(options.out, found, measured, rendered, conversion.rotary)
    effort = units_of(conversion.rotary)[2]
    percent = 100.0 * found.difference
    result = {
        "joint": recordings[0].joint,
        "difference_percent_of_level": percent,
        "level": found.level,
        "loop_area_measured": found.area_measured,
        "loop_area_rendered": found.area_rendered,
        "picture": str(options.out),
    }
    text = (
        f"{recordings[0].joint}: the loops differ by {percent:.1f} % of the level of {found.level:.3g} {effort} (rms)\n"
        f"  enclosed: {found.area_measured:.4g} J measured, {found.area_rendered:.4g} J rendered\n"
        f"Picture: {options.out}"
    )
    return Answer(result, text)


def _measured(recording: JointRecording, left_out: dict[str, float]) -> Motion:
    """Return the measured friction without offset, position harmonics and inertial load."""
    from calibration.hysteresis import Motion
    from calibration.rendering import joint_position

    place = joint_position(recording)
    friction = recording.friction - left_out.get("offset", 0.0)
    for number in (1, 2):
        friction = friction - left_out.get(f"harmonic_{number}_cos", 0.0) * np.cos(number * place)
        friction = friction - left_out.get(f"harmonic_{number}_sin", 0.0) * np.sin(number * place)
    if left_out.get("inertia"):
        friction = friction - left_out["inertia"] * recording.known_acceleration
    return Motion(place, recording.smooth_velocity, friction)


def _rendered(recording: Recording, conversion: Conversion, measured: Motion) -> Motion:
    """Return the rendered friction as a function of the handle's position, in units of the joint.

    The centre of the workspace corresponds to the middle of the joint's motion, as in the recorded hand motion.
    """
    from calibration.hysteresis import Motion
    from calibration.rendering import middle

    rows, device = recording.read(columns=("position", "velocity", "friction_force")), recording.metadata["device"]
    usable = np.isfinite(rows["position"]).all(axis=1) & np.isfinite(rows["friction_force"]).all(axis=1)
    if not usable.any():
        raise ConfigurationError(f"{recording.folder}: has no tick with a position and a friction force.")
    centre = 0.5 * (device["workspace_min"][0] + device["workspace_max"][0])
    position = (rows["position"][usable, 0] - centre) / conversion.lever_arm + middle(measured.position)
    velocity = rows["velocity"][usable, 0] / conversion.lever_arm
    return Motion(position, velocity, rows["friction_force"][usable, 0] / conversion.force)


def _draw(path: Path, found: Comparison, measured: Motion, rendered: Motion, rotary: bool) -> None:
    from apps.calibrate.report import dots, legend
    from apps.reproduce.style import BLUE, GREEN, ORANGE, PALE, dress
    from apps.shared.html import new_figure, svg

    figure = new_figure(8.0, 5.2)
    axes = figure.add_subplot()
    place, _, effort = units_of(rotary)
    dots(axes, measured.position, measured.friction, PALE, "measured, all samples")
    dots(axes, rendered.position, rendered.friction, GREEN, "rendered, all ticks")
    for loop, colour, label in ((found.measured, BLUE, "measured"), (found.rendered, ORANGE, "rendered")):
        axes.plot(loop.position, loop.forward, color=colour, linewidth=2.0, label=f"{label}, mean branches")
        axes.plot(loop.position, loop.backward, color=colour, linewidth=2.0)
    dress(
        axes,
        f"position [{place}]",
        f"friction [{effort}]",
        f"the loops differ by {100.0 * found.difference:.1f} % of the level (rms)",
    )
    legend(axes, "center")
    if path.suffix.lower() == ".svg":
        path.write_text(svg(figure), encoding="utf-8")
    else:
        figure.savefig(path, format="png")
