"""Long computations for the topic of tests/devices/emulated/test_emulated_settings.py."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import devices
from tests.devices.emulated.test_emulated_settings import EMULATED


@pytest.mark.parametrize("name", EMULATED)
def test_the_driver_alone_knows_nothing_of_emulation(name: str) -> None:
    """Asked in a process of its own, where nobody has imported anything before."""
    module, _, cls = devices.BACKENDS[name].place.partition(":")
    code = (
        f"import json, sys, {module} as driver\n"
        "from haptics.errors import ConfigurationError\n"
        f"driver.{cls}()\n"
        "try:\n"
        f"    driver.{cls}({{'emulated': True}})\n"
        "except ConfigurationError as error:\n"
        "    words = str(error)\n"
        "known = [m for m in sys.modules if m.startswith(('devices.emul', 'devices.virtual', 'devices.faults'))]\n"
        "print(json.dumps([words, known]))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=True)
    words, known = json.loads(done.stdout)
    assert "unknown setting 'device.emulated'" in words
    assert known == []
