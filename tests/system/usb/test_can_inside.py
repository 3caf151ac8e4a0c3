"""The driver's port on a virtual CAN interface of a kernel of its own, where this machine's has none.

The emulated drive is too slow in there, where nothing is compiled: only what needs no drive is asked.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.processes import ROOT
from tests.system.usb import kernel

pytestmark = [
    pytest.mark.skipif(bool(kernel.why_not()), reason=kernel.why_not()),
]

ASKED = ROOT / "tests" / "devices" / "arm" / "can" / "test_vcan.py"
WITHOUT = "cacheprovider", "rerunfailures", "xdist"
"""Plug-ins that write to disk or need the internet's protocols, which are not in there."""


def test_the_port_s_own_tests_pass_on_the_kernel_s_can(tmp_path: Path) -> None:
    words = [word for plugin in WITHOUT for word in ("-p", f"no:{plugin}")]
    words += ["-q", "-rs", "-c", "/dev/null", "--rootdir", str(ROOT), "-k", "not drives_over", str(ASKED)]
    try:
        out, said = kernel.run(kernel.unpacked(tmp_path), "pytest", *words, folder=tmp_path)
    except kernel.KernelAbsent as absent:
        pytest.skip(str(absent))
    found = re.findall(r"(\d+) (passed|skipped|failed|deselected)", out)
    assert {what: int(count) for count, what in found} == {"passed": 4, "deselected": 1}, (out, said)
