"""Emulators in other processes: scheduling, imports, and drivers that do not import emulators."""

import json
import os
import subprocess
import sys

import pytest

import devices
from tests.processes import ROOT
from tests.system.parallel.commands import run_python

STARTS = """
import json, os, socket, struct, sys
from devices.emulators.odrive.remote import spawn

priority = int(sys.argv[1])
if priority:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
with spawn({}) as address, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as wire:
    wire.connect(address)
    process = struct.unpack("3i", wire.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
    wire.send(b'\\x03["stalled"]')
    wire.recv(64)  # it serves by now
    threads = [int(name) for name in os.listdir(f"/proc/{process}/task")]
    loop = os.sched_getscheduler(process), os.sched_getparam(process).sched_priority
    others = [os.sched_getscheduler(thread) for thread in threads if thread != process]
    print(json.dumps((*loop, others)))
"""

SHARES = """
import json, os, sys
from concurrent.futures import ThreadPoolExecutor
from devices.emulators.odrive.remote import spawn

def processors(process=0):
    return sorted(os.sched_getaffinity(process))

if sys.argv[1:]:
    os.sched_setaffinity(0, {int(sys.argv[1])})
found = {"before": processors()}
with spawn({}) as address, ThreadPoolExecutor() as begun:
    emulator, = map(int, open("/proc/self/task/%d/children" % os.getpid()).read().split())
    found |= {"emulator": processors(emulator), "ours": processors(), "begun": begun.submit(processors).result()}
print(json.dumps({**found, "after": processors()}))
"""

PROCESSORS = sorted(os.sched_getaffinity(0))


def may_have_fifo():
    """Return whether another process gets FIFO scheduling."""
    trial = "import os; os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(20))"
    return subprocess.run([sys.executable, "-c", trial], stderr=subprocess.DEVNULL, check=False).returncode == 0


@pytest.mark.parametrize(("priority", "policy", "its"), [(0, os.SCHED_OTHER, 0), (20, os.SCHED_FIFO, 19)])
def test_emulator_starts_in_the_ordinary_class_and_serves_below_its_starter(priority, policy, its, tmp_path):
    if priority and not may_have_fifo():
        pytest.skip("FIFO scheduling is not granted here")
    begins = tmp_path / "policies"
    code = f"import os; print(os.sched_getscheduler(0), file=open({str(begins)!r}, 'a'))"
    (tmp_path / "sitecustomize.py").write_text(code)
    path = os.pathsep.join((str(tmp_path), str(ROOT)))
    found, of_loop, others = json.loads(run_python("-c", STARTS, priority, path=path).stdout)
    assert begins.read_text().split() == 2 * [str(os.SCHED_OTHER)]
    assert (found, of_loop) == (policy, its)
    assert set(others) <= {os.SCHED_OTHER}


def shared(*processor):
    """Return the processors of an emulator, of the thread that started it, and of a new thread of that."""
    return json.loads(run_python("-c", SHARES, *processor).stdout)


@pytest.mark.skipif(len(PROCESSORS) < 2, reason="there is one processor only")
def test_loop_and_emulator_get_different_processors():
    found = shared()
    assert len(found["emulator"]) == 1
    assert sorted(found["ours"] + found["emulator"]) == found["before"] == found["after"] == PROCESSORS
    assert found["begun"] == found["ours"]


@pytest.mark.skipif(len(PROCESSORS) < 2, reason="there is one processor only")
def test_pinned_loop_leaves_the_other_processors_to_its_emulator():
    found = shared(PROCESSORS[0])
    assert found["before"] == found["ours"] == found["begun"] == found["after"] == PROCESSORS[:1]
    assert set(found["emulator"]) >= set(PROCESSORS[1:])  # a container may leave out others that the machine has
    assert PROCESSORS[0] not in found["emulator"]


@pytest.mark.parametrize("name", [info.name for info in devices.describe_backends() if info.emulated])
def test_driver_does_not_import_emulators(name):
    """A new process has imported nothing before."""
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
    words, known = json.loads(run_python("-c", code).stdout)
    assert "unknown setting 'device.emulated'" in words
    assert known == []
