"""Kinds of emulated sticks: descriptors, reports, behaviour of the firmware, and true parameters of the handle.

The profiles are in the file ``sticks.toml``. The positions in the reports are taken from its tables, independent of the
report descriptors, which are in the ``.hex`` files. The handles contain the parameters that a calibration has to
identify: the axes of a stick, and its motors, are rotated, mirrored and scaled relative to the plane in which its
handle moves. The directions of the plane are from the view of a user in front of the stick: x to the right, y away.
(The axis Y of the HID class points towards the user.) The handle of a wheel is the top of its rim: x is the distance
along the rim, clockwise, and there is no y.
"""

from __future__ import annotations

import hashlib
import math
import struct
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

Pair = tuple[float, float]
Matrix = tuple[Pair, Pair]


@dataclass(frozen=True)
class Layout:
    """Output report.

    Attributes
    ----------
    kind : str
        Kind of the report, such as ``set-effect``.
    form : struct.Struct
        Format of the fields after the report id.
    names : list of str
        Names of the fields.
    """

    kind: str
    form: struct.Struct
    names: list[str]

    def unpack(self, data: bytes) -> dict[str, int]:
        """Return the fields of a report, which includes the id and is long enough."""
        return dict(zip(self.names, self.form.unpack_from(data, 1), strict=True))


@dataclass(frozen=True)
class Handle:
    """True parameters of the moving handle, its converters and its motors.

    Attributes
    ----------
    half_width, half_height : float
        Half its travel [m].
    mass, damping : float
        Moving mass [kg] and viscous friction [N s/m].
    counts : ((float, float), (float, float))
        Counts of the axes X and Y per metre of the handle in x and y.
    centre : (int, int)
        Counts at the centre of the travel.
    limit : int
        Maximum count.
    quantum : int
        Step of the counts: a converter may have fewer bits than the report.
    gear : ((float, float), (float, float))
        Force on the handle in x and y [N] by the motors of X and Y at full scale.
    rim_radius : float
        Radius of a wheel, which has only the motor of X: the handle is the top of its rim, x the distance along it, and
        y is 0 [m]; 0 for a stick.
    """

    half_width: float
    half_height: float
    mass: float
    damping: float
    counts: Matrix
    centre: tuple[int, int]
    limit: int
    gear: Matrix
    quantum: int = 1
    rim_radius: float = 0.0


