"""Specified (file), delivered (commands) and felt (hand) stimuli of the intervals of a recording.

The felt friction is the work of the hand along its path, less the kinetic energy of the moving mass. If the force of
the hand is known (virtual hand, force sensor), the work is computed from it. Otherwise it is computed from the commands
at the time when the device has carried them out, and from the residual friction of the device by its identified model
and interval. The felt value is the value of the axis, in its unit, for which the ground does this work with all other
settings unchanged. Along a wall, only tangential motion counts, with the recorded normal force.

All intervals of a recording are measured at once. The results are cached in the folder of the recording, in
``stimulus.json``, with the hash of its ticks.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.experiment.journal.folder import OWN_FRICTION_FILE
from devices.common.compensation import CompensationSettings
from devices.common.friction import HandleFriction, read_own_friction
from haptics.device import Causality, DeviceSpec
from haptics.elements.tables import make_element, make_law
from haptics.errors import ConfigurationError, HapticError
from haptics.files import sha256_of, write_atomically
from haptics.friction.laws import Law
from haptics.recording.recording import Recording, stated_hash
from haptics.recording.replay import spec_of
from haptics.records import Rows, Status
from haptics.rendering.envelope import ENVELOPE_FLAGS
from haptics.scenes import Scene, fitted, scene_from_table

Array = NDArray[np.float64]

CACHE = "stimulus.json"

SLIDING_SPEED = 0.01
"""Speed below which a motion does not count as sliding [m/s]."""

_LEAST_WAY = 2e-3
"""Minimum length of an evaluated stretch of sliding [m]."""

_NONE, _SEVERAL = -1, -2
"""Indices in place of a wall, for rows that touch none or several."""

FORMAT = 4
"""Format of the cache. Caches of other formats are recomputed."""

_LATE = int(Status.STARTED_LATE | Status.ENDED_LATE)
_STEP = 1e-3
"""Relative step of the axis for the derivative of the work."""

_OF_AN_ELEMENT = {
    "stiffness": "a spring gives back at the next turn what it has taken: the work of the hand does not tell it",
    "damping": "the damper before a contact acts for less than a millimetre: the work of a stroke does not tell it",
    "mass": "a mass gives back when it is slowed down what it has taken: the work of the hand does not tell it",
}
"""Reasons why the felt value of an element's parameter is unknown."""


_NAMES = ("delivered", "delivered_flagged", "felt", "felt_low", "felt_high", "ticks", "speed")


def measure(recording: Path, trial: dict[str, Any]) -> dict[str, Any]:
    """Return the stimulus measurements of a trial.

    Parameters
    ----------
    recording : Path
        Folder of the block's recording.
    trial : dict
        Record ``trial_start`` of the journal.

    Returns
    -------
    dict
        Columns of `apps.experiment.journal.tables.STIMULUS_COLUMNS`, as far as known.

    Raises
    ------
    RecordingError
        If the folder contains no recording.
    """
    intervals = _intervals(recording, str(trial["axis"]))
    found: dict[str, Any] = {}
    parts = []
    for number, (marker, asked) in enumerate(zip(trial["markers"], trial["values"], strict=True), 1):
        part = intervals.get(str(marker))
        if part is None:
            found["stimulus_missing"] = "the recording has no such interval"
            continue
        parts.append(part)
        found |= {f"{name}_{number}": part[name] for name in _NAMES}
        part["exact"] = part["exact"] and part["set"] == asked
        if part["missing"]:
            found["stimulus_missing"] = part["missing"]
    if parts:
        found["delivered_exact"] = all(part["exact"] for part in parts)
        found["felt_source"] = parts[0]["source"]
        found["late_share"] = sum(part["late"] for part in parts) / max(sum(part["ticks"] for part in parts), 1)
        found["longest_gap_s"] = max(part["gap"] for part in parts)
    return found


