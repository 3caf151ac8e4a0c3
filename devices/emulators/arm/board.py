"""Emulated drive whose motors turn the arm."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from devices.arm.body import ArmBody
from devices.emulators.arm.gains import gains_for
from devices.emulators.arm.plant import ArmPlant
from devices.emulators.odrive.board import EmulatedOdrive
from devices.emulators.times import BusTime
from devices.emulators.wire_faults import WireFaults

CURRENT = 10.0
"""Maximum current of a motor [A]."""

SPEED_LIMIT = 100.0
"""Minimum of the speed limit of the motors [turn/s]."""

RESERVE = 1.2
"""Speed limit of the motors as a multiple of the speed that the arm requires, if that is larger."""

TRIED = 1.5
"""Time in multiples of its timeout after which a tested watchdog has disarmed its motor."""


class ArmBoard(EmulatedOdrive):
    """Emulated drive with an arm behind it, configured for that arm.

    The hand grasps the handle when the motors have been armed for longer than a tested watchdog would allow. All fault
    times count from then.

    Parameters
    ----------
    plant : ArmPlant
        The arm.
    body : ArmBody
        Model of the arm, for the configuration.
    motor_faults : iterable of str
        Faults of the drive (`devices.emulators.odrive.faults`).
    sensor_faults : WireFaults, optional
        Faults of the force sensor.
    time : BusTime, optional
        Clock; by default real time.
    fastest : float
        Speed that the arm requires of its motors [turn/s].
    watchdog : float
        Timeout of its enabled watchdogs [s]; 0 if the driver enables them.
    """

    plant: ArmPlant

    def __init__(
        self,
        plant: ArmPlant,
        body: ArmBody,
        motor_faults: Iterable[str] = (),
        sensor_faults: WireFaults | None = None,
        time: BusTime | None = None,
        fastest: float = 0.0,
        watchdog: float = 0.0,
    ) -> None:
        super().__init__(plant, time=time, faults=motor_faults)
        self._sensor_faults = sensor_faults or WireFaults({})
        self._begins(math.inf)
        self._tried, self._driven_since = TRIED * watchdog, math.inf
        for axis in self.inside.axes:
            axis.values |= _set_up(body, max(SPEED_LIMIT, RESERVE * fastest))
            axis.values |= {"config.watchdog_timeout": watchdog, "config.enable_watchdog": watchdog > 0.0}

    def catch_up(self) -> frozenset[str]:
        """Advance to the present time; return the names of the active faults."""
        with self.lock:
            if math.isinf(self.faults.origin):
                driven = all(axis.driven for axis in self.inside.axes)
                self._driven_since = min(self._driven_since, self.now) if driven else math.inf
                if self.now - self._driven_since >= self._tried:
                    self._begins(self.now)
                    self.plant.begin()
            return super().catch_up()

    def _begins(self, instant: float) -> None:
        self.faults.origin = self._sensor_faults.origin = instant

    # --- interface to the sensor -------------------------------------------------------------------------------------

    def wrench(self) -> list[float]:
        """Return the present measurement of the sensor, (6,) [N], [N m]."""
        with self.lock:
            self.catch_up()
            return self.plant.wrench()

    def sensor_faults(self) -> frozenset[str]:
        """Return the names of the active faults of the sensor."""
        return self._sensor_faults.at(self.now)


def _set_up(body: ArmBody, speed_limit: float) -> dict[str, Any]:
    """Return settings of an axis for the arm: gains for the inertia of its motor, and limits."""
    gains = gains_for(body)
    return {
        "motor.config.torque_constant": body.torque_limit / CURRENT,
        "motor.config.current_lim": CURRENT,
        "encoder.config.cpr": body.encoder_counts,
        "controller.config.vel_limit": speed_limit,
        "controller.config.pos_gain": gains.position,
        "controller.config.vel_gain": gains.speed,
        "controller.config.vel_integrator_gain": gains.integrator,
    }