@dataclass(frozen=True)
class Profile:
    """Kind of stick.

    Attributes
    ----------
    name, manufacturer, product, serial : str
        Profile name, and USB strings; the serial number is empty for a stick without one.
    vendor_id, product_id, release, usb : int
        Numbers of the device descriptor.
    control_size : int
        Maximum packet size of endpoint 0 [byte].
    interface : int
        Number of the HID interface; lower numbers belong to a serial port.
    in_endpoint, out_endpoint : int
        Addresses; 0 for a stick that accepts output reports only as control requests.
    out_size : int
        Maximum packet size of the OUT endpoint [byte].
    in_interval, out_interval : int
        Interval between transfers [frames].
    outputs : dict of Layout
        Output reports by number.
    create, load, pool : int
        Numbers of the feature reports.
    full_scale, circle : int
        Values of full force and of 360 degrees in the output reports.
    input, state : callable
        Functions that make the input reports.
    direction : callable
        Function that returns the force of magnitude 1 along the axes from the fields of set-effect.
    handle : Handle
        True parameters of the handle.
    types : int
        Number of supported effect types.
    blocks, pool_says : int
        Number of blocks for effects, and the number in the pool report.
    memory : int
        Size of the memory for effects in the pool report [byte].
    endless : frozenset of int
        Durations of endless effects.
    sense : int
        Sign of the force; -1 where the firmware does not define the sign of its motors.
    repeat : int
        Number of frames after which an unchanged input report is sent again; 0 for never.
    states_on : frozenset of str
        Events on which a state report is sent: ``create``, ``set-effect``, ``play``.
    bits_control : bool
        Whether device control is a list of bits; otherwise it is the position in the list of usages.
    must_enable : bool
        Whether actuators must be enabled for a force.
    stop_disables : bool
        Whether stopping or pausing all effects also disables the actuators.
    stale_when_full : bool
        Whether block load reports an old block when the pool is full; otherwise no block.
    load_once : bool
        Whether block load clears the block after it has been read.
    spring : float
        Stiffness of the centring spring in block 1 after power-on and reset: force per deflection, of full scale; 0 for
        no spring.
    control_pipe : str
        Effect of output reports sent as control requests: ``works``, ``ignored``, ``shifted`` (by one byte).
    suspend_resets : bool
        Whether a suspended bus resets the firmware.
    sums : str
        Combination of several effects: ``adds``; ``latest`` (starting one stops the others); ``turns`` (the previous
        sum is multiplied by the direction of each constant effect).
    """

    name: str
    manufacturer: str
    product: str
    serial: str
    vendor_id: int
    product_id: int
    outputs: dict[int, Layout]
    create: int
    load: int
    pool: int
    full_scale: int
    circle: int
    input: Callable[[int, int, int], bytes]
    state: Callable[[int, bool, int], bytes]
    direction: Callable[[Mapping[str, int]], Pair]
    handle: Handle
    types: int
    blocks: int
    pool_says: int
    endless: frozenset[int]
    release: int = 0x0100
    usb: int = 0x0200
    control_size: int = 64
    interface: int = 0
    in_endpoint: int = 0x81
    out_endpoint: int = 0x02
    out_size: int = 64
    in_interval: int = 1
    out_interval: int = 1
    memory: int = 0xFFFF
    sense: int = 1
    repeat: int = 0
    states_on: frozenset[str] = field(default_factory=frozenset)
    bits_control: bool = False
    must_enable: bool = True
    stop_disables: bool = False
    stale_when_full: bool = False
    load_once: bool = False
    spring: float = 0.0
    control_pipe: str = "works"
    suspend_resets: bool = False
    sums: str = "adds"

    @cached_property
    def report_descriptor(self) -> bytes:
        """Report descriptor, from the file of this name."""
        return read_hex(f"{self.name.replace('-', '_')}.hex")

    def truths(self, serial: str | None = None) -> dict[str, dict[str, Any]]:
        """Return the tables of the parameter file that a perfect calibration of the stick would produce.

        Parameters
        ----------
        serial : str, optional
            Serial number of the stick; by default the serial number of the profile.

        Returns
        -------
        dict of dict
            Tables and keys as in `devices.joystick.parameters`; matrices are tuples of rows. The plane has x to the
            right and y away from the user. The levels refer to the effects from 270 degrees and from 0 degrees. The
            maximum force is the force that the motors can exert in every direction.
        """
        handle = self.handle
        level = _inverse(handle.gear, self.sense)
        corner = handle.half_width, handle.half_height
        return {
            "device": {
                "vendor_id": self.vendor_id,
                "product_id": self.product_id,
                "serial": self.serial if serial is None else serial,
                "name": self.product,
                "report_descriptor_sha256": hashlib.sha256(self.report_descriptor).hexdigest(),
                "in_interval_s": self.in_interval * 1e-3,
                "out_interval_s": self.out_interval * 1e-3 if self.out_endpoint else 1e-3,
                "out_endpoint": bool(self.out_endpoint),
                "bcd_device": self.release,
            },
            "axes": {
                "centre_counts": (float(handle.centre[0]), float(handle.centre[1])),
                "counts_to_m": _inverse(handle.counts),
                "count_quantum": handle.quantum,
                "rim_radius_m": handle.rim_radius,
                "workspace_min_m": (-corner[0], -corner[1]),
                "workspace_max_m": corner,
            },
            "force": {
                "newton_to_level": level,
                "max_force_n": 1.0 / max(math.hypot(*row) for row in level),
                "full_scale": self.full_scale,
                "source": "stated",
            },
            "handle": {"moving_mass_kg": handle.mass, "damping_ns_per_m": handle.damping},
            "provenance": {"method": "true parameters of the emulated stick"},
        }


def read_hex(name: str) -> bytes:
    """Return the bytes of a hexadecimal file in this folder, with comments after ``#``."""
    lines = Path(__file__).with_name(name).read_text(encoding="ascii").splitlines()
    return bytes.fromhex(" ".join(line.partition("#")[0] for line in lines))


def _inverse(matrix: Matrix, factor: int = 1) -> Matrix:
    """Return the inverse of a multiple; for a wheel, whose matrix has only one number, the inverse of that number."""
    (a, b), (c, d) = ((factor * x, factor * y) for x, y in matrix)
    if not (b or c or d):
        return (1.0 / a, 0.0), (0.0, 0.0)
    det = a * d - b * c
    return (d / det, -b / det), (-c / det, a / det)


# --- input reports ---------------------------------------------------------------------------------------------------

_INPUTS: dict[str, Callable[[int, int, int], bytes]] = {
    # 64 buttons, eight axes of 16 bits
    "openffboard_input": lambda x, y, buttons: struct.pack("<BQ8h", 1, buttons, x, y, 0, 0, 0, 0, 0, 0),
    # 8 buttons, two axes of 16 bits
    "arduino_input": lambda x, y, buttons: struct.pack("<BBhh", 1, buttons & 0xFF, x, y),
    # two axes of 10 bits, the twist and the slider at rest, no hat, 8 buttons
    "sidewinder_input": lambda x, y, buttons: struct.pack(
        "<BHHBBBB4x", 1, x & 0x3FF, y & 0x3FF, 0, 0, 8, buttons & 0xFF
    ),
}
"""Input report 1 from the counts of both axes and the buttons."""