def _intervals(folder: Path, axis: str) -> dict[str, dict[str, Any]]:
    """Return the measurements of every interval of a recording by marker, from the cache if valid."""
    cache = folder / CACHE
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
        kept = json.loads(cache.read_text(encoding="utf-8"))
        metadata = json.loads((folder / "recording.json").read_text(encoding="utf-8"))
        same = kept["format"] == FORMAT and kept["axis"] == axis and kept["ticks_sha256"] == stated_hash(metadata)
        if same and (not kept.get("lacks_friction") or residual_of(folder, metadata) is None):  # the file is restored
            return dict(kept["intervals"])
    recording = Recording(folder)
    own = residual_of(folder, recording.metadata)
    markers = recording.read(columns=("marker",))["marker"]
    edges = [0, *(np.flatnonzero(np.diff(markers)) + 1).tolist(), len(markers)]
    found = {}
    for begin, end in itertools.pairwise(edges):
        if end > begin and markers[begin] % 10:
            found[str(int(markers[begin]))] = _interval(recording, recording.read(begin, end), axis, own)
    digest = _digest(folder)
    if digest:  # an unclosed recording may still receive rows
        kept = {"format": FORMAT, "axis": axis, "ticks_sha256": digest, "intervals": found}
        if own is None and recording.metadata.get("friction_file_hash"):
            kept["lacks_friction"] = True
        with contextlib.suppress(OSError):
            write_atomically(cache, json.dumps(kept, allow_nan=False) + "\n")
    return found


def _digest(folder: Path) -> str:
    """Return the hash of the ticks of a closed recording, empty for others."""
    return stated_hash(json.loads((folder / "recording.json").read_text(encoding="utf-8")))


def _interval(recording: Recording, rows: Rows, axis: str, own: Residual | None) -> dict[str, Any]:
    """Return the measurements of an interval; delivered and felt are those of the value at its end."""
    spec = spec_of(recording.metadata)
    entry = next(one for one in recording.settings if one["version"] == int(rows["settings_version"][-1]))
    table, _, name = axis.partition(".")
    if table in ("wall", "texture"):  # all walls or textures have the same value
        scene = scene_from_table(entry["scene"])
        values = scene.walls if table == "wall" else [one.texture for one in scene.regions if one.texture is not None]
        value = float(getattr(values[0], name))
    else:
        value = float(entry[table][name])
    last = rows[rows["settings_version"] == rows["settings_version"][-1]]  # an adjustment has several
    given = delivered(last, spec.causality)
    starts = rows["time"] + rows["period_error"]
    found: dict[str, Any] = {
        "set": value,
        "delivered": None if given.share is None else value * given.share,
        "delivered_flagged": given.flagged,
        "exact": given.exact and len(last) == len(rows),
        "ticks": len(rows),
        "late": int(np.count_nonzero(rows["status"] & _LATE)),
        "gap": float(np.diff(starts).max()) if len(rows) > 1 else 0.0,
        "missing": "",
        **dict.fromkeys(("felt", "felt_low", "felt_high", "source")),
    }
    speed = np.hypot(*rows["velocity"].T)
    sliding = speed[(speed > SLIDING_SPEED) & (rows["sticking"] == 0)]
    found["speed"] = float(sliding.mean()) if len(sliding) else None
    try:
        if table != "law" and axis != "wall.friction":
            owner = {"wall": "a wall", "texture": "a texture"}.get(table, "the element")
            raise UnknownStimulus(_OF_AN_ELEMENT.get(name, f"{name} of {owner} does not show in the work of the hand"))
        step = _STEP * (value or 1.0)
        ground, other = (_ground(recording, entry, table, name, one) for one in (value, value + step))
        return found | felt_stimulus(last, ground, other, step, value, spec, own)
    except (UnknownStimulus, HapticError) as error:
        return found | {"missing": str(error)}


