"""Settings of the Inverse3."""

from __future__ import annotations

from dataclasses import dataclass

from devices.common.compensation import CompensationSettings
from devices.common.settings import RunSettings, VelocitySettings, check_velocity
from devices.inverse3.handshake import Address, parse_address
from devices.inverse3.identities import ADDRESS
from haptics.errors import ConfigurationError
from haptics.settings import bounded, check, choice, documented, string, unrestricted

KINDS = {"inverse3": 0.07, "inverse3x": 0.07, "minverse": 0.028}
"""Half the side of the workspace [m] by kind of device.

The workspace is a square inside the sphere of 0.10 m (0.04 m) about the middle within which the manufacturer's examples
keep the cursor.
"""

PLANES = {"xy": (0, 1, 2), "xz": (0, 2, 1), "yz": (1, 2, 0)}
"""Indices of the service's axes for x, y and the held axis, by plane."""

PRESETS = ("arm_front_centered", "led_front_centered", "arm_front", "led_front", "defaults")
"""Names that the service uses for the placement of origin and axes."""

_POINT = "three numbers such as [0.0, 0.0, 0.0]"
_FARTHEST = 0.5


@documented
@dataclass(frozen=True)
class Inverse3Settings(RunSettings, CompensationSettings, VelocitySettings):
    """Settings of the Inverse3.

    They extend `RunSettings`, `CompensationSettings` and `VelocitySettings`.
    """

    address: str = string(ADDRESS, allowed="an address ws://HOST:PORT", doc="where the Haply service listens")
    device_id: str = string(
        "", allowed="a number such as 049D", doc="which device, by its number or UUID; empty for the only one"
    )
    kind: str = choice("inverse3", KINDS, doc="what it is, for its workspace")
    preset: str = choice("arm_front_centered", PRESETS, doc="how it stands, by the service's name for it")
    plane: str = choice("xy", PLANES, doc="the service's axes that are x and y here; the third one is held")
    origin: tuple[float, ...] = unrestricted(
        (0.0, 0.0, 0.0), _POINT, doc="middle of the workspace, along the service's three axes [m]"
    )
    max_force: float = bounded(
        5.0, above=0.0, maximum=10.0, unit="N", doc="largest force in the plane; the maker states none, so this is ours"
    )
    hold_stiffness: float = bounded(
        300.0, minimum=0.0, maximum=1000.0, unit="N/m", doc="spring that holds the third axis; 0 to leave it free"
    )
    hold_damping: float = bounded(3.0, minimum=0.0, maximum=10.0, unit="N s/m", doc="damper that holds the third axis")
    hold_force: float = bounded(2.0, minimum=0.0, maximum=5.0, unit="N", doc="largest force that holds the third axis")
    patience: float = bounded(
        5.0, minimum=0.1, maximum=120.0, unit="s", doc="how long the service and the device may take to get ready"
    )
    watchdog: float = bounded(0.1, minimum=0.02, maximum=1.0, unit="s", doc="no force after so long without a command")
    keep_alive: float = bounded(
        2e-3, minimum=2e-4, maximum=0.01, unit="s", doc="the last command is repeated after this long without a new one"
    )
    reply_timeout: float = bounded(
        0.25, minimum=0.02, maximum=2.0, unit="s", doc="after this long without an answer the service counts as lost"
    )
    round_trip: float = bounded(
        5e-4, above=0.0, maximum=0.1, unit="s", doc="expected time of an exchange, for advice on parameters"
    )
    resolution: float = bounded(
        1e-5, minimum=0.0, maximum=1e-3, unit="m", doc="smallest step of the position; not stated in the protocol"
    )
    mass: float = bounded(
        0.2, minimum=0.05, maximum=5.0, unit="kg", doc="moving mass at the handle, for advice and emulation"
    )
    damping: float = bounded(
        0.5, minimum=0.0, maximum=20.0, unit="N s/m", doc="own friction at the handle, for advice and emulation"
    )

    def __post_init__(self) -> None:
        check(self, "device")
        check_velocity(self, "device.")
        if not _is_point(self.origin):
            raise ConfigurationError(
                f"device.origin = {self.origin!r}: must be {_POINT}, each at most {_FARTHEST:g} m from 0."
            )
        object.__setattr__(self, "origin", tuple(float(part) for part in self.origin))  # frozen; files contain lists
        try:
            parse_address(self.address)
        except ValueError:
            raise ConfigurationError(
                f"device.address = {self.address!r}: must be an address ws://HOST:PORT, such as {ADDRESS}."
            ) from None

    @property
    def service(self) -> Address:
        """Address of the service."""
        return parse_address(self.address)

    @property
    def identity(self) -> str:
        """Identity of the device for messages."""
        return self.device_id or "the only device"

    @property
    def axes(self) -> tuple[int, int, int]:
        """Indices of the service's axes for x, y and the held axis."""
        return PLANES[self.plane]

    @property
    def half_size(self) -> float:
        """Half the side of the square workspace [m]."""
        return KINDS[self.kind]


def _is_point(value: object) -> bool:
    return isinstance(value, list | tuple) and len(value) == 3 and all(map(_is_near, value))


def _is_near(part: object) -> bool:
    return isinstance(part, int | float) and not isinstance(part, bool) and abs(part) <= _FARTHEST
