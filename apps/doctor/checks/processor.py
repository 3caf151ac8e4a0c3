"""Checks of the processors: number, frequency, clock source, and virtualization."""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Callable

from apps.doctor.finding import Finding, note, ok
from apps.doctor.machine import Machine

CPUS = "/sys/devices/system/cpu"
CLOCK_SOURCE = "/sys/devices/system/clocksource/clocksource0"
_GOOD_SOURCES = ("tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter", "riscv_clocksource", "timebase")
"""Clock sources that can be read without a system call."""
_SLOW_READING = 1e-6
_ENOUGH_PROCESSORS = 2


def governor(machine: Machine) -> Finding:
    """Check that the processors run at full frequency."""
    folder = machine.path(CPUS)
    governors = [_text(path) for path in sorted(folder.glob("cpu[0-9]*/cpufreq/scaling_governor"))]
    if not governors:
        return ok("this system cannot set the frequency of its processors")
    slow = Counter(governor for governor in governors if governor != "performance")
    if not slow:
        return ok("all processors run at full frequency (performance)")
    kinds = ", ".join(f"{count} with {name!r}" for name, count in slow.items())
    return note(
        f"{sum(slow.values())} of {len(governors)} processors save power ({kinds}); ticks take longer and vary more",
        f"echo performance | {machine.sudo}tee {CPUS}/cpu*/cpufreq/scaling_governor",
        "# until the next start; on a laptop it costs battery",
    )


def _text(path: os.PathLike[str]) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return "unreadable"


def reading_time(count: int = 2000) -> float:
    """Return the time to read the servo's clock once [s]."""
    start = time.perf_counter()
    for _ in range(count):
        time.perf_counter()
    return (time.perf_counter() - start) / count


def clock_source(machine: Machine, measure: Callable[[], float] = reading_time) -> Finding:
    """Check the kernel's clock source and the time to read it."""
    cost = measure()
    source = machine.read(f"{CLOCK_SOURCE}/current_clocksource") or "a clock of unknown name"
    words = f"time comes from {source}; one reading takes {1e9 * cost:.0f} ns"
    if source in _GOOD_SOURCES or cost < _SLOW_READING:
        return ok(words)
    better = [
        name for name in (machine.read(f"{CLOCK_SOURCE}/available_clocksource") or "").split() if name in _GOOD_SOURCES
    ]
    if better:
        fix = [f"echo {better[0]} | {machine.sudo}tee {CLOCK_SOURCE}/current_clocksource"]
    else:
        fix = [
            "# no better clock is on offer; the kernel's log may say why:",
            f"{machine.sudo}dmesg | grep -i -e clocksource -e tsc",
        ]
    return note(f"{words}, which is slow", *fix)


def usable_processors() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def cores(machine: Machine, count: Callable[[], int] = usable_processors) -> Finding:
    """Check that servo and view can run in parallel."""
    number = count()
    share = _quota(machine)
    if share is not None and share < number:
        return note(
            f"this container may use {share:g} processors' time; when it is spent, everything in it stops for a while",
            "# start the container without a limit of processor time (docker: no --cpus, no --cpu-quota)",
        )
    if number < _ENOUGH_PROCESSORS:
        return note(
            "one processor: servo, application and view take turns",
            "# nothing can be done here; run without the view to leave the servo more time: --headless",
        )
    return ok(f"{number} processors: the servo has one while the view draws")


def _quota(machine: Machine) -> float | None:
    """Return the processor time limit of the control group in processors, or None if unlimited."""
    words = (machine.read("/sys/fs/cgroup/cpu.max") or "max 1").split()
    if len(words) != 2 or not words[0].isdecimal() or not words[1].isdecimal() or int(words[1]) == 0:
        return None
    return int(words[0]) / int(words[1])


_CONTAINERS = {"/.dockerenv": "docker", "/run/.containerenv": "podman"}
_HYPERVISORS = re.compile(
    r"kvm|qemu|vmware|virtualbox|xen|bochs|parallels|hyper-?v|virtual machine|firecracker|amazon ec2|google compute"
    r"|openstack|bhyve|cloud",
    re.IGNORECASE,
)


def container(machine: Machine) -> str | None:
    """Return the kind of container that this process runs in, or None."""
    for path, name in _CONTAINERS.items():
        if machine.path(path).exists():
            return name
    named = machine.environment.get("container")
    if named:
        return named
    found = re.search(r"docker|kubepods|lxc|libpod", machine.read("/proc/1/cgroup") or "")
    return found.group() if found else None


def hypervisor(machine: Machine) -> str | None:
    """Return the hypervisor of this virtual machine, or None."""
    if "microsoft" in (machine.read("/proc/version") or "").lower():
        return "Windows Subsystem for Linux"
    for name in ("product_name", "sys_vendor", "board_vendor"):
        text = machine.read(f"/sys/class/dmi/id/{name}") or ""
        if _HYPERVISORS.search(text):
            return text
    kind = machine.read("/sys/hypervisor/type")
    if kind and kind != "none":
        return kind
    flagged = re.search(r"^flags\s*:.*\bhypervisor\b", machine.read("/proc/cpuinfo") or "", re.MULTILINE)
    return "a hypervisor of unknown name" if flagged else None


def virtual(machine: Machine) -> Finding:
    """Check whether the machine is virtual or a container."""
    inside, below = container(machine), hypervisor(machine)
    if below is None and inside is None:
        return ok("no virtual machine and no container")
    kinds = [f"in a container ({inside})"] if inside else []
    kinds += [f"on a virtual machine ({below})"] if below else []
    if below is None:
        return ok(f"this runs {kinds[0]}: its host grants rights and devices")
    return note(
        f"this runs {' '.join(kinds)}: its host may take the processor away at any moment",
        "# fine for everything virtual; for a hand on a device use a machine of its own",
    )
