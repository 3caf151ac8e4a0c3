"""Convert the identified friction of a joint into a session that renders it on a haptic device.

The friction is felt at a lever arm L from the axis, multiplied by a factor S: positions are L times angles, forces are
S/L times torques. A prismatic joint has L = 1. The levels, their fall and viscosity are rendered as a law of
`haptics.friction`, and presliding as an element: after a reversal a part P of the level builds up over the distance l.
On an impedance device `haptics.elements.classic.Iwan` has the same break-away deflections as the identified
model; on an admittance device model D has one spring with the same dissipation. Offset, position-dependent torques and
inertia are not friction of the contact and are omitted.

No law has both asymmetric levels and a Stribeck fall, and no element solves every fall (condition (15)). In these cases
the closest law over the recorded motion is chosen, and the session file states the difference. All means over the
recorded motion are over distance, so that the rendered friction does the same work as the friction of the joint.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from calibration.friction.model import DIMENSIONS
from devices.common.parameter_keys import UNIT_WORDS, key, unit_key
from haptics.device import Causality
from haptics.elements.tables import make_element, make_law
from haptics.errors import ConfigurationError
from haptics.files import format_toml

if TYPE_CHECKING:
    from calibration.data.joint_recording import JointRecording, Source
    from calibration.parameters import JointParameters
    from haptics.friction.laws import Law

Array = NDArray[np.float64]
Table = dict[str, Any]

SOLVABLE_MARGIN = 1.25
"""Factor by which a law falls more gently than condition (15) requires."""

COUPLING_STIFFNESS, COUPLING_DAMPING = 6000.0, 10.0
"""Virtual coupling of impedances without presliding [N/m], [N s/m]; Kikuuwe et al. 2006, section V."""

LARGEST_STIFFNESS = 4000.0
"""Largest presliding stiffness parallel to that coupling [N/m], for stability on a light handle."""

MASS, LARGEST_ADMITTANCE_STIFFNESS, DAMPING_RATIO = 2.0, 20_000.0, 0.3
"""Model D: mass [kg], largest stiffness [N/m] and damping ratio.

All are well inside a + 2 b < 4 of (63) at 1 kHz.
"""

PERIOD = 1e-3
"""Period for which the law is made solvable [s]; a session at a higher rate checks it again."""

STRONG, WEAK, COMFORTABLE = 8.0, 0.3, 4.0
"""Break-away forces [N] above and below which another scale is proposed, and the force at that scale."""

_SLOW = 0.01
"""Speed below which the joint is at rest, as a fraction of the top speed."""

_LEAST_FORCE = 1e-6
"""Smallest level of the law `asymmetric` [N]."""

_SHARES = (0.0, 0.95)
"""Range of the fraction of the level that Iwan's stiff element carries."""

_LEFT_OUT = ("offset", "harmonic_1_cos", "harmonic_1_sin", "harmonic_2_cos", "harmonic_2_sin", "inertia")


@dataclass(frozen=True)
class Conversion:
    """Unit conversion from a joint to the plane of a device.

    Attributes
    ----------
    rotary : bool
        Whether the joint is rotary.
    lever_arm : float
        Distance from the axis at which the friction is felt [m]; 1 for a prismatic joint.
    scale : float
        Factor on all forces.
    """

    rotary: bool
    lever_arm: float = 1.0
    scale: float = 1.0

    @classmethod
    def of(cls, rotary: bool, lever_arm: float | None, scale: float = 1.0) -> Conversion:
        """Validate a lever arm and a scale from user input.

        Raises
        ------
        ConfigurationError
            If a rotary joint has no lever arm, a prismatic joint has one, or a number is not greater than 0.
        """
        if rotary and lever_arm is None:
            raise ConfigurationError(
                "the joint turns, and a device renders forces: give --lever-arm M, the distance from the axis at which "
                "its friction is to be felt, for instance --lever-arm 0.1."
            )
        if not rotary and lever_arm is not None:
            raise ConfigurationError(
                f"--lever-arm = {lever_arm!r}: the joint slides and has no lever arm; leave it out."
            )
        arm = 1.0 if lever_arm is None else lever_arm
        for option, value in (("--lever-arm", arm), ("--scale", scale)):
            if not 1e-6 < value < 1e6:
                raise ConfigurationError(f"{option} = {value!r}: must be a number greater than 0.")
        return cls(rotary, arm, scale)

    @property
    def force(self) -> float:
        """Force [N] at the device for one unit of effort of the joint [N m] or [N]."""
        return self.scale / self.lever_arm

    def factor(self, dimension: str) -> float:
        """Return the factor that converts a joint quantity of a given dimension to the device."""
        return {
            "force": self.force,
            "viscosity": self.force / self.lever_arm,
            "inertia": self.force / self.lever_arm,
            "velocity": self.lever_arm,
            "distance": self.lever_arm,
        }[dimension]


