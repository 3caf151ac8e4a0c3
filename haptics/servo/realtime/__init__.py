"""Real-time operation: requests to the operating system, granted resources and resource usage."""

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