def _ground(recording: Recording, entry: dict[str, Any], table: str, name: str, value: float) -> Ground:
    """Return the ground of a settings entry, with the given value of the axis."""
    numbers = {**entry["law"], name: value} if table == "law" else entry["law"]
    if "scene" not in entry:
        return Ground(make_law(numbers))
    scene = replace(scene_from_table(entry["scene"]), law=make_law(numbers))
    if table == "wall":
        scene = scene.with_walls(**{name: value})
    metadata = recording.metadata
    period, causality = 1.0 / float(metadata["rate_hz"]), Causality(metadata["device"]["causality"])
    element = make_element(entry["model"], numbers, entry["element"], period, causality)
    return Ground(element.law, fitted(scene, element))


@dataclass(frozen=True)
class Delivered:
    """Delivered stimulus of an interval.

    Attributes
    ----------
    share : float or None
        Ratio of commanded force to the force of the element while the contact slid, 0 to 1. None if the element had no
        force, or a position reference was limited.
    flagged : float
        Fraction of ticks in which the envelope changed the output.
    exact : bool
        Whether in all other ticks the command was bitwise equal to the output of the element.
    """

    share: float | None
    flagged: float
    exact: bool


def delivered(rows: Rows, causality: Causality) -> Delivered:
    """Return the delivered stimulus in the rows of an interval, whose gate is open."""
    flags = (rows["status"] & ENVELOPE_FLAGS) != 0
    held_down = rows["gate"] != 1.0
    equal = (rows["command"] == rows["command_unlimited"]).all(axis=1)
    exact = bool(equal[~flags & ~held_down].all())
    flagged = float(np.mean(flags | held_down)) if len(rows) else 0.0
    if causality is Causality.ADMITTANCE:
        return Delivered(1.0 if exact and not flagged else None, flagged, exact)
    sliding = rows["sticking"] == 0
    asked = np.hypot(*rows["command_unlimited"][sliding].T).sum()
    given = np.hypot(*rows["command"][sliding].T).sum()
    return Delivered(float(given / asked) if asked > 0.0 else (1.0 if not flagged else None), flagged, exact)


@dataclass(frozen=True)
class Residual:
    """Friction of a device and its compensated fraction.

    Attributes
    ----------
    friction : HandleFriction
        Identified friction.
    share : float
        Compensated fraction, 0 to 1.
    """

    friction: HandleFriction
    share: float

    def force(self, rows: Rows) -> Array:
        """Return the residual friction along the motion at each tick, shape (n, 2) [N].

        On each axis the friction is reduced by the compensated fraction and by the size of a command against the
        motion, but not below zero (`devices.common.compensation`).
        """
        left = np.zeros((len(rows), 2))
        for axis, (forward, backward) in enumerate(self.friction.laws):
            speed, command = rows["velocity"][:, axis], rows["command"][:, axis]
            for law, sign in ((forward, 1.0), (backward, -1.0)):
                moving = sign * speed > 0.0
                still = np.zeros(np.count_nonzero(moving))
                level = np.asarray(law(np.column_stack((np.abs(speed[moving]), still))))[:, 0]
                against = np.maximum(-sign * command[moving], 0.0)
                left[moving, axis] = sign * (level - np.minimum(level, self.share * level + against))
        return left


def residual_of(recording: Path, metadata: dict[str, Any]) -> Residual | None:
    """Return the residual friction with which a block was run, or None if unknown.

    The friction file is identified by the hash in the recording. It is either the copy in the session's folder or the
    original file.
    """
    wanted = metadata.get("friction_file_hash")
    device = metadata.get("configuration", {}).get("device", {})
    named = device.get("friction_parameters")
    if not wanted or not isinstance(named, str):
        return None
    for file in (recording.parent.parent / OWN_FRICTION_FILE, Path(named)):
        try:
            if sha256_of(file, str(file)) == wanted:
                own = read_own_friction(str(file), metadata["device"]["name"])
                return Residual(own, float(device.get("compensation", CompensationSettings().compensation)))
        except ConfigurationError:
            continue
    return None


