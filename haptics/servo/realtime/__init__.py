"""Punctuality: what the servo asks the operating system for (`requests`), what it was granted, and what a run used."""

from haptics.servo.realtime.requests import RealTime, RealTimeSettings, enter, granted_nothing
from haptics.servo.realtime.usage import ProcessState, Usage, stolen_time

__all__ = [
    "ProcessState",
    "RealTime",
    "RealTimeSettings",
    "Usage",
    "enter",
    "granted_nothing",
    "stolen_time",
]
