"""Registry of the checks by name, in the order of execution.

Modules are imported on demand.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import cast

from apps.doctor.child import NoAnswer
from apps.doctor.finding import Finding, ok, problem
from apps.doctor.machine import Machine, program
from apps.shared.command import select


@dataclass(frozen=True)
class Check:
    """Check.

    Attributes
    ----------
    group : str
        Heading in the report.
    function : str
        ``module:function`` in `apps.doctor.checks`.
    summary : str
        Description.
    linux : bool
        Whether it applies to Linux only.
    vital : bool
        Whether nothing works if it fails.
    """

    group: str
    function: str
    summary: str
    linux: bool = False
    vital: bool = False


_LINUX, _VITAL = "linux", "vital"

_GROUPS: dict[str, dict[str, tuple[str, ...]]] = {
    "software": {
        "python": ("software:python", "version of Python", _VITAL),
        "packages": ("software:packages", "the Python packages and their versions", _VITAL),
        "kernels": ("software:kernels", "the compiler, and the folder of compiled kernels", _VITAL),
    },
    "real time": {
        "scheduling": ("real_time:scheduling", "permission for real-time scheduling, really tried"),
        "memory-lock": ("real_time:memory_lock", "permission to lock memory, really tried"),
        "cpu-dma-latency": ("real_time:cpu_dma_latency", "deep sleep of the processor", _LINUX),
        "throttling": ("real_time:throttling", "throttling of real-time processes", _LINUX),
        "linux-kernel": ("real_time:kernel", "whether the kernel is preemptible", _LINUX),
    },
    "timing": {
        "timer": ("timer:timer", "a measurement of 2 s with the servo's own clock"),
        "governor": ("processor:governor", "frequency of the processors", _LINUX),
        "clock-source": ("processor:clock_source", "the kernel's clock, and what reading it costs", _LINUX),
        "cores": ("processor:cores", "number of processors, and limits of a container"),
        "virtual": ("processor:virtual", "virtual machine or container", _LINUX),
    },
    "window": {
        "display": ("window:display", "whether X11 or Wayland answers", _LINUX),
        "opengl": ("window:opengl", "libraries of OpenGL", _LINUX),
        "window-libraries": ("window:libraries", "libraries that a window needs", _LINUX),
        "window": ("window:window", "whether Qt can show a window, really tried"),
    },
    "devices": {
        "libusb": ("usb:libusb", "the USB library"),
        "udev": ("usb:udev", "USB devices plugged in, and rules that open them", _LINUX),
        "serial-ports": ("serial:serial_ports", "group of the serial ports", _LINUX),
        "modem-manager": ("serial:modem_manager", "whether somebody else talks to serial devices", _LINUX),
        "can-bus": ("can:can_bus", "whether CAN interfaces are up", _LINUX),
        "haply-service": ("service:haply_service", "whether the service of an Inverse3 runs", _LINUX),
    },
    "language": {
        "numbers": ("language:numbers", "decimal point or comma"),
        "encoding": ("language:encoding", "letters that can be printed"),
    },
    "storage": {
        "disk": ("storage:disk", "speed and room of the disk for recordings"),
        "shared-memory": ("storage:shared_memory", "memory that processes share, really tried"),
        "stale-files": ("storage:stale_files", "what killed runs have left in memory", _LINUX),
    },
}

CHECKS: dict[str, Check] = {
    name: Check(group, function, summary, _LINUX in marks, _VITAL in marks)
    for group, checks in _GROUPS.items()
    for name, (function, summary, *marks) in checks.items()
}


def chosen(names: Iterable[str]) -> list[str]:
    """Return the requested checks, all if `names` is empty; see `apps.shared.command.select`."""
    return select("check", names, CHECKS)


def run_all(names: Iterable[str], machine: Machine) -> Iterator[tuple[str, Finding]]:
    """Run the checks called `names` in order and yield their findings."""
    for name in names:
        machine.show(f"looking at {name}")
        yield name, run_one(name, CHECKS[name], machine)


def run_one(name: str, check: Check, machine: Machine) -> Finding:
    """Run one check.

    An exception in the check is returned as a problem.
    """
    if check.linux and machine.system != "linux":
        return ok(f"does not apply on {machine.system}")
    try:
        return _load(check.function)(machine)
    except Exception as error:  # a failing check must not prevent the others
        kind = "" if isinstance(error, NoAnswer) else f"{type(error).__name__}: "
        return problem(
            f"could not be checked ({kind}{' '.join(str(error).split())})",
            "# if this repeats, report it with what this prints:",
            f"{program()} doctor {name} --json",
        )


def _load(function: str) -> Callable[[Machine], Finding]:
    module, name = function.split(":")
    return cast("Callable[[Machine], Finding]", getattr(importlib.import_module(f"apps.doctor.checks.{module}"), name))