_STATES: dict[str, Callable[[int, bool, int], bytes]] = {
    # paused, enabled, safety switch, override, power; playing, and block number
    "state_with_block": lambda flags, playing, block: struct.pack(
        "<BBB", 2, flags & 0b111 | (flags >> 3 & 1) << 4, int(playing) | (block & 0x7F) << 1
    ),
    # paused, enabled, safety switch, power, playing; without the block number
    "state_without_block": lambda flags, playing, _: struct.pack("<BB", 2, flags & 0b1111 | int(playing) << 4),
}
"""Input report 2 from the flags of the device, and whether an effect plays in which block."""

# --- directions of forces ---------------------------------------------------------------------------------------------
#
# Each function returns the force of magnitude 1 along the device's axes for the fields of set-effect. A direction is
# where the force comes from, clockwise, and 0 is away from the user. Along the axes of the HID class, X to the right
# and Y towards the user, the force of magnitude M from the direction a is M (-sin a, cos a).

_ENABLE = 0b100
"""Bit of direction enable, above the bits of the axes."""


def openffboard_direction(fields: Mapping[str, int]) -> Pair:
    """Return the force for hundredths of a degree; without direction enable, for a fraction of each axis."""
    first, second = fields["direction"], fields["direction_y"]
    if fields["axes"] & _ENABLE:
        angle = math.radians(first / 100.0)
        return -math.sin(angle), math.cos(angle)
    return (first - 18000) / 18000.0, (second - 18000) / 18000.0


def openffboard_wheel_direction(fields: Mapping[str, int]) -> Pair:
    """Return the force as `openffboard_direction`, with one axis: the second bit is direction enable."""
    angle = math.radians(fields["direction"] / 100.0)
    if fields["axes"] & _ENABLE >> 1:
        return -math.sin(angle), 0.0
    return (fields["axes"] & 1) * (fields["direction"] - 18000) / 18000.0, 0.0


def sidewinder_direction(fields: Mapping[str, int]) -> Pair:
    """Return the force for 8 bits per circle; without direction enable, full force on each enabled axis."""
    if fields["axes"] & _ENABLE:
        angle = 2.0 * math.pi * fields["direction"] / 255.0
        return -math.sin(angle), math.cos(angle)
    return float(fields["axes"] & 1), float(fields["axes"] >> 1 & 1)


def arduino_direction(fields: Mapping[str, int]) -> Pair:
    """Return the force for 8 bits per circle, with inverted sign; enabled axes have separate directions."""
    first, second = (2.0 * math.pi * fields[name] / 255.0 for name in ("direction", "direction_y"))
    return math.sin(first), -math.cos(first if fields["axes"] == _ENABLE else second)


# --- the sticks -------------------------------------------------------------------------------------------------------


def _turned(degrees: float, x: float, y: float) -> Matrix:
    """Return the matrix that rotates counter-clockwise, then scales by `x` and `y`."""
    cosine, sine = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    return (x * cosine, -x * sine), (y * sine, y * cosine)


_FUNCTIONS: dict[str, Any] = {
    **_INPUTS,
    **_STATES,
    **{
        function.__name__: function
        for function in (openffboard_direction, openffboard_wheel_direction, sidewinder_direction, arduino_direction)
    },
}


def _profiles() -> dict[str, Profile]:
    """Return the profiles in the file ``sticks.toml`` by name."""
    tables = tomllib.loads(Path(__file__).with_name("sticks.toml").read_text(encoding="utf-8"))
    found = {}
    for name, own in tables["sticks"].items():
        table = {**tables["sticks"].get(own.get("base"), {}), **own, "name": name}
        table.pop("base", None)
        reports = tables["reports"][table.pop("reports")]
        table["outputs"] = {
            int(number): Layout(kind, struct.Struct("<" + form), names.split())
            for number, (kind, form, names) in reports.items()
        }
        table |= {key: _FUNCTIONS[table[key]] for key in ("input", "state", "direction")}
        table |= {key: frozenset(table.get(key, ())) for key in ("endless", "states_on")}
        handle = dict(table["handle"], centre=tuple(table["handle"]["centre"]))
        for key in ("counts", "gear"):
            matrix = handle[key]
            handle[key] = _turned(*matrix) if len(matrix) == 3 else tuple(map(tuple, matrix))
        found[name] = Profile(**{**table, "handle": Handle(**handle)})
    return found


PROFILES = _profiles()
"""Profiles by name."""
