"""Options shared by the calibrations from data, checks of output paths, and the conversion of option values."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from haptics.errors import ConfigurationError
from haptics.settings import unknown_name

if TYPE_CHECKING:
    from calibration.coupled import Coupling
    from calibration.data.joint_recording import JointRecording
    from calibration.identification import IdentificationOptions

AUTOMATIC = "auto"
_LOSSES = ("square", "huber", "tukey")


def add_source_options(parser: argparse.ArgumentParser, content: str, *, required: bool = True) -> None:
    """Add the options for files, columns and joints to the parser."""
    parser.add_argument(
        "--data",
        metavar="FILE",
        action="append",
        default=None if required else [],
        required=required,
        help=f"{content}: CSV or NPZ with columns such as time_s, velocity_rad_per_s, torque_nm, or the folder of a "
        "recording (repeatable)",
    )
    parser.add_argument(
        "--column",
        dest="columns",
        metavar="OURS=THEIRS",
        action="append",
        default=[],
        help="a column that has another name in the file, such as torque_nm=load or torque_nm=loads:0 (repeatable)",
    )
    parser.add_argument(
        "--joint", dest="joints", metavar="NAME", action="append", default=[], help=("use only this joint")
    )


def add_data_options(parser: argparse.ArgumentParser, content: str, *, required: bool = True) -> None:
    """Add the options for the input data and their preprocessing."""
    add_source_options(parser, content, required=required)
    parser.add_argument(
        "--smooth",
        metavar="HZ",
        help=(
            "cut-off frequency of a zero-phase filter that recomputes velocities, from positions if available; or auto"
        ),
    )
    parser.add_argument(
        "--inertia",
        metavar="I",
        type=float,
        default=0.0,
        help="inertia on the joint's side of the sensor, kg m^2 or kg; needs accelerations",
    )


def add_result_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for the output files."""
    parser.add_argument("--out", metavar="FILE.toml", type=Path, required=True, help="parameter file to write")
    parser.add_argument("--report", metavar="FILE.html", type=Path, help="report to write, a page for each joint")
    parser.add_argument(
        "--identity", metavar="TEXT", default="", help="name of the measured joint, if the files do not contain it"
    )


