"""Driver of the Touch; see `devices.touch` for the guarantees about its force."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from devices.common.kernels import accept, begin_sample, copy_sample, send_command
from devices.common.plane import (
    Plane,
    PlaneDriver,
    PlaneSettings,
    estimate_in_plane,
    place_in_plane,
    plane_fields,
    spread_force,
)
from devices.common.settings import Workspace
from devices.touch.callback import COMMAND_SIZE, SAMPLE_SIZE
from devices.touch.hdapi import NAME, OPENHAPTICS, PROTOTYPES
from devices.touch.link import TouchLink, library_of
from haptics.clock import Clock, instruct, pause
from haptics.device import Channel
from haptics.errors import DeviceFault, DeviceOpenError
from haptics.jit import kernel
from haptics.settings import bounded, choice, documented, flag, string

MODELS = {"touch": (0.08, 0.06, 0.035), "touch-x": (0.08, 0.06, 0.06)}
"""Half of the usable workspace along the device's axes by model [m], according to the data sheets."""

_ROUNDING = 1e-6
_SLICE = 5e-3  # polling interval of the stylus [s]


@documented
@dataclass(frozen=True)
class TouchSettings(PlaneSettings):
    """Settings of the Touch, in addition to `PlaneSettings`."""

    plane: str = string(
        "x-z",
        allowed="two axes of the device such as xy, xz or x-z",
        doc="axes of the device (right, up, towards the user) that become x and y; the third one is held",
    )
    library: str = string("", allowed="a file or folder", doc="libHD.so of OpenHaptics, if it is not found")
    configuration: str = string(
        "", allowed="a name", doc="name of the device in the maker's configuration; empty for the default device"
    )
    model: str = choice("touch", MODELS, doc="model, which determines the workspace (touch includes the Phantom Omni)")
    reset_encoders: bool = flag(
        False, doc="calibrate a device without inkwell: all links are held at right angles while it is opened"
    )
    patience: float = bounded(
        60.0, minimum=0.1, maximum=600.0, unit="s", doc="longest time until the person has calibrated the device"
    )
    keep_alive: float = bounded(
        1e-3, minimum=2e-4, maximum=0.01, unit="s", doc="period of the maker's servo loop, which repeats the command"
    )
    frame_timeout: float = bounded(
        0.1, minimum=0.02, maximum=1.0, unit="s", doc="time without a frame of the servo loop that ends the run"
    )
    round_trip: float = bounded(
        2e-3, above=0.0, maximum=0.1, unit="s", doc="expected time of an exchange, for advice on parameters"
    )
    mass: float = bounded(
        0.045, minimum=0.02, maximum=5.0, unit="kg", doc="moving mass at the stylus, for advice and for the emulation"
    )
    damping: float = bounded(
        0.1,
        minimum=0.0,
        maximum=20.0,
        unit="N s/m",
        doc="viscous friction at the stylus, for advice and for the emulation",
    )
    continuous_force: float = bounded(
        0.88, above=0.0, maximum=20.0, unit="N", doc="force in the plane that the motors can sustain"
    )
    full_force_time: float = bounded(
        5.0, above=0.0, maximum=3600.0, unit="s", doc="time for which cold motors can produce the largest force"
    )
    max_force: float = bounded(2.9, above=0.0, maximum=20.0, unit="N", doc="largest force in the plane")
    hold_force: float = bounded(1.5, minimum=0.0, maximum=5.0, unit="N", doc="largest force that holds the third axis")
    hold_stiffness: float = bounded(
        600.0, minimum=0.0, maximum=1000.0, unit="N/m", doc="spring that holds the third axis; 0 to leave it free"
    )
    resolution: float = bounded(5.5e-5, minimum=0.0, maximum=1e-3, unit="m", doc="smallest step of the position")

    @property
    def identity(self) -> str:
        """Identity of the device for messages."""
        return self.configuration or "the default device"


# --- per tick ---------------------------------------------------------------------------------------------------------

TOUCH = np.dtype([*plane_fields(SAMPLE_SIZE, COMMAND_SIZE), ("frame_timeout", "<f8")])
"""State of the device in one record."""

STALLED = 3
"""Value of ``fault``: no frame for ``frame_timeout``."""

CHANNELS: tuple[Channel, ...] = (("motor_temperature", "1", 1),)
"""Recorded channel, after the common ones of devices in a plane.

The manufacturer's prediction for the warmest motor, from 0 (cold) to 1.
"""


@kernel
def take_touch(s: Any, now: float, elapsed: float) -> None:
    """Read the newest sample at the nominal time `now`, `elapsed` after the clock's zero [s]."""
    if not begin_sample(s, now, elapsed):
        return
    if copy_sample(s):
        place_in_plane(s, 1)
        s.buttons = int(s.sample[4])
        if s.instant - s.sample[0] > s.frame_timeout:
            s.fault = STALLED
            return
    estimate_in_plane(s)
    s.channels[2] = s.sample[5]


@kernel
def give_touch(s: Any, x: float, y: float) -> None:
    """Publish the force [N]: the force in the plane, and the force that holds the third axis."""
    if accept(s, x, y):
        spread_force(s)
        send_command(s)


