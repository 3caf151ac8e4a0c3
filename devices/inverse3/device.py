"""Driver of the Inverse3; see `devices.inverse3` for the guarantees about its force."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from devices.common.plane import PlaneDriver, PlaneSettings
from devices.inverse3 import guardian, service, websocket
from devices.inverse3.exchange import NAME, REST_PATIENCE, ServiceExchange, choose, require_usable
from devices.inverse3.kernels import CHANNELS, INVERSE3, give_inverse3, take_inverse3
from devices.inverse3.service import ADDRESS, KINDS, MessageError, force_template
from devices.inverse3.websocket import Address, CloseCode, Connection, ConnectionLost, Opcode, parse_address
from haptics.clock import Clock, pause
from haptics.errors import ConfigurationError, DeviceNotFoundError, DeviceOpenError
from haptics.settings import bounded, choice, documented, string

# Placement of origin and axes, by the service's names.
_PRESETS = ("arm_front_centered", "led_front_centered", "arm_front", "led_front", "defaults")

_READY_PAUSE = 0.02  # time between two polls of a device that is not ready yet [s]

_CLOSE_PATIENCE = 0.5  # timeout of the service's close frame [s]

_SLICE = 2e-3  # time between two polls of the connection [s]


@documented
@dataclass(frozen=True)
class Inverse3Settings(PlaneSettings):
    """Settings of the Inverse3, in addition to `PlaneSettings`."""

    round_trip: float = bounded(
        5e-4, above=0.0, maximum=0.1, unit="s", doc="expected time of an exchange, for advice on parameters"
    )
    mass: float = bounded(
        0.2, minimum=0.05, maximum=5.0, unit="kg", doc="moving mass at the handle, for advice and for the emulation"
    )
    address: str = string(ADDRESS, allowed="an address ws://HOST:PORT", doc="address of the Haply service")
    device_id: str = string(
        "", allowed="a number such as 049D", doc="number or UUID of the device; may be empty if there is only one"
    )
    kind: str = choice("inverse3", KINDS, doc="type of the device, which determines its workspace")
    preset: str = choice("arm_front_centered", _PRESETS, doc="placement of the device, in the service's terms")
    max_force: float = bounded(
        5.0, above=0.0, maximum=10.0, unit="N", doc="largest force in the plane; the manufacturer does not state it"
    )
    hold_time: float = bounded(
        0.0,
        minimum=0.0,
        maximum=10.0,
        unit="s",
        doc="time in which the holding force removes a remaining distance (integral part); 0 for a spring alone",
    )
    patience: float = bounded(
        5.0, minimum=0.1, maximum=120.0, unit="s", doc="longest time until the service and the device are ready"
    )
    reply_timeout: float = bounded(
        0.25, minimum=0.02, maximum=2.0, unit="s", doc="time without an answer after which the service counts as lost"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            parse_address(self.address)
        except ValueError:
            raise ConfigurationError(
                f"device.address = {self.address!r}: must be an address ws://HOST:PORT, such as {ADDRESS}."
            ) from None

    @property
    def identity(self) -> str:
        """Identity of the device for messages."""
        return self.device_id or "the only device"


class Inverse3(PlaneDriver):
    """Inverse3 or Minverse in a plane: motion in the sample, force in the command.

    The position of the cursor is relative to the middle of the workspace (``origin``), along two of the service's axes.
    The driver holds the third axis with a spring and a damper, up to ``hold_force``; during safe output that axis is
    free. The velocity is estimated from positions, as in all drivers. The manufacturer states no maximum force; the
    value in the data sheet is a cautious setting. The service's timeout of a force is not documented either.

    Parameters
    ----------
    settings : mapping, optional
        Settings of `Inverse3Settings`.
    clock : Clock, optional
        Clock of the run; without it, time counts from ``open``.

    Raises
    ------
    ConfigurationError
        On a wrong setting.
    """

    name = NAME
    settings_class: ClassVar[type[Inverse3Settings]] = Inverse3Settings
    settings: Inverse3Settings

    def __init__(self, settings: Mapping[str, Any] | None = None, *, clock: Clock | None = None) -> None:
        super().__init__(
            settings,
            clock,
            INVERSE3,
            (take_inverse3, give_inverse3),
            identity=lambda own: own.identity,
            half=lambda own: 3 * (KINDS[own.kind],),
            channels=CHANNELS,
        )

    def _far_end(self, resources: contextlib.ExitStack) -> Address:
        """Return the address of the service; `resources` receives the clean-up."""
        return parse_address(self.settings.address)

    def _connect(self, resources: contextlib.ExitStack) -> ServiceExchange:
        """Connect to the service, set up the device, start the guardian and exchange a zero force."""
        own, address = self.settings, self._far_end(resources)
        try:
            try:
                connection = Connection(address, own.patience)
            except OSError as error:
                raise DeviceNotFoundError(
                    f"{NAME}: no Haply service answers at {address.host}:{address.port} ({error.strerror or error}): "
                    "start the Haply Hub or the service itself, or set device.address. Or do without one: "
                    "device.emulated=true."
                ) from error
            resources.callback(connection.close, _CLOSE_PATIENCE)
            device_id = self._set_up(connection)
            exchange = ServiceExchange(connection, device_id, own, own.reply_timeout)
            mask, line = os.urandom(4), connection.socket.fileno()
            goodbye = websocket.close_payload(CloseCode.NORMAL)
            frames = (Opcode.TEXT, _no_force(device_id)), (Opcode.CLOSE, goodbye)
            words = [str(line), *(websocket.encode(opcode, payload, mask).hex() for opcode, payload in frames)]
            self._safeguard(exchange, resources, guardian.__file__, words, line)
            if not exchange.come_to_rest():
                raise ConnectionLost(f"the service did not answer within {REST_PATIENCE:g} s")
            return exchange
        except (ConnectionLost, websocket.HandshakeError, MessageError) as error:
            raise DeviceOpenError(f"{NAME}: {error}; is this the Haply service, version 3.5 or later?") from error

    def _set_up(self, connection: Connection) -> str:
        """Select the device, set it up and wait until it is ready; return its number."""
        own, latest = self.settings, time.monotonic() + self.settings.patience
        device = choose(service.parse_inventory(_next_text(connection, latest)), own.device_id)
        require_usable(device, own.kind)
        message = service.set_up_message(device.device_id, own.preset)
        while True:
            connection.send(message)
            answered = max(latest, time.monotonic() + own.reply_timeout)
            trouble = service.find_reading(_next_text(connection, answered), device.device_id).trouble
            if not trouble:
                return device.device_id
            if time.monotonic() > latest:
                raise DeviceOpenError(f"{NAME}: the device {device.device_id} {trouble}.")
            message = _no_force(device.device_id)
            pause(_READY_PAUSE)


def _no_force(device_id: str) -> bytes:
    return (force_template(device_id) % (0.0, 0.0, 0.0)).encode("ascii")


def _next_text(connection: Connection, latest: float) -> str:
    """Return the next text of the service, which must arrive before `latest` [s, time.monotonic]."""
    while not (texts := connection.receive(0.0)):
        if time.monotonic() > latest:
            raise ConnectionLost("the service says nothing")
        pause(_SLICE)
    return texts[-1]