@dataclass(frozen=True)
class SlidingFriction:
    """Identified friction of steady sliding at the device; pairs for v > 0 and v < 0, in N and N s/m."""

    coulomb: tuple[float, float]
    static: tuple[float, float]
    viscosity: tuple[float, float]
    stribeck_velocity: float
    gaussian: bool

    @classmethod
    def of(cls, model: str, values: Mapping[str, float], conversion: Conversion) -> SlidingFriction:
        """Convert identified parameters, named as in `calibration.friction.model.DIMENSIONS`."""

        def both(name: str, missing: tuple[float, float]) -> tuple[float, float]:
            factor = conversion.factor(DIMENSIONS.get(name, "force"))
            found = (values.get(f"{name}_{side}", values.get(name)) for side in ("forward", "backward"))
            pair = [factor * value if value is not None else missing[k] for k, value in enumerate(found)]
            return pair[0], pair[1]

        coulomb = both("coulomb", (0.0, 0.0))
        velocity = values.get("stribeck_velocity", 0.0) * conversion.factor("velocity")
        static = both("static", coulomb) if velocity > 0.0 else coulomb
        return cls(coulomb, static, both("viscosity", (0.0, 0.0)), velocity, "gaussian" in model)

    @property
    def falls(self) -> bool:
        """Whether a static level exceeds the Coulomb level."""
        return any(static > coulomb for static, coulomb in zip(self.static, self.coulomb, strict=True))

    def fall(self, speed: Array, stribeck_velocity: float) -> Array:
        """Return the remaining fraction of the fall at each speed, (n,)."""
        ratio = speed / stribeck_velocity
        return np.exp(-(ratio**2) if self.gaussian else -ratio)

    def force(self, velocity: Array) -> Array:
        """Return the friction at each velocity, (n,) [N]."""
        forward = velocity > 0.0
        coulomb, static, viscosity = (np.where(forward, *pair) for pair in (self.coulomb, self.static, self.viscosity))
        speed = np.abs(velocity)
        level = coulomb + viscosity * speed
        if self.falls:
            level = level + (static - coulomb) * self.fall(speed, self.stribeck_velocity)
        return np.asarray(np.sign(velocity) * level)


@dataclass(frozen=True)
class FeltFriction:
    """Session tables that render the friction of a joint, with explanatory statements.

    Attributes
    ----------
    conversion : Conversion
        Units of the joint and of the device.
    law, impedance, admittance, provenance : dict
        Tables of a session file.
    level : float
        Mean friction over the recorded motion [N].
    error : float
        Rms difference of the rendered law from the identified one over the recorded motion [N].
    left_out, approximated, warnings : tuple of str
        Sentences with a number each.
    """

    conversion: Conversion
    law: Table
    impedance: Table
    admittance: Table
    provenance: Table
    level: float
    error: float
    left_out: tuple[str, ...] = ()
    approximated: tuple[str, ...] = ()
    warnings: tuple[str, ...] = field(default=())