@dataclass(frozen=True)
class Ground:
    """Friction law, or scene with the borders of the element (`haptics.scenes.scene.fitted`).

    Attributes
    ----------
    law : Law
        Law of the plane, or of the background of the scene.
    scene : Scene or None
        Scene, if any.
    """

    law: Law
    scene: Scene | None = None

    def contacts(self, rows: Rows) -> tuple[NDArray[np.intp], Array]:
        """Return the touched wall of each row, negative for none or several, and the unit vectors along it, (n, 2)."""
        touched, along = np.full(len(rows), _NONE), np.zeros((len(rows), 2))
        for number, wall in enumerate(self.scene.walls if self.scene is not None else ()):
            inside = wall.depth(rows["position"]) > 0.0
            inwards = wall.inwards(rows["position"])
            along[inside] = np.stack((-inwards[inside, 1], inwards[inside, 0]), axis=1)
            touched[inside] = np.where(touched[inside] == _NONE, number, _SEVERAL)
        size = np.hypot(along[:, 0], along[:, 1])
        return touched, along / np.where(size > 0.0, size, 1.0)[:, None]

    def friction(self, rows: Rows, steps: Array, period: float, touched: NDArray[np.intp]) -> Array:
        """Return the friction against the steps between rows, shape (n,) [N]; `steps` has shape (n, 2) [m]."""
        velocity = steps / period
        force = self.law(velocity) if self.scene is None else self.scene.force_at(rows["proxy"], velocity)
        size = np.hypot(steps[:, 0], steps[:, 1])
        found = (force * steps).sum(axis=1) / np.where(size > 0.0, size, 1.0)
        if self.scene is not None and self.scene.walls:
            rubbing = np.array([*(wall.friction for wall in self.scene.walls), 0.0])[np.maximum(touched, _NONE)]
            found = found + rubbing * np.where(touched >= 0, rows["normal_force"], 0.0)
        return np.asarray(found)

    def slack(self, rows: Rows, touched: NDArray[np.intp]) -> float:
        """Return the maximum path after a reversal in which the spring along a wall is reloaded [m]."""
        walls = self.scene.walls if self.scene is not None else ()
        ways = [
            2.0 * wall.friction * float(rows["normal_force"][touched == number].max(initial=0.0)) / wall.stiffness
            for number, wall in enumerate(walls)
        ]
        return max(ways, default=0.0)


class UnknownStimulus(Exception):
    """The felt stimulus is unknown.

    The message contains the reason.
    """


def felt_stimulus(
    rows: Rows, ground: Ground, other: Ground, step: float, value: float, spec: DeviceSpec, own: Residual | None = None
) -> dict[str, Any]:
    """Estimate the felt stimulus from the rows of an interval.

    The result contains the felt value in the unit of the axis (``felt``) with its 95 % interval (``felt_low``,
    ``felt_high``), the mean speed of sliding (``speed`` [m/s]), and the ``source`` of the force: ``truth``, ``sensor``
    or ``model``.

    Parameters
    ----------
    rows : structured array
        Consecutive rows of the interval.
    ground, other : Ground
        Ground with the specified value of the axis, and with the value increased by `step`.
    step, value : float
        Step and specified value, in the unit of the axis.
    spec : DeviceSpec
        Data sheet of the device.
    own : Residual, optional
        Residual friction of the device, if known.

    Raises
    ------
    UnknownStimulus
        If the stimulus cannot be determined. The message contains the reason.
    """
    forces, source, doubt = _forces(rows, spec, own)
    mass = (spec.mass or 0.0) if source == "truth" else 0.0  # only a hand force also moves the mass
    stretches = _stretches(rows, (ground, other), forces, mass)
    if not stretches:
        raise UnknownStimulus("the hand did not slide")
    work, ways, ticks, expected, stepped = zip(*stretches, strict=True)
    way = sum(ways)
    per_unit = sum(more - less for more, less in zip(stepped, expected, strict=True)) / step
    if not abs(per_unit) > 1e-9 * way:
        raise UnknownStimulus("the axis does not show while the hand slides")
    excess = [done - asked for done, asked in zip(work, expected, strict=True)]
    found = float(value + sum(excess) / per_unit)
    spread = 0.0  # half-width of the 95 % interval of the mean over stretches
    if len(stretches) > 1:
        residuals = [one / length for one, length in zip(excess, ways, strict=True)]
        spread = float(1.96 * np.std(residuals, ddof=1) / math.sqrt(len(residuals)) / abs(per_unit / way))
    bound = math.hypot(spread, doubt * way / abs(per_unit))
    interval = {"felt_low": found - bound, "felt_high": found + bound}
    return {"felt": found, **interval, "speed": way / (sum(ticks) * _period(rows)), "source": source}


