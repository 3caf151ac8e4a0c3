"""Example package with a device and two friction laws for Haptics.

The description of the device is separate from the driver, because the list of devices must not need the SDK.
"""

from devices import BackendInfo
from haptics.device import Causality

PUCK = BackendInfo(
    name="puck",
    causality=Causality.IMPEDANCE,
    description="puck on a rocking air table, pushed by magnets",
    place="haptics_puck.driver:Puck",
)