def felt_friction(
    joint: JointParameters, conversion: Conversion, velocity: Array, sources: Sequence[Source] = ()
) -> FeltFriction:
    """Choose law and elements that render the identified friction of a joint.

    Parameters
    ----------
    joint : JointParameters
        Joint with identified friction.
    conversion : Conversion
        Units of the joint and of the device.
    velocity : (n,) float array
        Velocities of the recorded motion [rad/s] or [m/s]; laws are compared over them.
    sources : sequence of Source, optional
        Recordings, for the provenance.

    Raises
    ------
    ConfigurationError
        If the friction of the joint is unknown, or the recorded velocity is 0 throughout.
    """
    found = joint.known_friction()
    moved = np.asarray(velocity, float) * conversion.lever_arm
    moved = moved[np.abs(moved) > _SLOW * np.abs(moved).max(initial=0.0)]
    if not len(moved):
        raise ConfigurationError(f"joint {joint.name}: does not move in the recording, so that no law can be compared.")
    identified = SlidingFriction.of(found.model, found.values, conversion)
    level = float(np.average(np.abs(identified.force(moved)), weights=np.abs(moved)))
    part = found.values.get("presliding", 0.0) * conversion.force
    distance = found.values.get("presliding_distance", 0.0) * conversion.lever_arm
    impedance, admittance, approximated = _elements(part, distance, level)
    # the steepest fall [N s/m] that satisfies condition (15) with a margin for both elements
    coulomb = {"name": "coulomb", "force": 1.0}
    steepest = min(
        1.0 / (SOLVABLE_MARGIN * make_element(form["model"], coulomb, form["element"], PERIOD, causality).mobility)
        for form, causality in ((impedance, Causality.IMPEDANCE), (admittance, Causality.ADMITTANCE))
    )
    law, error, notes = _closest_law(identified, moved, steepest, level)
    breakaway = make_law(law).breakaway_force
    warnings = []
    if breakaway > STRONG or breakaway < WEAK:
        proposed = float(f"{conversion.scale * COMFORTABLE / max(breakaway, _LEAST_FORCE):.2g}")
        word = f"less than {WEAK:g} N, which is hard to feel"
        if breakaway > STRONG:
            word = f"more than {STRONG:g} N, which many devices cannot give"
        warnings.append(f"the break-away force is {breakaway:.3g} N, {word}: consider --scale {proposed:g}.")
    unit, left_out = "N m" if joint.rotary else "N", []
    if found.values.get("offset"):
        left_out.append(f"the offset of {found.values['offset']:.4g} {unit}")
    for number in (1, 2):
        amplitude = math.hypot(*(found.values.get(f"harmonic_{number}_{wave}", 0.0) for wave in ("cos", "sin")))
        if amplitude:
            left_out.append(f"harmonic {number} of the position, amplitude {amplitude:.4g} {unit} (gravity)")
    if found.values.get("inertia"):
        left_out.append(f"the inertia of {found.values['inertia']:.4g} {'kg m^2' if joint.rotary else 'kg'}")
    known = list(dict.fromkeys(sources))
    provenance = {
        "joint": joint.name,
        "rotary": joint.rotary,
        "lever_arm_m": conversion.lever_arm if joint.rotary else None,
        "force_scale": conversion.scale,
        "friction_model": found.model,
        "data_files": [Path(source.path).name for source in known],
        "data_sha256": [source.sha256 for source in known],
        "identified": {key(name, DIMENSIONS[name], joint.rotary): value for name, value in found.values.items()},
    }
    tables = law, impedance, admittance, provenance
    approximated = (*notes, *approximated)
    return FeltFriction(conversion, *tables, level, error, tuple(left_out), approximated, tuple(warnings))


def read_provenance(tables: Mapping[str, Any], path: str | Path) -> tuple[str, Conversion, dict[str, float]]:
    """Return joint, conversion and the omitted identified parameters from the tables of a session file.

    Raises
    ------
    ConfigurationError
        If the file was not written from the recording of a joint.
    """
    table = tables.get("provenance", {})
    try:
        rotary, joint, identified = bool(table["rotary"]), str(table["joint"]), dict(table["identified"])
        conversion = Conversion.of(rotary, float(table["lever_arm_m"]) if rotary else None, float(table["force_scale"]))
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigurationError(
            f"{path}: has no table [provenance] with joint, lever_arm_m, force_scale and identified; "
            "haptics calibrate friction --law writes such a file."
        ) from error
    keys = {name: key(name, DIMENSIONS[name], rotary) for name in _LEFT_OUT}
    return joint, conversion, {name: float(identified[one]) for name, one in keys.items() if one in identified}


# --- elements ---------------------------------------------------------------------------------------------------------


def _elements(part: float, distance: float, level: float) -> tuple[Table, Table, tuple[str, ...]]:
    """Return impedance and admittance tables that build up `part` of a `level` [N] over a distance [m].

    The third value lists the approximations.
    """
    if not (part > 1e-3 * level and distance > 0.0):
        coupling = {"stiffness": COUPLING_STIFFNESS, "damping": COUPLING_DAMPING}
        return {"model": "C", "element": coupling}, {"model": "A", "element": {"mass": MASS}}, ()
    notes = []
    soft = min(part / distance, LARGEST_STIFFNESS)
    if soft < part / distance:
        notes.append(
            f"presliding of {part:.3g} N over {1e3 * distance:.3g} mm is stiffer than an impedance device can render; "
            f"there it has {1e3 * part / soft:.3g} mm"
        )
    share = min(max(1.0 - part / level, _SHARES[0]), _SHARES[1])
    damping = COUPLING_DAMPING * (1.0 + (soft / COUPLING_STIFFNESS if share > 0.0 else 0.0))
    iwan = {"stiffness": _rounded(soft), "damping": _rounded(damping), "count": 6, "spread": 0.8}
    iwan |= {"stiff_share": _rounded(share), "stiff_stiffness": COUPLING_STIFFNESS}
    # At a reversal, one spring K dissipates 2 level^2/K less than dry friction; the identified law 2 part distance
    # less.
    equal = level**2 / (part * distance)
    stiffness = min(equal, LARGEST_ADMITTANCE_STIFFNESS)
    damping = 2.0 * DAMPING_RATIO * math.sqrt(stiffness * MASS)
    spring = {"mass": MASS, "stiffness": _rounded(stiffness), "damping": _rounded(damping)}
    notes.append(
        f"on an admittance device the whole level builds up along one line over {1e3 * level / stiffness:.3g} mm, "
        f"instead of {part:.3g} N over {1e3 * distance:.3g} mm on average"
    )
    return {"model": "iwan", "element": iwan}, {"model": "D", "element": spring}, tuple(notes)


