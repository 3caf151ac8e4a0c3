"""Checks of the timing: wake-up latency, processors, clock, and real-time permissions of the operating system."""

from __future__ import annotations

import functools
import importlib
import math
import os
import re
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from apps.doctor.child import call_in_child
from apps.doctor.machine import LOG_IN_AGAIN, Finding, Machine, Severity, container, note, ok, problem, program
from apps.shared.terminal import bar
from devices.common.bus import GROUP
from haptics.clock import WallClock
from haptics.recording.certificate import Fitness
from haptics.servo.realtime import request_real_time, usage, usage_since

# --- wake-up latency ----------------------------------------------------------------------------------------------

DURATION, RATE = 2.0, 1000.0
"""Duration [s] and rate [Hz] of the measurement."""

_GOOD = 0.001
"""Share of deadlines late by half a period or more below which the timing is good."""


def _measure(machine: Machine) -> dict[str, Any]:
    """Measure in a new process and show the progress."""
    words = f"timer: waiting for {DURATION * RATE:.0f} deadlines"
    answer: dict[str, Any] = call_in_child(
        "apps.doctor.timing:measure_delays",
        DURATION,
        RATE,
        waiting=lambda passed: machine.show(f"{bar(min(passed / DURATION, 1.0))} {words}"),
    )
    return answer


def timer(machine: Machine, _measure: Callable[[Machine], dict[str, Any]] = _measure) -> Finding:
    """Measure the latency and judge it."""
    facts = _measure(machine)
    severity, stolen = severity_of(facts), facts["usage"]["stolen_s"]
    found = (
        f"deadlines of {RATE:g} Hz met with a delay of median {facts['p50_us']:.0f}, 99 % {facts['p99_us']:.0f}, "
        f"99.9 % {facts['p999_us']:.0f}, max {facts['max_us']:.0f} us; "
        f"{100 * facts['missed_share']:.2g} % came more than 1 ms late"
    )
    if stolen:
        found += f"; the host took {1e3 * stolen:.0f} ms meanwhile"
    if severity == Severity.OK:
        return Finding(severity, found, "", facts)
    lacking = {"scheduling": facts["realtime"] != "fifo", "cpu-dma-latency": not facts["low_latency"], "timer": True}
    checks = [name for name, lacks in lacking.items() if lacks]
    if len(checks) > 1:
        advice = "# mend first what these find, then measure once more:"
    elif stolen:
        advice = "# the host gave the processor to others; measure again when it is less busy:"
    else:
        advice = "# all rights were granted: see what else is running (top), then measure once more:"
    return Finding(severity, found, f"{advice}\n{program()} doctor {' '.join(checks)}", facts)


def severity_of(facts: dict[str, Any]) -> Severity:
    """Return the severity, using the fitness limits that a run has by default."""
    if facts["late_share"] <= _GOOD:
        return Severity.OK
    limits = Fitness()
    fit = (
        facts["late_share"] <= limits.late_share
        and facts["missed_share"] <= limits.skipped_share
        and facts["max_us"] <= 1e6 * limits.longest_gap
    )
    return Severity.NOTE if fit else Severity.PROBLEM


def measure_delays(duration: float, rate: float) -> dict[str, Any]:
    """Wait for deadlines like the servo, without work in between; runs in a separate process.

    Parameters
    ----------
    duration : float
        Duration of the measurement [s].
    rate : float
        Deadlines per second [Hz].

    Returns
    -------
    dict
        Latencies [us] and their possible causes; JSON serializable.
    """
    granted = request_real_time()
    clock, count = WallClock(1.0 / rate), round(duration * rate)
    delays: list[float] = []
    before = usage()
    clock.start()
    while len(delays) < count:
        delays += passed(clock.wait(len(delays)), clock.period)
    used = usage_since(before)
    return {
        "rate_hz": rate,
        "duration_s": duration,
        **lateness(delays[:count], clock.period),
        "realtime": granted["scheduling"],
        "low_latency": granted["low_latency"],
        "memory_locked": granted["memory_locked"],
        "usage": used,
    }


def passed(late: float, period: float) -> list[float]:
    """Return the delays [s] of all deadlines that have passed: the awaited one and the missed ones."""
    return [late - k * period for k in range(max(int(late / period), 0) + 1)]


def lateness(delays: list[float], period: float) -> dict[str, float]:
    """Return quantiles of the `delays` [us], and the shares later than half a period and than a period."""
    ordered, count = sorted(delays), len(delays)
    quantiles = {"p50_us": 0.5, "p99_us": 0.99, "p999_us": 0.999, "max_us": 1.0}
    limits = {"late_share": period / 2, "missed_share": period}
    return {
        **{name: round(1e6 * ordered[math.ceil(share * count) - 1], 1) for name, share in quantiles.items()},
        **{name: sum(delay > limit for delay in ordered) / count for name, limit in limits.items()},
    }


# --- processors ---------------------------------------------------------------------------------------------------

