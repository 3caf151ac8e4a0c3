"""Friction of the device, measured before a session as in ``haptics calibrate friction``."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from apps.settings.config import SessionConfig
from calibration.identification import AUTOMATIC
from calibration.motions import Mover
from calibration.motions.excitation import Excitation, HandleExcitation
from calibration.parameters import JointParameters, ParameterFile, read_parameter_file, write_parameter_file
from devices import has_simulated_hand
from haptics.errors import ConfigurationError, DeviceFault
from haptics.files import sha256_of

MOST_DOUBT = 0.2
"""Largest acceptable uncertainty of a friction level [N]."""

_LEVELS = ("coulomb", "static", "viscosity", "offset")
"""Name prefixes of parameters that are friction levels, as opposed to Stribeck velocities."""

_FORCES = ("coulomb", "static")
_SIMPLEST = "coulomb-viscous"

_NO_HAND = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]]}
"""Zero hand force for a virtual or emulated device."""


@dataclass(frozen=True)
class Change:
    """Earlier and current value of a friction parameter.

    Attributes
    ----------
    axis, name : str
        Axis and parameter.
    earlier, now : float
        Values in the SI units of the parameter: force [N] or viscosity [N s/m].
    doubt : float
        Half-width of the 95 % interval of the difference.
    beyond : bool
        Whether the difference is larger than this measurement uncertainty.
    """

    axis: str
    name: str
    earlier: float
    now: float
    doubt: float
    beyond: bool


def changes(earlier: ParameterFile, now: ParameterFile) -> list[Change]:
    """Return the changes of all friction levels for which both measurements have an interval."""
    then = {joint.name: joint.friction for joint in earlier.joints}
    found = []
    for joint in now.joints:
        old, new = then.get(joint.name), joint.friction
        if old is None or new is None:
            continue
        for name in new.values:
            both = name in old.values and name in old.intervals and name in new.intervals
            if both and name.startswith(_LEVELS):
                doubt = math.hypot(*(0.5 * (high - low) for low, high in (old.intervals[name], new.intervals[name])))
                before, after = float(old.values[name]), float(new.values[name])
                found.append(Change(joint.name, name, before, after, doubt, abs(after - before) > doubt))
    return found


def _mover(config: SessionConfig, *, live: bool) -> Mover:
    """Return the mover of the session's device, without a hand at the handle and without compensation."""
    left_out = ("hand", "friction_parameters", "compensation")
    settings = {key: value for key, value in config.device_settings.items() if key not in left_out}
    if has_simulated_hand(config.device, settings):
        settings["hand"] = _NO_HAND
    mover = Mover.of(config.device, settings, live=live)
    return dataclasses.replace(mover, rate=config.session.rate, real_time=config.servo)


def duration(config: SessionConfig, motions: Excitation) -> float:
    """Return the duration of the measurement [s].

    Raises
    ------
    ConfigurationError
        If the device cannot be measured in this way, or its workspace is too small for the motions.
    """
    mover, excitation = _mover(config, live=False), HandleExcitation(motions)
    excitation.require(mover)
    return excitation.extent(mover)[0]


def require_measurable(config: SessionConfig, motions: Excitation) -> None:
    """Raise `ConfigurationError` if the friction of the device cannot be measured in a session."""
    try:
        duration(config, motions)
        _earlier(config)
    except ConfigurationError as error:
        raise ConfigurationError(f"friction.measure_each_session = true: {error}") from error


def measure(
    config: SessionConfig,
    motions: Excitation,
    recording: Path,
    out: Path,
    *,
    live: bool,
    progress: Callable[[float], None],
) -> ParameterFile:
    """Move the device, identify its friction and write the parameter file.

    The model of each axis in the earlier file is fitted again for the comparison. If the best model is too uncertain,
    the simplest model is fitted.

    Parameters
    ----------
    config : SessionConfig
        Session settings of the experiment.
    motions : Excitation
        Motions of the measurement.
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
    from calibration.identification import IdentificationOptions, identify

    joints = HandleExcitation(motions).run(_mover(config, live=live), recording, made_by(), progress)
    earlier = _earlier(config)
    models = {one.name: one.friction.model for one in (earlier.joints if earlier else ()) if one.friction is not None}
    found = []
    for name, rounds in joints.items():
        model = models.get(name, IdentificationOptions().model)
        options = options_for_device(IdentificationOptions(model, settings=FitSettings()), joints)
        parameters = identify(rounds, options).parameters()
        if _doubt(parameters) > MOST_DOUBT and options.model == AUTOMATIC:
            parameters = identify(rounds, dataclasses.replace(options, model=_SIMPLEST)).parameters()
        found.append(parameters)
    sources = [one.source for rounds in joints.values() for one in rounds]
    file = ParameterFile(provenance(METHOD.format(loss=FitSettings().loss), sources, ""), tuple(found))
    require_known(file.joints, recording)
    write_parameter_file(out, file)
    return file


def _doubt(joint: JointParameters) -> float:
    """Return the largest half-width of the intervals of the friction forces [N]."""
    intervals = joint.known_friction().intervals
    return max((0.5 * (high - low) for name, (low, high) in intervals.items() if name.startswith(_FORCES)), default=0.0)


def require_known(joints: Sequence[JointParameters], recording: Path) -> None:
    """Raise if the friction is too uncertain to be compensated."""
    for joint in joints:
        if _doubt(joint) > MOST_DOUBT:
            warnings = " ".join(joint.known_friction().warnings)
            raise DeviceFault(
                f"the friction of the device along {joint.name} was not found: its uncertainty is {_doubt(joint):.2g} "
                f"N. {warnings} Check that no hand held the handle and that the machine is quiet (haptics doctor); the "
                f"motion is in {recording}. Resume the session to measure again."
            )


def _earlier(config: SessionConfig) -> ParameterFile | None:
    named = config.device_settings.get("friction_parameters")
    return read_parameter_file(named) if named else None


def facts_of(config: SessionConfig, file: ParameterFile, out: Path, recording: str) -> dict[str, Any]:
    """Return the journal entry of a measurement, with the file and the changes from the earlier one."""
    earlier = _earlier(config)
    found = changes(earlier, file) if earlier else []
    doubts = [f"{joint.name}: {one}" for joint in file.joints for one in joint.known_friction().warnings]
    return {
        "file": out.name,
        "sha256": sha256_of(out),
        "recording": recording,
        "levels": {joint.name: dict(joint.friction.values) for joint in file.joints if joint.friction is not None},
        "earlier_sha256": config.friction_file_hash,
        "changes": [asdict(one) for one in found],
        "words": words(found, compared=earlier is not None)
        + (f" It has its doubts: {' '.join(doubts)}" if doubts else ""),
    }


def words(found: list[Change], *, compared: bool) -> str:
    """Return the result of a measurement as text for the experimenter."""
    if not compared:
        return "The device's own friction was measured; there is no earlier file to compare it with."
    if not found:
        return "The device's own friction was measured; the earlier file has no intervals to compare it with."
    beyond = []
    for one in found:
        if one.beyond:
            unit = "N s/m" if one.name.startswith("viscosity") else "N"
            beyond.append(
                f"{one.name.replace('_', ' ')} of {one.axis} is {one.now:.3g} {unit} and was {one.earlier:.3g} {unit} "
                f"(a difference of up to {one.doubt:.2g} {unit} may be chance)"
            )
    if not beyond:
        return "The device's own friction was measured; it has not changed by more than its interval."
    return f"The device's own friction has changed: {'; '.join(beyond)}. What was measured now is compensated."
