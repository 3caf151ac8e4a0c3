"""Driver of the Inverse3; see `devices.inverse3` for the guarantees about its force."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping
from typing import Any, ClassVar

from devices.common.compensation import compensation_of
from devices.common.driver import ForceDriver
from devices.common.guard import FAREWELL, Guard
from devices.common.latch import Wake
from devices.common.settings import velocity_lag
from devices.common.velocity import fill_velocity, prepare_velocity
from devices.inverse3 import guardian
from devices.inverse3.choosing import NAME, choose, require_free, require_kind
from devices.inverse3.connection import Connection, ConnectionLost
from devices.inverse3.exchange import REMEDY, Exchange
from devices.inverse3.frames import CloseCode, Opcode, close_payload, encode
from devices.inverse3.handshake import Address, HandshakeError
from devices.inverse3.kernels import CHANNELS, INVERSE3, connect, give_inverse3, take_inverse3
from devices.inverse3.messages import (
    Listed,
    MessageError,
    find_reading,
    force_template,
    parse_inventory,
    set_up_message,
)
from devices.inverse3.settings import Inverse3Settings
from haptics.clock import Clock, pause, raise_if_cancelled
from haptics.device import Causality, DeviceSpec
from haptics.errors import DeviceFault, DeviceNotFoundError, DeviceOpenError, HapticError
from haptics.settings import build

LOOK_PAUSE = 0.02
"""Time between two polls of a device that is not ready yet [s]."""

_SLICE = 2e-3
"""Time between two polls of the connection [s]."""

CLOSE_PATIENCE = 0.5
"""Timeout of the service's close frame [s]."""

_WRONG = (ConnectionLost, HandshakeError, MessageError)


