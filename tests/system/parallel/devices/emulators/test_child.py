"""An emulator in a process of its own: how it is scheduled beside the loop that has started it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

STARTS = """
import json, os, socket, struct, sys
from devices.emulators.odrive.child import spawn

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
from devices.emulators.odrive import child

def processors(process=0):
    return sorted(os.sched_getaffinity(process))

if sys.argv[1:]:
    os.sched_setaffinity(0, {int(sys.argv[1])})
found = {"before": processors()}
with child.spawn({}) as address, ThreadPoolExecutor() as begun:
    emulator, = map(int, open("/proc/self/task/%d/children" % os.getpid()).read().split())
    found |= {"its own": processors(emulator), "ours": processors(), "begun": begun.submit(processors).result()}
print(json.dumps({**found, "after": processors()}))
"""

PROCESSORS = sorted(os.sched_getaffinity(0))


def may_have_fifo() -> bool:
    """Try it in another process."""
    trial = "import os; os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(20))"
    return subprocess.run([sys.executable, "-c", trial], stderr=subprocess.DEVNULL, check=False).returncode == 0


@pytest.mark.parametrize(("priority", "policy", "its"), [(0, os.SCHED_OTHER, 0), (20, os.SCHED_FIFO, 19)])
def test_its_loop_comes_just_behind_the_one_that_started_it_and_nothing_else_of_it(
    priority: int, policy: int, its: int
) -> None:
    if priority and not may_have_fifo():
        pytest.skip("FIFO scheduling is not granted here")
    root = str(Path(__file__).parents[5])
    command = [sys.executable, "-c", STARTS, str(priority)]
    said = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=root, check=True).stdout
    found, of_loop, others = json.loads(said)
    assert (found, of_loop) == (policy, its)
    assert set(others) <= {os.SCHED_OTHER}


def shared(*processor: str) -> dict[str, list[int]]:
    """Return which processors an emulator, the thread that started it and one begun by that may use."""
    root = str(Path(__file__).parents[5])
    command = [sys.executable, "-c", SHARES, *processor]
    found: dict[str, list[int]] = json.loads(subprocess.run(command, capture_output=True, cwd=root, check=True).stdout)
    return found


@pytest.mark.skipif(len(PROCESSORS) < 2, reason="there is one processor only")
def test_the_loop_and_its_emulator_are_never_put_on_one_processor() -> None:
    found = shared()
    assert len(found["its own"]) == 1
    assert sorted(found["ours"] + found["its own"]) == found["before"] == found["after"] == PROCESSORS
    assert found["begun"] == found["ours"]


@pytest.mark.skipif(len(PROCESSORS) < 2, reason="there is one processor only")
def test_a_loop_that_stays_on_one_processor_leaves_the_others_to_its_emulator() -> None:
    found = shared(f"{PROCESSORS[0]}")
    assert found["before"] == found["ours"] == found["begun"] == found["after"] == PROCESSORS[:1]
    assert set(found["its own"]) >= set(PROCESSORS[1:])  # a container may leave out others that the machine has
    assert PROCESSORS[0] not in found["its own"]


@pytest.mark.parametrize("module", ["devices.emulators.arm.child", "devices.emulators.odrive.child"])
def test_nothing_that_takes_long_is_imported_before_it_has_settled_in(module: str) -> None:
    """Until then it has the priority of the loop that started it."""
    trial = f"import sys, {module}; print('numba' in sys.modules or 'usb' in sys.modules)"
    root = str(Path(__file__).parents[5])
    said = subprocess.run([sys.executable, "-c", trial], stdout=subprocess.PIPE, text=True, cwd=root, check=True).stdout
    assert said == "False\n"
