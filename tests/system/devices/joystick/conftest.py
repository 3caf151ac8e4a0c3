from tests.devices.joystick.conftest import compiled, opened, trace

__all__ = ["compiled", "opened", "trace"]
