from tests.devices.arm.conftest import stepped

__all__ = ["stepped"]
