"""A device and two friction laws for Haptics, in a package of their own.

What describes the device is here, where it can be had without the driver: the list of devices must not need the SDK.
"""

from devices import BackendInfo
from haptics.device import Causality

PUCK = BackendInfo(
    name="puck",
    causality=Causality.IMPEDANCE,
    description="puck on a rocking air table, pushed by magnets",
    place="haptics_puck.driver:Puck",
)
