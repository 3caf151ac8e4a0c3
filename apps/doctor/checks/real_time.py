"""Checks of real-time permissions granted by the operating system."""

from __future__ import annotations

import functools
import importlib
import os
import re
from collections.abc import Callable
from typing import Any

from apps.doctor.checks.processor import container
from apps.doctor.child import call_in_child
from apps.doctor.finding import Finding, note, ok, problem
from apps.doctor.machine import LOG_IN_AGAIN, Machine
from devices.common.bus import GROUP

LIMITS = f"/etc/security/limits.d/{GROUP}.conf"
LIMIT_LINES = (f"@{GROUP} - rtprio 95", f"@{GROUP} - memlock unlimited")
LATENCY_DEVICE = "/dev/cpu_dma_latency"
LATENCY_RULE = f'KERNEL=="cpu_dma_latency", GROUP="{GROUP}", MODE="0660"'
_NOTHING_INSIDE = "# it cannot be granted inside this container; start the container with these options too:"
_ENOUGH_RUNTIME = 0.5
"""Required share of time for real-time processes; the servo uses a tenth of one processor."""


def request() -> dict[str, Any]:
    """Enter real-time mode like the servo, and return the granted properties.

    Runs in a separate process, because this is irreversible.
    """
    from haptics.servo.realtime import request_real_time

    return request_real_time().as_dict()


@functools.cache
def granted() -> dict[str, Any]:
    """Return the real-time properties granted to a new process.

    See `haptics.servo.realtime.RealTime`. The result is cached.
    """
    answer: dict[str, Any] = call_in_child("apps.doctor.checks.real_time:request")
    return answer


Granted = Callable[[], dict[str, Any]]
Limit = Callable[[str], float | None]


def limit_of(name: str) -> float | None:
    """Return the resource limit `name` (as in the module `resource`).

    Infinity if unlimited, None if unavailable.
    """
    try:
        resource = importlib.import_module("resource")  # does not exist on Windows
        soft = resource.getrlimit(getattr(resource, name))[0]
    except (ImportError, AttributeError, OSError):
        return None
    return float("inf") if soft == resource.RLIM_INFINITY else float(soft)


def _rights(machine: Machine) -> tuple[str, ...]:
    """Return the shell commands that grant real-time scheduling and memory locking."""
    if container(machine):
        return (_NOTHING_INSIDE, "#   --cap-add=SYS_NICE --cap-add=IPC_LOCK --ulimit rtprio=95 --ulimit memlock=-1")
    if machine.is_root:
        return (
            "# root lacks the capabilities CAP_SYS_NICE and CAP_IPC_LOCK here; see which it has:",
            "capsh --print",
        )
    if all(line in (machine.read(LIMITS) or "") for line in LIMIT_LINES) and _is_listed(machine):
        return (
            "# the limits are set, but this login began before that, or did not apply them;",
            LOG_IN_AGAIN,
        )
    quoted = " ".join(f"'{line}'" for line in LIMIT_LINES)
    return (machine.join_group(GROUP), f"printf '%s\\n' {quoted} | {machine.sudo}tee {LIMITS}", LOG_IN_AGAIN)


def _is_listed(machine: Machine) -> bool:
    """Return True if the group file lists any member of our group.

    It takes effect at the next login.
    """
    return re.search(rf"^{GROUP}:[^:]*:\d+:.", machine.read("/etc/group") or "", re.MULTILINE) is not None


def scheduling(machine: Machine, granted: Granted = granted, limit: Limit = limit_of) -> Finding:
    """Check that the servo gets the FIFO scheduling class."""
    answer = granted()
    if answer["scheduling"] == "fifo":
        return ok(f"SCHED_FIFO with priority {answer['priority']} was granted")
    if machine.system != "linux":
        return note(
            "no real-time class on this system; the servo runs like any other program",
            "# for a hand on a device use Linux; everything else works here",
        )
    if _no_runtime(machine):
        return problem(
            "SCHED_FIFO was refused: this system leaves real-time processes no time",
            f"{machine.sudo}sysctl -w kernel.sched_rt_runtime_us=950000",
        )
    allowed = limit("RLIMIT_RTPRIO")
    reason = "" if machine.is_root or allowed is None else f" (highest priority allowed: {allowed:g})"
    return problem(
        f"SCHED_FIFO was refused{reason}; ticks will be late whenever the machine is busy", *_rights(machine)
    )


