"""Options shared by the calibrations, input data, checks of output paths, and measurements that move a device."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import os
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from apps.shared.command import make_folder, repeatable
from apps.shared.display import verdict
from apps.shared.terminal import Line, bar
from haptics.device import Causality
from haptics.errors import ConfigurationError, HapticError
from haptics.settings import build, unknown_name

if TYPE_CHECKING:
    from calibration.coupled import Coupling
    from calibration.data.joint_recording import JointRecording
    from calibration.identification import IdentificationOptions

AUTOMATIC = "auto"
_LOSSES = ("square", "huber", "tukey")


def add_out(parser: argparse.ArgumentParser, text: str, metavar: str = "FILE.toml") -> None:
    """Add the option of the main output file."""
    parser.add_argument("--out", metavar=metavar, type=Path, required=True, help=text)


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
    text = "a column that has another name in the file, such as torque_nm=load or torque_nm=loads:0 (repeatable)"
    repeatable(parser, "--column", "columns", "OURS=THEIRS", text)
    repeatable(parser, "--joint", "joints", "NAME", "use only this joint")


def add_data_options(parser: argparse.ArgumentParser, content: str, *, required: bool = True) -> None:
    """Add the options for the input data and their preprocessing."""
    add_source_options(parser, content, required=required)
    text = "cut-off frequency of a zero-phase filter that recomputes velocities, from positions if available; or auto"
    parser.add_argument("--smooth", metavar="HZ", help=text)
    text = "inertia on the joint's side of the sensor, kg m^2 or kg; needs accelerations"
    parser.add_argument("--inertia", metavar="I", type=float, default=0.0, help=text)


def add_result_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for the output files."""
    add_out(parser, "parameter file to write")
    parser.add_argument("--report", metavar="FILE.html", type=Path, help="report to write, a page for each joint")
    text = "name of the measured joint, if the files do not contain it"
    parser.add_argument("--identity", metavar="TEXT", default="", help=text)


def add_fit_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the friction fit."""
    add, flag = parser.add_argument, "store_true"
    add("--model", metavar="NAME", default=AUTOMATIC, help="friction model; auto: the one that predicts best (default)")
    add("--fit-inertia", action=flag, help="also identify the inertia; needs accelerations")
    add("--loss", choices=_LOSSES, default=_LOSSES[0], help="huber and tukey are robust against outliers (square)")
    add("--dead-band", metavar="W", type=float, help="exclude slower samples, SI units")
    text = (
        "use the same offset for all recordings; by default each recording has a separate offset, because sensors drift"
    )
    add("--common-offset", action=flag, help=text)
    text = (
        "allow negative levels and viscosities, and static levels below the Coulomb level, in the comparison of models"
    )
    add("--unbounded", action=flag, help=text)
    add("--physical", action=flag, help="no effect: this is the default")
    add_check_option(parser)


def add_check_option(parser: argparse.ArgumentParser) -> None:
    """Add the option for validation recordings."""
    text = "validation recording: report the error of the predicted torques on it (repeatable)"
    repeatable(parser, "--check", "check", "FILE", text)


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
    given = vars(options)
    if given.get("unbounded") and given.get("physical"):
        raise ConfigurationError("--unbounded and --physical contradict each other: give one of them.")
    if not 0.0 <= options.inertia < 1e6:
        raise ConfigurationError(f"--inertia = {options.inertia!r}: must be a finite number of at least 0.")
    names = ("dead_band", "loss", "unbounded", "common_offset", "fit_inertia")  # of sub-commands with a fit
    settings = FitSettings(**{name: given[name] for name in names if name in given})
    return IdentificationOptions(given.get("model", AUTOMATIC), smooth, options.inertia, settings)


def measured(options: argparse.Namespace, path: str) -> tuple[JointRecording, ...]:
    """Return the joint recordings in one file.

    Raises
    ------
    ConfigurationError
        If the file cannot be used, or an assignment of a column is malformed.
    """
    from calibration.data.reading import read_joint_recordings

    columns = {}  # names in the file by standard names
    for assignment in options.columns:
        ours, equals, theirs = assignment.partition("=")
        if not equals or not theirs.strip():
            raise ConfigurationError(f"--column {assignment}: must be OURS=THEIRS, for instance torque_nm=load.")
        columns[ours.strip()] = theirs.strip()
    return read_joint_recordings(path, columns, tuple(options.joints))


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
        from calibration.motions.excitation import is_excitation, recorded_axes
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

    moved = [smoothed(joint, identification.smooth) for joint in joints]
    return decouple(moved, coupling), replace(identification, smooth=None)


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


# --- moved devices ----------------------------------------------------------------------------------------------------

if TYPE_CHECKING:
    from calibration.data.joint_recording import JointRecording
    from calibration.motions import Mover
    from calibration.motions.arm import JointExcitation
    from calibration.motions.procedure import Measurement

    Measured = dict[str, list[JointRecording]]

Result = TypeVar("Result")

_NOBODY = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]]}
"""Zero hand force for a virtual or emulated device."""

EXCITATION = "excitation"
"""Name of the settings table of the motions."""


def add_device_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose the device and its settings."""
    text = "measure on this device: its motors move the handle; keep hands off"
    parser.add_argument("--device", metavar="NAME", help=text)
    text = "a setting of the device or of the motions, such as device.emulated=true or excitation.fastest=0.08"
    repeatable(parser, "--set", "assignments", "TABLE.NAME=VALUE", f"{text} (repeatable)")
    text = "folder of the recording"
    parser.add_argument("--record", metavar="FOLDER", type=Path, default=Path("recordings"), help=text)
    text = "wall: real time, in a servo process; off: as fast as possible (default of virtual devices)"
    parser.add_argument("--clock", choices=("wall", "off"), help=text)
    text = "inject a fault into the device, as haptics run does (repeatable)"
    repeatable(parser, "--fault", "faults", "NAME@SECONDS[+DURATION]", text)


