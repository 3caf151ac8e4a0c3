"""The position servo of an arm: how late, how fast and how well damped it follows its reference."""

from calibration.servo.motion import Excitation, measure_servo
from calibration.servo.response import Response, ServoFit, fit_servo

__all__ = ["Excitation", "Response", "ServoFit", "fit_servo", "measure_servo"]
