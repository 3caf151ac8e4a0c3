"""The profile of one kind of stick: its descriptors, the behaviour of its firmware, its true handle."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from devices.emulators.pid.profiles.layouts import Layout

Pair = tuple[float, float]
Matrix = tuple[Pair, Pair]


@dataclass(frozen=True)
class Scales:
    """The number in a report that stands for all there is, field by field.

    Attributes
    ----------
    constant, periodic, offset, ramp, envelope, coefficient, saturation : int
        Full force.
    direction, phase : int
        360 degrees.
    """

    constant: int
    periodic: int
    offset: int
    ramp: int
    envelope: int
    coefficient: int
    saturation: int
    direction: int
    phase: int


@dataclass(frozen=True)
class Handle:
    """What is true of the moving handle and of what measures and drives it.

    Attributes
    ----------
    half_width, half_height : float
        Half its travel [m].
    mass, damping : float
        Moving mass [kg] and viscous friction of its own [N s/m].
    counts : ((float, float), (float, float))
        Counts of the axes X and Y per metre of the handle in x and y.
    centre : (int, int)
        Counts where the handle is in the middle.
    limit : int
        Largest count.
    quantum : int
        Counts come in multiples of this: a converter may have fewer bits than the report.
    gear : ((float, float), (float, float))
        Force on the handle in x and y [N] by the motors of X and Y at full scale.
    rim_radius : float
        Of a wheel, which has the motor of X only: the handle is the top of its rim, x the way along it, and y is 0
        [m]; 0 for a stick.
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
    """A kind of stick.

    Attributes
    ----------
    name, manufacturer, product, serial : str
        The name here, and its strings; a stick without serial number has an empty one.
    vendor_id, product_id, release, usb : int
        Numbers of the device descriptor.
    control_size : int
        Largest packet of endpoint 0 [byte].
    interface : int
        Number of the HID interface; those before it belong to a serial port.
    in_endpoint, out_endpoint : int
        Addresses; 0 for a stick that takes output reports by the control pipe only.
    out_size : int
        Largest packet of the OUT endpoint [byte].
    in_interval, out_interval : int
        A transfer is possible every so many frames.
    outputs : tuple of Layout
        The output reports.
    create, load, pool : int
        Numbers of the feature reports.
    scales : Scales
        Of the output reports.
    input, state : callable
        Make the input reports.
    direction : callable
        Makes the force of magnitude 1 along the axes out of the fields of set-effect.
    handle : Handle
        The handle behind it.
    types : int
        Number of types of effects it knows.
    blocks, pool_says : int
        Number of blocks for effects, and what the pool report says of it.
    memory : int
        Size of the memory for effects, as the pool report says [byte].
    endless : frozenset of int
        Durations that mean: for ever.
    sense : int
        -1 where the firmware leaves the sign of its motors to somebody else.
    repeat : int
        An input report is sent again after so many frames, even without a change; 0 for never.
    states_on : frozenset of str
        On what a state report is sent: ``create``, ``set-effect``, ``play``.
    bits_control : bool
        Whether device control is a list of bits; else it is the place in the list of usages.
    must_enable : bool
        Whether actuators must be enabled for a force.
    stop_disables : bool
        Whether stopping or pausing all disables the actuators, too.
    stale_when_full : bool
        Whether block load names an old block when the pool is full; else none.
    load_once : bool
        Whether block load forgets the block once it has been read.
    spring : float
        A stick that is fresh or has been reset centres itself with block 1: force per deflection, of full scale; 0
        for one that does not.
    control_pipe : str
        What becomes of output reports on the control pipe: ``works``, ``ignored``, ``shifted`` (by one byte).
    suspend_resets : bool
        Whether the firmware starts anew when the bus is suspended.
    sums : str
        What becomes of several effects: ``adds``; ``latest`` (starting one stops the others); ``turns`` (the sum so far
        is multiplied by the direction of each constant effect).
    """

    name: str
    manufacturer: str
    product: str
    serial: str
    vendor_id: int
    product_id: int
    outputs: tuple[Layout, ...]
    create: int
    load: int
    pool: int
    scales: Scales
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
        """The report descriptor, out of the file of this name."""
        return read_hex(f"{self.name.replace('-', '_')}.hex")

    @cached_property
    def layouts(self) -> dict[int, Layout]:
        """The output reports by number."""
        return {layout.number: layout for layout in self.outputs}

    def truths(self, serial: str | None = None) -> dict[str, dict[str, Any]]:
        """Return what a perfect calibration of such a stick would find: the tables of its parameter file.

        Parameters
        ----------
        serial : str, optional
            Serial number of the very stick; by default that of the profile.

        Returns
        -------
        dict of dict
            Tables and keys as in `devices.joystick.parameters`; matrices are tuples of rows. The plane has x to the
            right and y away from the person; the levels are those of the effect that comes from 270 degrees and of the
            one from 0 degrees; the largest force is what the motors can do in every direction.
        """
        handle = self.handle
        level = _inverse(_times(self.sense, handle.gear))
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
                "full_scale": self.scales.constant,
                "source": "stated",
            },
            "handle": {"moving_mass_kg": handle.mass, "damping_ns_per_m": handle.damping},
            "provenance": {"method": "what the emulated stick is made of"},
        }


def read_hex(name: str) -> bytes:
    """Return the bytes of a file of this folder: hexadecimal, with blanks, lines, and comments behind ``#``."""
    lines = Path(__file__).with_name(name).read_text(encoding="ascii").splitlines()
    return bytes.fromhex(" ".join(line.partition("#")[0] for line in lines))


def _times(factor: float, matrix: Matrix) -> Matrix:
    (a, b), (c, d) = matrix
    return (factor * a, factor * b), (factor * c, factor * d)


def _inverse(matrix: Matrix) -> Matrix:
    """Return the inverse; of a wheel, where the second row and column are zero, that of the first number."""
    (a, b), (c, d) = matrix
    if not (b or c or d):
        return (1.0 / a, 0.0), (0.0, 0.0)
    det = a * d - b * c
    return (d / det, -b / det), (-c / det, a / det)
