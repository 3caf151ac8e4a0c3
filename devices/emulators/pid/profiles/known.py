"""Emulated sticks.

Their handles contain the parameters that a calibration has to identify: the axes of a stick, and its motors, are
rotated, mirrored and scaled relative to the plane in which its handle moves. The directions of the plane are from the
view of a user in front of the stick: x to the right, y away. (The axis Y of the HID class points towards the user.) The
handle of a wheel is the top of its rim: x is the distance along the rim, clockwise, and there is no y.
"""

from __future__ import annotations

import math
from dataclasses import replace

from devices.emulators.pid.profiles import directions, layouts
from devices.emulators.pid.profiles.profile import Handle, Matrix, Profile, Scales


def _turned(degrees: float, x: float, y: float) -> Matrix:
    """Return the matrix that rotates counter-clockwise, then scales by `x` and `y`."""
    cosine, sine = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    return (x * cosine, -x * sine), (y * sine, y * cosine)


_OPENFFBOARD = Profile(
    name="openffboard",
    manufacturer="Open_FFBoard",
    product="FFBoard Joystick",
    serial="EMULATED0001",
    vendor_id=0x1209,
    product_id=0xFFB0,
    interface=2,
    in_endpoint=0x83,
    outputs=layouts.OPENFFBOARD,
    create=17,
    load=18,
    pool=19,
    scales=Scales(32767, 32767, 32767, 32767, 32767, 32767, 32767, 36000, 36000),
    input=layouts.openffboard_input,
    direction=directions.openffboard,
    state=layouts.state_without_block,
    types=11,
    blocks=40,
    pool_says=40,
    endless=frozenset((0, 0xFFFF)),
    repeat=100,
    states_on=frozenset(("create", "set-effect")),
    bits_control=True,
    stop_disables=True,
    stale_when_full=True,
    control_pipe="shifted",
    suspend_resets=True,
    handle=Handle(
        half_width=0.1,
        half_height=0.08,
        mass=0.3,
        damping=1.0,
        counts=_turned(2.0, 300e3, -360e3),
        centre=(120, -85),
        limit=32767,
        gear=_turned(2.0, 10.0, -10.0),
    ),
)

_RIM = 0.125
_HALF_TURN = math.radians(450.0)

_OPENFFBOARD_WHEEL = replace(
    _OPENFFBOARD,
    name="openffboard-wheel",
    product="FFBoard Wheel",
    serial="EMULATED0002",
    outputs=layouts.OPENFFBOARD_WHEEL,
    direction=directions.openffboard_wheel,
    handle=Handle(
        half_width=_RIM * _HALF_TURN,  # 900 degrees from stop to stop
        half_height=_RIM,
        mass=0.0125 / _RIM**2,  # a rim and a motor of 0.0125 kg m²
        damping=0.05 / _RIM**2,
        counts=((32767 / (_RIM * _HALF_TURN), 0.0), (0.0, 0.0)),
        centre=(0, 0),
        limit=32767,
        gear=((9.0 / _RIM, 0.0), (0.0, 0.0)),  # 9 N m
        rim_radius=_RIM,
    ),
)

_SIDEWINDER = Profile(
    name="sidewinder-ff2",
    manufacturer="Microsoft",
    product="SideWinder Force Feedback 2 Joystick",
    serial="",
    vendor_id=0x045E,
    product_id=0x001B,
    usb=0x0110,
    control_size=8,
    out_size=16,
    out_interval=4,
    outputs=layouts.SIDEWINDER,
    create=1,
    load=2,
    pool=3,
    scales=Scales(255, 255, 127, 127, 255, 127, 255, 255, 255),
    input=layouts.sidewinder_input,
    direction=directions.sidewinder,
    state=layouts.state_with_block,
    types=12,
    blocks=16,
    pool_says=16,
    memory=0x0800,
    endless=frozenset((0xFFFF,)),
    states_on=frozenset(("play",)),
    spring=1.0,
    handle=Handle(
        half_width=0.06,
        half_height=0.05,
        mass=0.25,
        damping=1.5,
        counts=_turned(-3.0, 7.8e3, -9.2e3),
        centre=(6, -4),
        limit=511,
        gear=_turned(-3.0, 8.0, -7.0),
    ),
)

_ARDUINO = Profile(
    name="arduino",
    manufacturer="Arduino LLC",
    product="Arduino Leonardo",
    serial="HIDEMULATED",
    vendor_id=0x2341,
    product_id=0x8036,
    interface=2,
    in_endpoint=0x84,
    out_endpoint=0x05,
    outputs=layouts.ARDUINO,
    create=5,
    load=6,
    pool=7,
    scales=Scales(10000, 10000, 10000, 10000, 10000, 10000, 10000, 255, 36000),
    input=layouts.arduino_input,
    direction=directions.arduino,
    state=layouts.state_with_block,
    types=12,
    blocks=13,
    pool_says=14,
    endless=frozenset((0x7FFF, 0xFFFF)),
    sense=-1,
    repeat=1,
    states_on=frozenset(("play",)),
    must_enable=False,
    load_once=True,
    control_pipe="ignored",
    handle=Handle(
        half_width=0.07,
        half_height=0.06,
        mass=0.2,
        damping=0.8,
        counts=_turned(5.0, -400e3, 460e3),
        centre=(-640, 900),
        limit=32767,
        quantum=16,
        gear=_turned(8.0, -6.0, 6.0),
    ),
)

_KNOWN = (_OPENFFBOARD, _SIDEWINDER, _ARDUINO, _OPENFFBOARD_WHEEL)

PROFILES: dict[str, Profile] = {profile.name: profile for profile in _KNOWN}
"""Profiles by name."""