# --- driver -----------------------------------------------------------------------------------------------------------


class Touch(PlaneDriver):
    """Touch or Phantom in a plane, through the manufacturer's library: motion in the sample, force in the command.

    Parameters
    ----------
    settings : mapping, optional
        Settings of `TouchSettings`.
    clock : Clock, optional
        Clock of the run; without it, time counts from ``open``.

    Raises
    ------
    ConfigurationError
        On a wrong setting.
    """

    name = NAME
    settings_class: ClassVar[type[TouchSettings]] = TouchSettings
    settings: TouchSettings
    _exchange: TouchLink | None = None

    def __init__(self, settings: Mapping[str, Any] | None = None, *, clock: Clock | None = None) -> None:
        super().__init__(
            settings,
            clock,
            TOUCH,
            (take_touch, give_touch),
            identity=lambda own: own.identity,
            half=lambda own: MODELS[own.model],
            channels=CHANNELS,
        )
        own = self.settings
        self.spec = replace(self.spec, continuous_force=own.continuous_force, full_force_time=own.full_force_time)
        self._record["frame_timeout"] = own.frame_timeout

    @property
    def facts(self) -> dict[str, Any]:
        """Identity and limits of the open device according to the library."""
        return {} if self._exchange is None else self._exchange.facts

    def _library(self, resources: contextlib.ExitStack) -> str:
        """Return the place of the manufacturer's library; `resources` receives the clean-up."""
        return self.settings.library

    def _connect(self, resources: contextlib.ExitStack) -> TouchLink:
        """Open the device with a zero force, check limits and calibration, and switch the motors on."""
        own = self.settings
        library = library_of(OPENHAPTICS.load(self._library(resources), PROTOTYPES))
        link = library.open(own.configuration, own, own.reset_encoders)
        resources.callback(link.close)
        self._check_limits(link.facts)
        link.calibrate(own.patience)
        self._wait_for_stylus(link)
        self._safeguard(link, resources)
        link.switch_on()
        return link

    def _wait_for_stylus(self, link: TouchLink) -> None:
        """Wait until the stylus is in the workspace, such as after it was in the inkwell.

        Raises
        ------
        DeviceOpenError
            If it is not there within ``patience``.
        """
        own, plane = self.settings, Plane.of(self.settings)
        room = np.array((*self.spec.workspace_max, np.abs(plane.axes[2]) @ MODELS[own.model]))
        latest, instructed = time.monotonic() + own.patience, False
        while not (np.abs(plane.axes @ (link.samples.read()[1:4] - plane.middle)) <= room).all():  # nor if it is nan
            if words := link.failure_words():
                raise DeviceOpenError(f"{NAME}: {words}.")
            if time.monotonic() > latest:
                raise DeviceOpenError(
                    f"{NAME}: the stylus was not moved into the workspace within device.patience = {own.patience:g} s: "
                    "hold it in the middle of the workspace."
                )
            if not instructed:
                instruct("move the stylus to the middle of the workspace.")
                instructed = True
            pause(_SLICE)
        instruct("")

    def _check_limits(self, facts: Mapping[str, Any]) -> None:
        """Raise `DeviceOpenError` if the settings exceed the limits of the device according to the library."""
        own, plane = self.settings, Plane.of(self.settings)
        together = math.hypot(own.max_force, own.hold_force)
        for most in facts["max_force"]:
            if 0.0 < most < together - _ROUNDING:
                raise DeviceOpenError(
                    f"{NAME}: device.max_force = {own.max_force:g} N and device.hold_force = {own.hold_force:g} N "
                    f"together are {together:.3g} N; the {facts['model']} has {most:.3g} N: reduce them."
                )
        for lasting in facts["continuous_force"]:
            if 0.0 < lasting < own.continuous_force - _ROUNDING:
                raise DeviceOpenError(
                    f"{NAME}: device.continuous_force = {own.continuous_force:g} N: the {facts['model']} has "
                    f"{lasting:.3g} N."
                )
        box = 1e-3 * np.array(facts["usable_workspace_mm"])
        if len(box) < 6:
            return
        workspace = Workspace(self.spec.workspace_min, self.spec.workspace_max)
        corners = np.array([plane.middle + x * plane.axes[0] + y * plane.axes[1] for x, y in workspace.corners])
        if (corners < box[:3] - _ROUNDING).any() or (corners > box[3:] + _ROUNDING).any():
            sides = " x ".join(f"{1e3 * side:.0f}" for side in box[3:] - box[:3])
            raise DeviceOpenError(
                f"{NAME}: the workspace of device.model = {own.model!r} with device.plane and device.origin is not "
                f"within the {sides} mm of the {facts['model']}: change them."
            )

    def _fault_error(self, fault: int) -> DeviceFault:
        words = "" if self._exchange is None else self._exchange.failure_words()
        if fault == STALLED and not words:
            words = (
                f"the maker's servo loop has not run for {self.settings.frame_timeout:g} s: check the cable, and that "
                "no other program uses the device"
            )
        return DeviceFault(f"{self.name}: {words}; {TouchLink.remedy} if it still pushes.")