def print_message(words: str) -> None:
    """Write a message to standard error."""
    sys.stderr.write(f"{words}\n")
    sys.stderr.flush()


def measure(options: argparse.Namespace) -> Measured:
    """Move the chosen device and return the recordings of its axes (x, y) or joints (1, 2).

    Raises
    ------
    HapticError
        If the device or a setting cannot be used, or if the device fails. The recording is kept.
    """
    from calibration.motions.excitation import Excitation, HandleExcitation

    mover, tables = mover_for(options, EXCITATION)
    table = tables.get(EXCITATION, {})
    if mover.spec.causality is Causality.ADMITTANCE:
        return carry_out(options, mover, joint_excitation(table))
    return carry_out(options, mover, HandleExcitation(build(Excitation, table, EXCITATION)))


def joint_excitation(table: dict[str, Any]) -> JointExcitation:
    """Return the joint excitation described by a settings table.

    Raises
    ------
    ConfigurationError
        If a setting is invalid.
    """
    from calibration.motions.arm import DEFAULT, JointExcitation
    from calibration.motions.excitation import Excitation

    return JointExcitation(build(Excitation, {**asdict(DEFAULT), **table}, EXCITATION))


def carry_out(options: argparse.Namespace, mover: Mover, measurement: Measurement[Result]) -> Result:
    """Announce a measurement, move the device and return the result, with progress.

    If the motion is interrupted, the path of the recording is printed; if its timing was unfit, the reasons.

    Raises
    ------
    HapticError
        If the device cannot be measured, or fails. The recording is kept.
    """
    from apps.session.record import made_by

    measurement.require(mover)
    duration, limits = measurement.extent(mover)
    folder = new_recording(options.record, f"{options.device}_{measurement.table}")
    print_message(
        f"{mover.spec.name} is going to move by itself for {duration:.0f} s, {limits}: let go of the handle and keep "
        f"clear of it. Ctrl-C ends it at any time. Recording to {folder}."
    )
    with orderly_end(), Line() as line:

        def progress(seconds: float) -> None:
            done = min(seconds / duration, 1.0)
            line.show(f"{bar(done)} {done:.0%}")

        try:
            result = measurement.run(mover, folder, made_by(), progress)
        except (HapticError, KeyboardInterrupt):
            if folder.exists():
                print_message(f"The recording is in {folder}.")
            raise
    warn_if_unfit([folder])
    return result


def warn_if_unfit(folders: Iterable[Path]) -> None:
    """Print a warning with the reasons if the timing of a recording was unfit for measurements."""
    from haptics.recording.recording import Recording

    found = [verdict(Recording(folder).metadata.get("certificate", {})) for folder in folders]
    reasons = dict.fromkeys(reason for one in found if one is not None for reason in one.reasons)
    if reasons:
        print_message(
            "warning: the timing of this run was unfit for measurements, so its results and intervals are doubtful: "
            f"{'; '.join(reasons)}. Repeat it while nothing else runs on this computer; haptics doctor finds causes."
        )


def new_recording(folder: Path, name: str) -> Path:
    """Create the folder of the recordings and return the path of a new one, named by the time and `name`.

    Raises
    ------
    ConfigurationError
        If the folder cannot be created.
    """
    make_folder(folder, "--record", "no recording can be made there ({})")
    return folder / f"{datetime.datetime.now().strftime('%Y-%m-%dT%H-%M-%S')}_{name}"


@contextlib.contextmanager
def orderly_end() -> Iterator[None]:
    """Handle SIGTERM and SIGHUP like Ctrl-C, so that the force is removed."""

    def interrupt(number: int, frame: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt

    numbers = (signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, interrupt) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def mover_for(options: argparse.Namespace, *motions: str, choices: str = "") -> tuple[Mover, dict[str, dict[str, Any]]]:
    """Return the mover of the device and the settings tables: ``device`` and those named in `motions`.

    A virtual or emulated device gets zero hand force. The message about a missing ``--device`` names the `choices`.

    Raises
    ------
    ConfigurationError
        If the device is missing or unknown, a setting is invalid, or the file of ``--out`` cannot be written.
    """
    from apps.settings.config import assign, parse_assignment
    from calibration.motions import Mover
    from devices import find_backend, has_simulated_hand, is_virtual
    from devices.faults import parse_fault

    if not options.device:
        raise ConfigurationError(f"--device is missing: name {choices}.")
    require_place(options.out)
    find_backend(options.device)
    tables: dict[str, dict[str, Any]] = {}
    for text in options.assignments:
        table, name, value = parse_assignment(text, ("device", *motions))
        assign(tables, table, name, value)
    settings = tables.get("device", {})
    name = settings.pop("name", options.device)
    if name != options.device:
        raise ConfigurationError(f"device.name = {name!r}: --device says {options.device!r}.")
    if "hand" in settings:
        raise ConfigurationError(
            "device.hand: the handle must be free while the friction of the device is measured; omit this table."
        )
    if settings.get("friction_parameters"):
        raise ConfigurationError("device.friction_parameters: this command writes that file; name it with --out.")
    if has_simulated_hand(name, settings):
        settings["hand"] = _NOBODY
    if options.clock == "off" and not is_virtual(options.device):
        raise ConfigurationError(f"--clock = 'off': {options.device} is no virtual device and runs in real time only.")
    live = None if options.clock is None else options.clock == "wall"
    mover = Mover.of(options.device, settings, [parse_fault(text) for text in options.faults], live=live)
    mover.spec  # noqa: B018 - validates the settings before anything moves
    return mover, tables