CPUS = "/sys/devices/system/cpu"
CLOCK_SOURCE = "/sys/devices/system/clocksource/clocksource0"
_GOOD_SOURCES = ("tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter", "riscv_clocksource", "timebase")
"""Clock sources that can be read without a system call."""
_SLOW_READING = 1e-6
_ENOUGH_PROCESSORS = 2


def governor(machine: Machine) -> Finding:
    """Check that the processors run at full frequency."""
    governors = []
    for path in sorted(machine.path(CPUS).glob("cpu[0-9]*/cpufreq/scaling_governor")):
        try:
            governors.append(path.read_text(encoding="ascii", errors="replace").strip())
        except OSError:
            governors.append("unreadable")
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
    words += ", which is slow"
    for name in (machine.read(f"{CLOCK_SOURCE}/available_clocksource") or "").split():
        if name in _GOOD_SOURCES:
            return note(words, f"echo {name} | {machine.sudo}tee {CLOCK_SOURCE}/current_clocksource")
    why = "# no better clock is on offer; the kernel's log may say why:"
    return note(words, why, f"{machine.sudo}dmesg | grep -i -e clocksource -e tsc")


def usable_processors() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def cores(machine: Machine, count: Callable[[], int] = usable_processors) -> Finding:
    """Check that servo and view can run in parallel."""
    number = count()
    # processor time of the control group, in units of processors
    words = (machine.read("/sys/fs/cgroup/cpu.max") or "max 1").split()
    limited = len(words) == 2 and words[0].isdecimal() and words[1].isdecimal() and int(words[1]) > 0
    if limited and (share := int(words[0]) / int(words[1])) < number:
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


_HYPERVISORS = re.compile(
    r"kvm|qemu|vmware|virtualbox|xen|bochs|parallels|hyper-?v|virtual machine|firecracker|amazon ec2|google compute"
    r"|openstack|bhyve|cloud",
    re.IGNORECASE,
)


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


# --- real-time permissions ----------------------------------------------------------------------------------------

LIMITS = f"/etc/security/limits.d/{GROUP}.conf"
LIMIT_LINES = (f"@{GROUP} - rtprio 95", f"@{GROUP} - memlock unlimited")
LATENCY_DEVICE = "/dev/cpu_dma_latency"
LATENCY_RULE = f'KERNEL=="cpu_dma_latency", GROUP="{GROUP}", MODE="0660"'
_NOTHING_INSIDE = "# it cannot be granted inside this container; start the container with these options too:"
_ENOUGH_RUNTIME = 0.5
"""Required share of time for real-time processes; the servo uses a tenth of one processor."""


Granted = Callable[[], dict[str, Any]]
Limit = Callable[[str], float | None]


@functools.cache
def granted() -> dict[str, Any]:
    """Return the real-time properties granted to a new process.

    See `haptics.servo.realtime.request_real_time`. The result is cached.
    """
    answer: dict[str, Any] = call_in_child("haptics.servo.realtime:request_real_time")
    return answer


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
    listed = re.search(rf"^{GROUP}:[^:]*:\d+:.", machine.read("/etc/group") or "", re.MULTILINE) is not None
    if all(line in (machine.read(LIMITS) or "") for line in LIMIT_LINES) and listed:  # in effect at the next login
        return (
            "# the limits are set, but this login began before that, or did not apply them;",
            LOG_IN_AGAIN,
        )
    quoted = " ".join(f"'{line}'" for line in LIMIT_LINES)
    return (machine.join_group(GROUP), f"printf '%s\\n' {quoted} | {machine.sudo}tee {LIMITS}", LOG_IN_AGAIN)


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
    runtimes = ("/proc/sys/kernel/sched_rt_runtime_us", "/sys/fs/cgroup/cpu/cpu.rt_runtime_us")  # system, cgroup v1
    if any(machine.read(path) == "0" for path in runtimes):
        return problem(
            "SCHED_FIFO was refused: this system leaves real-time processes no time",
            f"{machine.sudo}sysctl -w kernel.sched_rt_runtime_us=950000",
        )
    allowed = limit("RLIMIT_RTPRIO")
    reason = "" if machine.is_root or allowed is None else f" (highest priority allowed: {allowed:g})"
    return problem(
        f"SCHED_FIFO was refused{reason}; ticks will be late whenever the machine is busy", *_rights(machine)
    )


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
    fix = (
        f"echo '{LATENCY_RULE}' | {machine.sudo}tee /etc/udev/rules.d/70-haptics-latency.rules",
        f"{machine.sudo}udevadm control --reload && {machine.sudo}udevadm trigger --sysname-match=cpu_dma_latency",
    )
    if not machine.path("/run/udev").exists():
        fix = (
            f"{machine.sudo}chgrp {GROUP} {LATENCY_DEVICE} && {machine.sudo}chmod 660 {LATENCY_DEVICE}",
            "# until the next start: there is no udev here that would do it again",
        )
    words = f"{LATENCY_DEVICE} may not be written; an idle processor sleeps deeply and wakes up late"
    return note(words, machine.join_group(GROUP), *fix, LOG_IN_AGAIN)


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