def _no_runtime(machine: Machine) -> bool:
    """Return True if the system, or the control group (version 1), grants no time to real-time processes."""
    return "0" in {
        machine.read("/proc/sys/kernel/sched_rt_runtime_us"),
        machine.read("/sys/fs/cgroup/cpu/cpu.rt_runtime_us"),
    }


def memory_lock(machine: Machine, granted: Granted = granted, limit: Limit = limit_of) -> Finding:
    """Check that the servo's memory can be locked, so that it is not swapped out."""
    if granted()["memory_locked"]:
        return ok("the servo's memory can be locked")
    if machine.system != "linux":
        return ok(f"does not apply on {machine.system}: memory is locked on Linux only")
    allowed = limit("RLIMIT_MEMLOCK")
    reason = "" if allowed is None or allowed == float("inf") else f" (limit: {allowed / 2**20:g} MB)"
    return note(f"the servo's memory cannot be locked{reason}; a page swapped out costs a tick", *_rights(machine))


def cpu_dma_latency(machine: Machine, granted: Granted = granted) -> Finding:
    """Check that the servo can prevent deep sleep states of the processor."""
    if granted()["low_latency"]:
        return ok("the processor can be kept out of deep sleep")
    device = machine.path(LATENCY_DEVICE)
    if not device.exists():
        if container(machine):
            fix = (_NOTHING_INSIDE, f"#   --device {LATENCY_DEVICE}")
        else:
            fix = (
                "# if ticks are late when the machine is idle, add to the kernel's command line:",
                "#   processor.max_cstate=1",
            )
        return note(f"there is no {LATENCY_DEVICE} here; an idle processor may wake up late", *fix)
    if machine.is_root:
        return note(
            f"{LATENCY_DEVICE} cannot be written, even by root", _NOTHING_INSIDE, f"#   --device {LATENCY_DEVICE}"
        )
    return note(
        f"{LATENCY_DEVICE} may not be written; an idle processor sleeps deeply and wakes up late",
        machine.join_group(GROUP),
        *_latency_lines(machine),
        LOG_IN_AGAIN,
    )


def _latency_lines(machine: Machine) -> tuple[str, ...]:
    if not machine.path("/run/udev").exists():
        return (
            f"{machine.sudo}chgrp {GROUP} {LATENCY_DEVICE} && {machine.sudo}chmod 660 {LATENCY_DEVICE}",
            "# until the next start: there is no udev here that would do it again",
        )
    return (
        f"echo '{LATENCY_RULE}' | {machine.sudo}tee /etc/udev/rules.d/70-haptics-latency.rules",
        f"{machine.sudo}udevadm control --reload && {machine.sudo}udevadm trigger --sysname-match=cpu_dma_latency",
    )


def throttling(machine: Machine) -> Finding:
    """Check the share of time available to real-time processes."""
    runtime, period = (machine.read(f"/proc/sys/kernel/sched_rt_{kind}_us") for kind in ("runtime", "period"))
    if runtime is None or period is None:
        return ok("this kernel does not say how much time it leaves to real-time processes")
    if int(runtime) < 0:
        return ok("real-time processes are not throttled")
    share = int(runtime) / max(int(period), 1)
    if share >= _ENOUGH_RUNTIME:
        return ok(f"real-time processes may take {100 * share:.0f} % of the time; the servo needs far less")
    return problem(
        f"real-time processes are throttled after {100 * share:.0f} % of the time",
        f"{machine.sudo}sysctl -w kernel.sched_rt_runtime_us=950000",
    )


def kernel(machine: Machine, version: str | None = None) -> Finding:
    """Check that the kernel is preemptible."""
    if version is None:
        version = f"{os.uname().release} {os.uname().version}"
    release, _, kind = version.partition(" ")
    if machine.read("/sys/kernel/realtime") == "1":
        return ok(f"Linux {release}, PREEMPT_RT")
    preemption = re.search(r"\bPREEMPT(?:[_ ](?:RT|DYNAMIC))?\b", kind)
    if preemption:
        return ok(f"Linux {release}, {preemption.group()}")
    if container(machine):
        fix = ["# the kernel belongs to the host of this container: install a real-time kernel there"]
    else:
        fix = ["# on Debian, for the real-time kernel (then restart):"]
        fix.append(f'{machine.sudo}apt-get install -y "linux-image-rt-$(dpkg --print-architecture)"')
    return note(f"Linux {release} is not preemptible: long system calls of others delay the servo", *fix)