# --- laws -------------------------------------------------------------------------------------------------------------


def _closest_law(
    identified: SlidingFriction, velocity: Array, steepest: float, level: float
) -> tuple[Table, float, tuple[str, ...]]:
    """Return the closest law over the recorded motion, its rms difference [N] and the approximations."""
    truth = identified.force(velocity)

    def error_of(table: Table) -> float:
        plane = np.column_stack((velocity, np.zeros_like(velocity)))
        return float(np.sqrt(np.average((make_law(table)(plane)[:, 0] - truth) ** 2, weights=np.abs(velocity))))

    def size(error: float) -> str:
        return f"{error:.3g} N rms ({100.0 * error / max(level, _LEAST_FORCE):.3g} % of the mean level)"

    symmetric, notes = _symmetric_law(identified, velocity, steepest)
    error = error_of(symmetric)
    if all(one == other for one, other in (identified.coulomb, identified.static, identified.viscosity)):
        lines = (f"the law differs from the identified one by {size(error)}",) if notes else ()
        return symmetric, error, (*notes, *lines)
    asymmetric = _asymmetric_law(identified, velocity)
    other = error_of(asymmetric)
    if other < error:
        lines = (f"the law differs from the identified one by {size(other)}",) if other > 1e-6 * level else ()
        if identified.falls:
            lines = (
                "levels that differ by direction are rendered at their means over the measured speeds, without the "
                f"fall from the static level: that differs from the identified law by {size(other)}, one falling law "
                f"for both directions by {size(error)}",
            )
        return asymmetric, other, lines
    line = (
        "one law for both directions, with the mean of their levels, differs from the identified one by "
        f"{size(error)}, a level for each direction without the fall from the static level by {size(other)}"
    )
    return symmetric, error, (*notes, line)


def _asymmetric_law(identified: SlidingFriction, velocity: Array) -> Table:
    """Return the closest law over the recorded motion with a constant level for each direction."""
    viscosity = float(np.mean(identified.viscosity))
    levels = []
    for sign, coulomb in zip((1.0, -1.0), identified.coulomb, strict=True):
        moved = velocity[sign * velocity > 0.0]
        excess = sign * identified.force(moved) - viscosity * np.abs(moved)
        level = float(np.average(excess, weights=np.abs(moved))) if len(moved) else coulomb
        levels.append(max(level, _LEAST_FORCE))
    return {
        "name": "asymmetric",
        "forward_force": _rounded(levels[0]),
        "backward_force": _rounded(levels[1]),
        "sideways_force": _rounded(0.5 * sum(levels)),
        "viscosity": _rounded(viscosity),
    }


