"""The checks by name, in the order in which they are done. A module is imported when one of its checks is."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import cast

from apps import catalogue
from apps.doctor.child import NoAnswer
from apps.doctor.finding import Finding, ok, problem
from apps.doctor.machine import Machine, program


@dataclass(frozen=True)
class Check:
    """One check.

    Attributes
    ----------
    group : str
        Under which heading it is reported.
    function : str
        ``module:function`` in `apps.doctor`.
    summary : str
        What it sees to.
    linux : bool
        Whether there is something to see on Linux only.
    vital : bool
        Whether nothing works without it.
    """

    group: str
    function: str
    summary: str
    linux: bool = False
    vital: bool = False


CHECKS: dict[str, Check] = {
    "python": Check("software", "software:python", "version of Python", vital=True),
    "packages": Check("software", "software:packages", "the Python packages and their versions", vital=True),
    "kernels": Check("software", "software:kernels", "the compiler, and the folder for what it compiles", vital=True),
    "scheduling": Check("real time", "real_time:scheduling", "permission to be scheduled as real time, really tried"),
    "memory-lock": Check("real time", "real_time:memory_lock", "permission to lock memory, really tried"),
    "cpu-dma-latency": Check("real time", "real_time:cpu_dma_latency", "deep sleep of the processor", linux=True),
    "throttling": Check("real time", "real_time:throttling", "time left to real-time processes", linux=True),
    "linux-kernel": Check("real time", "real_time:kernel", "whether the kernel can be interrupted", linux=True),
    "timer": Check("timing", "timer:timer", "a measurement of 2 s with the servo's own clock"),
    "governor": Check("timing", "processor:governor", "frequency of the processors", linux=True),
    "clock-source": Check(
        "timing", "processor:clock_source", "the kernel's clock, and what reading it costs", linux=True
    ),
    "cores": Check("timing", "processor:cores", "number of processors, and limits of a container"),
    "virtual": Check("timing", "processor:virtual", "virtual machine or container", linux=True),
    "display": Check("window", "window:display", "whether X11 or Wayland answers", linux=True),
    "opengl": Check("window", "window:opengl", "libraries of OpenGL", linux=True),
    "window-libraries": Check("window", "window:libraries", "libraries that a window needs", linux=True),
    "window": Check("window", "window:window", "whether Qt can show a window, really tried"),
    "libusb": Check("devices", "usb:libusb", "the USB library"),
    "udev": Check("devices", "usb:udev", "USB devices plugged in, and rules that open them", linux=True),
    "serial-ports": Check("devices", "serial:serial_ports", "group of the serial ports", linux=True),
    "modem-manager": Check(
        "devices", "serial:modem_manager", "whether somebody else talks to serial devices", linux=True
    ),
    "numbers": Check("language", "language:numbers", "decimal point or comma"),
    "encoding": Check("language", "language:encoding", "letters that can be printed"),
    "disk": Check("storage", "storage:disk", "speed and room of the disk for recordings"),
    "shared-memory": Check("storage", "storage:shared_memory", "memory that processes share, really tried"),
    "stale-files": Check("storage", "storage:stale_files", "what killed runs have left in memory", linux=True),
}


def chosen(names: Iterable[str]) -> list[str]:
    """Return the checks that `names` ask for, all for none; see `apps.catalogue.chosen`."""
    return catalogue.chosen("check", names, CHECKS)


def run_all(names: Iterable[str], machine: Machine) -> Iterator[tuple[str, Finding]]:
    """Do the checks called `names`, one after the other."""
    for name in names:
        machine.show(f"looking at {name}")
        yield name, run_one(name, CHECKS[name], machine)


def run_one(name: str, check: Check, machine: Machine) -> Finding:
    """Do one check; if it fails itself, that is what was found."""
    if check.linux and machine.system != "linux":
        return ok(f"does not apply on {machine.system}")
    try:
        return _load(check.function)(machine)
    except Exception as error:  # whatever it is: one check must not keep the others from being done
        kind = "" if isinstance(error, NoAnswer) else f"{type(error).__name__}: "
        return problem(
            f"could not be checked ({kind}{' '.join(str(error).split())})",
            "# if this repeats, report it with what this prints:",
            f"{program()} doctor {name} --json",
        )


def _load(function: str) -> Callable[[Machine], Finding]:
    module, name = function.split(":")
    return cast("Callable[[Machine], Finding]", getattr(importlib.import_module(f"apps.doctor.{module}"), name))
