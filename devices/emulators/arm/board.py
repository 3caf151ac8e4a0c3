"""The emulated drive whose motors are those of the arm, set up and started with it."""

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
"""Largest current of a motor [A]."""

SPEED_LIMIT = 100.0
"""Of the motors [turn/s], or ..."""

RESERVE = 1.2
"""... so many times what the arm asks of them, where that is more."""

TRIED = 1.5
"""A watchdog that is tried has let go of its motor after so many times its time-out."""


class ArmBoard(EmulatedOdrive):
    """An emulated drive with an arm behind it, set up as its owner would have done that.

    The hand takes hold when the motors are driven for the first time, and have been for as long as a watchdog that is
    tried would let them; all times of faults count from then.

    Parameters
    ----------
    plant : ArmPlant
        The arm.
    body : ArmBody
        What it is like, for the setting up.
    motor_faults : iterable of str
        Of the drive (`devices.emulators.odrive.faults`).
    sensor_faults : WireFaults, optional
        Of the force sensor.
    time : BusTime, optional
        By default the wall's.
    fastest : float
        What the arm asks of its motors [turn/s].
    watchdog : float
        The time-out of its watchdogs, which are on [s]; 0 where the driver switches them on.
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
        """Make up for the time that has gone by; return the names of the faults that are there now."""
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

    # --- what the sensor asks ----------------------------------------------------------------------------------------

    def wrench(self) -> list[float]:
        """Return what the sensor shows now, (6,) [N], [N m]."""
        with self.lock:
            self.catch_up()
            return self.plant.wrench()

    def sensor_faults(self) -> frozenset[str]:
        """Return the names of the faults that the sensor has now."""
        return self._sensor_faults.at(self.now)


def _set_up(body: ArmBody, speed_limit: float) -> dict[str, Any]:
    """Return settings of an axis that suit the arm: gains for what its motor has to turn, and the limits."""
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
