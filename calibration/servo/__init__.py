"""Identification of the position servo of an arm: delay, bandwidth and damping."""

from calibration.servo.motion import Excitation, measure_servo
from calibration.servo.response import Response, ServoFit, fit_servo

__all__ = ["Excitation", "Response", "ServoFit", "fit_servo", "measure_servo"]
