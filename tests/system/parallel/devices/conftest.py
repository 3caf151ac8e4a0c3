from tests.devices.arm.conftest import stepped
from tests.devices.joystick.conftest import compiled, trace
from tests.system.devices.conftest import own_cache

__all__ = ["compiled", "own_cache", "stepped", "trace"]