def _symmetric_law(identified: SlidingFriction, velocity: Array, steepest: float) -> tuple[Table, tuple[str, ...]]:
    """Return the law with the mean levels of both directions and a fall of at most `steepest` [N s/m]."""
    coulomb, static, viscosity = (
        float(np.mean(pair)) for pair in (identified.coulomb, identified.static, identified.viscosity)
    )
    if not (identified.falls and static > coulomb):
        if viscosity == 0.0:
            return {"name": "coulomb", "force": _rounded(coulomb)}, ()
        return {"name": "coulomb-viscous", "force": _rounded(coulomb), "viscosity": _rounded(viscosity)}, ()
    table: Table = {
        "name": "gaussian-stribeck" if identified.gaussian else "stribeck",
        "kinetic_force": _rounded(coulomb),
        "static_force": _rounded(static),
        "stribeck_velocity": _rounded(identified.stribeck_velocity),
        "viscosity": _rounded(viscosity),
    }
    law: Law = make_law(table)
    if -law.slopes[0] <= steepest:
        return table, ()
    # The steepest solvable fall is (steepest + viscosity) v_s / steepness. Widen the fall, reduce it, or both.
    slope = (steepest + viscosity) / law.steepness
    measured, widest = identified.stribeck_velocity, (static - coulomb) / slope
    speed = np.abs(velocity)
    truth = np.sign(velocity) * identified.force(velocity) - viscosity * speed
    best = math.inf
    for width in np.geomspace(measured, widest, 60)[1:]:
        fall = min(slope * width, static - coulomb)
        shape = fall * identified.fall(speed, width)
        kinetic = max(float(np.average(truth - shape, weights=speed)), coulomb)
        error = float(np.average((truth - shape - kinetic) ** 2, weights=speed))
        if error < best:
            best = error
            table |= {
                "kinetic_force": _rounded(kinetic),
                "static_force": _rounded(kinetic + fall),
                "stribeck_velocity": _rounded(float(width)),
            }
    kept = "" if table["kinetic_force"] == _rounded(coulomb) else f", the kinetic force {table['kinetic_force']:.3g} N"
    return table, (
        f"the friction falls by {-law.slopes[0]:.3g} N s/m, and the elements solve {steepest:.3g} N s/m "
        f"(condition 15, with a margin of {SOLVABLE_MARGIN:g}): the Stribeck velocity is widened from "
        f"{1e3 * measured:.3g} to {1e3 * float(table['stribeck_velocity']):.3g} mm/s, and the static force is "
        f"{table['static_force']:.3g} N instead of {static:.3g} N{kept}. A smaller --scale or a longer --lever-arm "
        "keeps more of the fall",
    )


def _rounded(value: float) -> float:
    """Round to six significant digits, which keeps a session file readable."""
    return float(f"{value:.6g}")


# --- files ------------------------------------------------------------------------------------------------------------


def format_session(felt: FeltFriction, joint: JointParameters) -> str:
    """Return a session file, TOML with comments, for `haptics run --config`."""
    found, rotary, conversion = joint.known_friction(), joint.rotary, felt.conversion
    files = ", ".join(felt.provenance["data_files"]) or "an unknown recording"
    lines = [f"Friction of the {'rotary' if rotary else 'sliding'} joint {joint.name!r}, identified from {files}."]
    for name, digest in zip(felt.provenance["data_files"], felt.provenance["data_sha256"], strict=True):
        lines.append(f"SHA-256 of {name!r}: {digest}")
    lines += ["", f"Identified (model {found.model}):"]
    for name, value in found.values.items():
        unit = UNIT_WORDS[unit_key(DIMENSIONS[name], rotary)].replace("²", "^2")
        lines.append(f"  {name.replace('_', ' ')} {value:.4g} {unit}")
    arm = f"a lever arm of {conversion.lever_arm:g} m" if rotary else "the slide itself"
    level = f"Mean level over the recorded motion: {felt.level:.4g} N."
    lines += ["", f"Felt at {arm}, forces times {conversion.scale:g}. {level}"]
    for head, texts in (("Left out", felt.left_out), ("Approximated", felt.approximated), ("Warning", felt.warnings)):
        if texts:
            lines += ["", f"{head}:", *(f"- {text}" for text in texts)]
    lines += ["", "[impedance] is used on devices that take forces, [admittance] on those that take positions."]
    comments = []
    for line in lines:
        whole = not line or line.startswith("SHA-256")
        wrapped = [line] if whole else textwrap.wrap(line, 110, subsequent_indent="  ")
        comments += [f"# {text}".rstrip() for text in wrapped]
    tables = {name: getattr(felt, name) for name in ("law", "impedance", "admittance", "provenance")}
    return "\n".join([*comments, "", format_toml(tables)])


def joint_position(recording: JointRecording) -> Array:
    """Return the smoothed position of a joint, (n,) [rad] or [m]; starts at 0 without measured positions."""
    start = 0.0 if recording.position is None else float(recording.position[0])
    return np.asarray(start + recording.path)


def format_hand(recording: JointRecording, conversion: Conversion) -> str:
    """Format the recorded motion at the lever arm as the CSV file of a recorded hand, along the x axis."""
    place = joint_position(recording) * conversion.lever_arm
    place = place - middle(place)
    rows = [f"{time:.6f},{x:.9f},0" for time, x in zip(recording.time - recording.time[0], place, strict=True)]
    arm = f"lever arm {conversion.lever_arm:g} m" if conversion.rotary else "a slide"
    head = f"# motion of the joint {recording.joint} in {Path(recording.source.path).name}, {arm}"
    return "\n".join([head, "time_s,x_m,y_m", *rows]) + "\n"


def middle(place: Array) -> float:
    """Return the middle of the range of positions, which is mapped to the middle of the workspace."""
    return 0.5 * float(place.min() + place.max())
