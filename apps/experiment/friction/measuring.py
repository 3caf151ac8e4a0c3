"""Measurement of the device's friction before a session, as in ``haptics calibrate friction``."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apps.experiment.friction.changes import Change, changes
from calibration.identification import AUTOMATIC
from calibration.motions import Mover
from calibration.motions.handle_motion import HandleExcitation
from calibration.parameter_files import read_parameter_file, write_parameter_file
from calibration.parameters import JointParameters, ParameterFile
from devices import has_simulated_hand
from haptics.errors import ConfigurationError, DeviceFault
from haptics.reading import sha256_of

if TYPE_CHECKING:
    from apps.experiment.design import Design
    from calibration.data.joint_recording import JointRecording
    from calibration.identification import IdentificationOptions

Progress = Callable[[float], None]
"""Callback with the elapsed time [s]."""


def mover_of(design: Design, *, live: bool) -> Mover:
    """Return the mover of the session's device, without a hand at the handle and without compensation."""
    config = design.session
    settings = {key: value for key, value in config.device_settings.items() if key not in _NOT_MEANT}
    if has_simulated_hand(config.device, settings):
        settings["hand"] = _NOBODY
    mover = Mover.of(config.device, settings, live=live)
    return dataclasses.replace(mover, rate=config.session.rate, real_time=config.servo)


_NOT_MEANT = ("hand", "friction_parameters", "compensation")

_NOBODY = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]]}
"""Zero hand force for a virtual or emulated device."""


def duration(design: Design) -> float:
    """Return the duration of the measurement [s].

    Raises
    ------
    ConfigurationError
        If the device cannot be measured in this way, or its workspace is too small for the motions.
    """
    mover = mover_of(design, live=False)
    excitation = HandleExcitation(design.friction.motions)
    excitation.require(mover)
    return excitation.extent(mover)[0]


def measure(design: Design, recording: Path, out: Path, *, live: bool, progress: Progress) -> ParameterFile:
    """Move the device, identify its friction and write the parameter file.

    Parameters
    ----------
    design : Design
        Design of the experiment.
    recording : Path
        Folder of the recording.
    out : Path
        Parameter file, which is replaced.
    live : bool
        Whether to run in real time.
    progress : callable
        Callback with the elapsed time [s].

    Raises
    ------
    HapticError
        The error that stopped the measurement. The recording is kept.
    """
    from apps.calibrate.friction import METHOD, options_for_device
    from apps.calibrate.results import provenance
    from apps.session.record import made_by
    from calibration.friction import FitSettings
    from calibration.identification import IdentificationOptions

    joints = HandleExcitation(design.friction.motions).run(mover_of(design, live=live), recording, made_by(), progress)
    models = _models(design)
    found = []
    for name, rounds in joints.items():
        wishes = IdentificationOptions(models.get(name, IdentificationOptions().model), settings=FitSettings())
        found.append(_identified(rounds, options_for_device(wishes, joints)))
    sources = [one.source for rounds in joints.values() for one in rounds]
    file = ParameterFile(provenance(METHOD.format(loss=FitSettings().loss), sources, ""), tuple(found))
    require_known(file.joints, recording)
    write_parameter_file(out, file)
    return file


def _identified(rounds: Sequence[JointRecording], wishes: IdentificationOptions) -> JointParameters:
    """Return the friction of an axis.

    If the best model is too uncertain, fit the simplest model.
    """
    from calibration.identification import identify

    found = identify(rounds, wishes).parameters()
    if _doubt(found) > MOST_DOUBT and wishes.model == AUTOMATIC:
        return identify(rounds, dataclasses.replace(wishes, model=_SIMPLEST)).parameters()
    return found


def _doubt(joint: JointParameters) -> float:
    """Return the largest half-width of the intervals of the friction forces [N]."""
    friction = joint.known_friction()
    halves = [0.5 * (high - low) for name, (low, high) in friction.intervals.items() if name.startswith(_FORCES)]
    return max(halves, default=0.0)


def require_known(joints: Sequence[JointParameters], recording: Path) -> None:
    """Raise if the friction is too uncertain to be compensated."""
    for joint in joints:
        if _doubt(joint) > MOST_DOUBT:
            warnings = " ".join(joint.known_friction().warnings)
            raise DeviceFault(
                f"the device's own friction along {joint.name} was not found: it may be another by {_doubt(joint):.2g} "
                f"N. {warnings} See that nobody held the handle and that the machine is quiet (haptics doctor); the "
                f"motion is in {recording}. Resume the session to measure anew."
            )


MOST_DOUBT = 0.2
"""Largest acceptable uncertainty of a friction level [N]."""

_SIMPLEST = "coulomb-viscous"
_FORCES = ("coulomb", "static")


def _models(design: Design) -> dict[str, str]:
    """Return the model of each axis in the earlier file, which is fitted again for the comparison."""
    earlier = _earlier(design)
    joints = earlier.joints if earlier else ()
    return {joint.name: joint.friction.model for joint in joints if joint.friction is not None}


def _earlier(design: Design) -> ParameterFile | None:
    named = design.session.device_settings.get("friction_parameters")
    return read_parameter_file(named) if named else None


def facts_of(design: Design, file: ParameterFile, out: Path, recording: str) -> dict[str, Any]:
    """Return the journal entry of a measurement, with the file and the changes from the earlier one."""
    earlier = _earlier(design)
    found: list[Change] = changes(earlier, file) if earlier else []
    return {
        "file": out.name,
        "sha256": sha256_of(out),
        "recording": recording,
        "levels": {joint.name: dict(joint.friction.values) for joint in file.joints if joint.friction is not None},
        "earlier_sha256": design.session.friction_file_hash,
        "changes": [one.as_dict() for one in found],
        "words": words(found, compared=earlier is not None) + _doubts(file),
    }


def _doubts(file: ParameterFile) -> str:
    """Return the warnings about a measurement as text, empty without warnings."""
    found = [f"{joint.name}: {one}" for joint in file.joints for one in joint.known_friction().warnings]
    return f" It has its doubts: {' '.join(found)}" if found else ""


def words(found: list[Change], *, compared: bool) -> str:
    """Return the result of a measurement as text for the experimenter."""
    if not compared:
        return "The device's own friction was measured; there is no earlier file to compare it with."
    if not found:
        return "The device's own friction was measured; the earlier file has no intervals to compare it with."
    beyond = [one.words for one in found if one.beyond]
    if not beyond:
        return "The device's own friction was measured; it has not changed by more than its interval."
    return f"The device's own friction has changed: {'; '.join(beyond)}. What was measured now is compensated."


def require_measurable(design: Design) -> None:
    """Raise `ConfigurationError` if the friction of the device cannot be measured in a session."""
    try:
        duration(design)
        _earlier(design)
    except ConfigurationError as error:
        raise ConfigurationError(f"friction.measure_each_session = true: {error}") from error