def _forces(rows: Rows, spec: DeviceSpec, own: Residual | None) -> tuple[Array, str, float]:
    """Return the force of the hand at each tick, shape (n, 2) [N], its source, and its uncertainty [N]."""
    if np.isfinite(rows["hand_force"]).all():
        return rows["hand_force"], "truth", 0.0
    if spec.causality is Causality.ADMITTANCE:
        return rows["force"], "sensor", 0.0
    if own is None:
        raise UnknownStimulus(
            "the device's own friction is not known: set friction.measure_each_session, or name the file of 'haptics "
            f"calibrate friction --device {spec.name}' in device.friction_parameters"
        )
    time, delay = rows["time"], spec.delay or 0.0  # commands are carried out this late
    carried_out = [np.interp(time - delay, time, rows["command"][:, axis]) for axis in range(2)]
    return own.force(rows) - np.column_stack(carried_out), "model", own.friction.doubt


def _stretches(rows: Rows, grounds: tuple[Ground, Ground], forces: Array, mass: float) -> list[tuple[float, ...]]:
    """Return the stretches of sliding without a stop that are long enough.

    Of each, these are the work of the `forces` without the kinetic energy of a `mass` [kg], the length of the path [m],
    the duration [ticks], and the work of both grounds [J].
    """
    (touched, directions), period = grounds[0].contacts(rows), _period(rows)
    moving = np.hypot(rows["velocity"][:, 0], rows["velocity"][:, 1]) > SLIDING_SPEED
    moving &= (rows["sticking"] == 0) & (touched != _SEVERAL)
    edges = np.flatnonzero(np.diff(np.concatenate(([0], moving.view(np.int8), [0]))))
    found = []
    for first, end in zip(edges[::2], edges[1::2], strict=True):
        steps = np.diff(rows["position"][first:end], axis=0)
        along = directions[first : end - 1]  # along the wall where one is touched
        along = along * (steps * along).sum(axis=1)[:, None]
        steps = np.where((touched[first : end - 1] >= 0)[:, None], along, steps)
        way = np.hypot(steps[:, 0], steps[:, 1])
        slack = grounds[0].slack(rows[first:end], touched[first:end])
        begin = first + int(np.searchsorted(np.cumsum(way), slack)) if slack else first
        if end - begin < 3:
            continue
        steps, way = steps[begin - first :], way[begin - first :]
        mean = 0.5 * (forces[begin : end - 1] + forces[begin + 1 : end])
        speed = np.hypot(rows["velocity"][begin:end, 0], rows["velocity"][begin:end, 1])
        kinetic = 0.5 * mass * (speed[-1] ** 2 - speed[0] ** 2)
        part = rows[begin : end - 1], steps, period, touched[begin : end - 1]
        taken = [float(np.dot(ground.friction(*part), way)) for ground in grounds]
        found.append((float((mean * steps).sum() - kinetic), float(way.sum()), len(way), *taken))
    return [one for one in found if one[1] >= _LEAST_WAY]


def _period(rows: Rows) -> float:
    return float(np.median(np.diff(rows["time"])))