def add_fit_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the friction fit."""
    parser.add_argument(
        "--model", metavar="NAME", default=AUTOMATIC, help="friction model; auto: the one that predicts best (default)"
    )
    parser.add_argument("--fit-inertia", action="store_true", help="also identify the inertia; needs accelerations")
    parser.add_argument(
        "--loss", choices=_LOSSES, default=_LOSSES[0], help="huber and tukey are robust against outliers (square)"
    )
    parser.add_argument("--dead-band", metavar="W", type=float, help="exclude slower samples, SI units")
    parser.add_argument(
        "--common-offset",
        action="store_true",
        help=(
            "use the same offset for all recordings; by default each recording has a separate offset, because "
            "sensors drift"
        ),
    )
    parser.add_argument(
        "--unbounded",
        action="store_true",
        help=(
            "allow negative levels and viscosities, and static levels below the Coulomb level, in the "
            "comparison of models"
        ),
    )
    parser.add_argument("--physical", action="store_true", help="no effect: this is the default")
    add_check_option(parser)


def add_check_option(parser: argparse.ArgumentParser) -> None:
    """Add the option for validation recordings."""
    parser.add_argument(
        "--check",
        metavar="FILE",
        action="append",
        default=[],
        help="validation recording: report the error of the predicted torques on it (repeatable)",
    )


def identification_options(options: argparse.Namespace) -> IdentificationOptions:
    """Return the settings of the friction identification.

    Raises
    ------
    ConfigurationError
        If an option is invalid.
    """
    from calibration.friction import FitSettings
    from calibration.identification import IdentificationOptions

    smooth: float | str | None = options.smooth
    if smooth not in {None, AUTOMATIC}:
        try:
            smooth = float(str(smooth))
        except ValueError:
            smooth = 0.0
        if not 0.0 < smooth < 1e6:
            raise ConfigurationError(f"--smooth = {options.smooth!r}: must be a frequency greater than 0 Hz, or auto.")
    if vars(options).get("unbounded") and vars(options).get("physical"):
        raise ConfigurationError("--unbounded and --physical contradict each other: give one of them.")
    if not 0.0 <= options.inertia < 1e6:
        raise ConfigurationError(f"--inertia = {options.inertia!r}: must be a finite number of at least 0.")
    given = vars(options)
    settings = FitSettings(
        dead_band=given.get("dead_band"),
        loss=given.get("loss", _LOSSES[0]),
        unbounded=given.get("unbounded", False),
        common_offset=given.get("common_offset", False),
        fit_inertia=given.get("fit_inertia", False),
    )
    return IdentificationOptions(given.get("model", AUTOMATIC), smooth, options.inertia, settings)


def measured(options: argparse.Namespace, path: str) -> tuple[JointRecording, ...]:
    """Return the joint recordings in one file.

    Raises
    ------
    ConfigurationError
        If the file cannot be used.
    """
    from calibration.data.reading import read_joint_recordings

    return read_joint_recordings(path, parse_columns(options.columns), tuple(options.joints))


def recordings(options: argparse.Namespace, path: str) -> dict[str, list[JointRecording]]:
    """Return the recordings of each joint in one file.

    There is one recording for each joint, or one for each round of a motion made by ``haptics calibrate --device``.

    Raises
    ------
    ConfigurationError
        If the file cannot be used.
    """
    if Path(path).is_dir():
        from calibration.motions.arm import is_of_joints, recorded_joints
        from calibration.motions.handle_motion import is_excitation, recorded_axes
        from haptics.recording.recording import Recording

        recording = Recording(Path(path))
        if is_of_joints(recording):
            return chosen(recorded_joints(recording), options.joints)
        if is_excitation(recording):
            return chosen(recorded_axes(Path(path)), options.joints)
    return {one.joint: [one] for one in measured(options, path)}


def chosen(joints: dict[str, list[JointRecording]], names: Sequence[str]) -> dict[str, list[JointRecording]]:
    """Return the named joints, or all joints if no name is given.

    Raises
    ------
    ConfigurationError
        If a joint is unknown.
    """
    for name in names:
        if name not in joints:
            raise unknown_name("joint", name, joints)
    return {name: joints[name] for name in names or joints}


def parse_columns(assignments: list[str]) -> dict[str, str]:
    """Parse ``OURS=THEIRS`` into a mapping from standard column names to those in the file.

    Raises
    ------
    ConfigurationError
        If an assignment is malformed.
    """
    columns = {}
    for assignment in assignments:
        ours, equals, theirs = assignment.partition("=")
        if not equals or not theirs.strip():
            raise ConfigurationError(f"--column {assignment}: must be OURS=THEIRS, for instance torque_nm=load.")
        columns[ours.strip()] = theirs.strip()
    return columns


def by_joint(options: argparse.Namespace) -> dict[str, list[JointRecording]]:
    """Return the recordings of every joint from all files of ``--data``.

    Raises
    ------
    ConfigurationError
        If a file cannot be used, or if the files differ in their joints or joint types.
    """
    files = [recordings(options, path) for path in options.data]
    names = list(files[0])
    for path, file in zip(options.data, files, strict=True):
        if set(file) != set(names):
            raise ConfigurationError(f"{path}: has the joints {', '.join(file)}; others have {', '.join(names)}.")
    joints = {name: [one for file in files for one in file[name]] for name in names}
    for same in joints.values():
        different = next((one for one in same if one.rotary != same[0].rotary), None)
        if different is not None:
            raise different.error("slides in one file and turns in another")
    return joints


def behind(
    coupling: Coupling, joints: Sequence[JointRecording], identification: IdentificationOptions
) -> tuple[tuple[JointRecording, ...], IdentificationOptions]:
    """Return the recordings of the motors behind a coupling, and the remaining settings.

    The joints are smoothed before the conversion if smoothing was chosen, because the motor recordings have gaps.

    Raises
    ------
    ConfigurationError
        As `calibration.coupled.decouple`.
    """
    from calibration.coupled import decouple
    from calibration.identification import smoothed

    return decouple([smoothed(joint, identification.smooth) for joint in joints], coupling), replace(
        identification, smooth=None
    )


def require_place(out: Path, option: str = "--out") -> None:
    """Check that a file can be written or replaced, before a long measurement starts.

    Raises
    ------
    ConfigurationError
        If the file cannot be written.
    """
    folder = os.path.dirname(os.path.realpath(out))
    mine = os.access(out, os.W_OK) and out.is_file() if out.exists() else True
    if not (mine and os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)):
        raise ConfigurationError(f"{option} = {str(out)!r}: cannot be written; name a file in a folder that can be.")