class Inverse3(ForceDriver):
    """Inverse3 or Minverse in a plane: motion in the sample, force in the command.

    The position of the cursor is relative to the middle of the workspace (``origin``), along two of the service's axes.
    The driver holds the third axis with a spring and a damper, up to ``hold_force``; during safe output that axis is
    free. The velocity is estimated from positions, as in all drivers.

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

    def __init__(self, settings: Mapping[str, Any] | None = None, *, clock: Clock | None = None) -> None:
        self.settings = own = build(self.settings_class, settings or {}, "device")
        super().__init__(INVERSE3, (take_inverse3, give_inverse3), clock, own.period)
        added = compensation_of(own, NAME, own.identity, self._clock.period, own.resolution)
        self._fill(own, own.resolution, added)
        record = self._record
        fill_velocity(record["lift"], own, own.resolution, self._clock.period)
        record["axes"], record["middle"], record["period"] = own.axes, own.origin, self._clock.period
        record["hold_stiffness"], record["hold_damping"] = own.hold_stiffness, own.hold_damping
        record["hold_limit"] = own.hold_force
        self._state.channels = record["channels"][0][: sum(size for _, _, size in CHANNELS)]
        self._exchange: Exchange | None = None
        self._resources = contextlib.ExitStack()

    @property
    def spec(self) -> DeviceSpec:
        """Data sheet. The manufacturer states no maximum force; the value here is a cautious setting.

        The driver and its guardian implement the watchdog; the service's timeout is not documented.
        """
        own, added, half = self.settings, self._compensation, self.settings.half_size
        return DeviceSpec(
            name=NAME,
            causality=Causality.IMPEDANCE,
            identity=own.identity,
            rate_min=100.0,
            rate_max=1000.0,
            workspace_min=(-half, -half),
            workspace_max=(half, half),
            max_force=own.max_force,
            max_force_rate=2000.0,
            max_speed=1.0,
            max_acceleration=own.max_force / own.mass,
            max_sample_age=10e-3,
            watchdog=own.watchdog,
            position_resolution=own.resolution,
            mass=own.mass,
            damping=added.left_of(own.damping) if added else own.damping,
            delay=max(min(self._clock.period, own.keep_alive), own.round_trip),
            velocity_lag=velocity_lag(own, own.resolution, self._clock.period),
            least_friction=added.least_friction if added else None,
            channels=CHANNELS,
        )

    # --- driver interface ---------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Connect to the service and validate that the device can be used; does nothing if it is open.

        Raises
        ------
        DeviceNotFoundError
            If the service or the device is not found.
        DeviceOpenError
            If it cannot be used.
        """
        if self._exchange is not None:
            return
        own = self.settings
        self._prepare()
        prepare_velocity(self._record["lift"])
        self._record["lift"]["samples"] = 0
        self._begin_log(own.log)
        resources = contextlib.ExitStack()
        try:
            exchange = self._connect(resources)
            connect(self._record, exchange)
            raise_if_cancelled()
            exchange.start()
        except _WRONG as error:
            _undo(resources)
            raise DeviceOpenError(f"{NAME}: {error}; is this the Haply service, version 3.5 or later?") from error
        except BaseException:
            _undo(resources)
            raise
        self._exchange, self._resources = exchange, resources

    def close(self) -> None:
        """Set the force to zero, verify that, and disconnect; does nothing if it is not open.

        Raises
        ------
        DeviceFault
            If the service did not confirm zero force.
        """
        if self._exchange is None:
            return
        self._exchange = None
        self.compensate(0.0)
        self._resources.close()
        self._end_log()

    # --- private ------------------------------------------------------------------------------------------------------

    def _opened(self) -> Exchange:
        if self._exchange is None:
            raise DeviceOpenError(f"{NAME} is not open: call open() first.")
        return self._exchange

    def _threads(self) -> Wake:
        return self._opened().wake

    def _words(self, fault: int) -> DeviceFault:
        return DeviceFault(f"{NAME}: {self._opened().failure}")

    def _far_end(self, resources: contextlib.ExitStack) -> Address:
        """Return the address of the service; `resources` receives the clean-up."""
        return self.settings.service

    def _connect(self, resources: contextlib.ExitStack) -> Exchange:
        """Connect and start the guardian; `resources` receives the clean-up, zero force first."""
        own = self.settings
        address = self._far_end(resources)
        try:
            connection = Connection(address, own.patience)
        except OSError as error:
            raise DeviceNotFoundError(
                f"{NAME}: no Haply service answers at {address.host}:{address.port} ({error.strerror or error}): start "
                "the Haply Hub or the service itself, or set device.address. Or do without one: device.emulated=true."
            ) from error
        resources.callback(connection.close, CLOSE_PATIENCE)
        device = self._wait_until_ready(connection)
        guard = self._post_guardian(connection, device)
        exchange = Exchange(
            connection,
            guard,
            device.device_id,
            pause=own.keep_alive,
            watchdog=own.watchdog,
            reply_timeout=own.reply_timeout,
        )
        resources.callback(_shut_down, exchange, guard)
        exchange.first_sample()
        return exchange

    def _wait_until_ready(self, connection: Connection) -> Listed:
        """Return the selected device, set up and ready."""
        own, latest = self.settings, time.monotonic() + self.settings.patience
        device = choose(parse_inventory(_next_text(connection, latest)), own.device_id)
        require_kind(device, own.kind)
        require_free(device)
        message = set_up_message(device.device_id, own.preset)
        while True:
            connection.send(message)
            answered = max(latest, time.monotonic() + own.reply_timeout)
            trouble = find_reading(_next_text(connection, answered), device.device_id).trouble
            if not trouble:
                return device
            if time.monotonic() > latest:
                raise DeviceOpenError(f"{NAME}: the device {device.device_id} {trouble}.")
            message = _no_force(device.device_id)
            pause(LOOK_PAUSE)

    def _post_guardian(self, connection: Connection, device: Listed) -> Guard:
        """Start the guardian, which shares the connection and receives the frames that set the force to zero."""
        line = connection.socket.fileno()
        mask = os.urandom(4)
        zero = encode(Opcode.TEXT, _no_force(device.device_id), mask)
        goodbye = encode(Opcode.CLOSE, close_payload(CloseCode.NORMAL), mask)
        words = str(line), zero.hex(), goodbye.hex()
        return Guard("the service", guardian.__file__, words, files=(line,), silence=self.settings.watchdog)


def _no_force(device_id: str) -> bytes:
    return (force_template(device_id) % (0.0, 0.0, 0.0)).encode("ascii")


def _next_text(connection: Connection, latest: float) -> str:
    """Return the next text of the service, which must arrive before `latest` [s, time.monotonic]."""
    while not (texts := connection.receive(0.0)):
        if time.monotonic() > latest:
            raise ConnectionLost("the service says nothing")
        pause(_SLICE)
    return texts[-1]


def _undo(resources: contextlib.ExitStack) -> None:
    with contextlib.suppress(DeviceFault):  # report the first error
        resources.close()


def _shut_down(exchange: Exchange, guard: Guard) -> None:
    """Set the force to zero and dismiss the guardian; if that fails, hand over to the guardian."""
    exchange.stop()
    at_rest, reason = False, "it did not confirm that"
    try:
        at_rest = exchange.come_to_rest()
    except HapticError as error:
        reason = str(error)
    finally:
        if at_rest:
            guard.dismiss()
        else:
            guard.hand_over(FAREWELL)
    if not at_rest:
        raise DeviceFault(f"{NAME}: the force could not be set to 0 ({reason}); {REMEDY}.")
