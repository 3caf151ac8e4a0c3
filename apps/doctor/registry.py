"""Registry of the checks by name, their execution, and the report of the findings as JSON and as text.

Modules of checks are imported on demand.
"""

from __future__ import annotations

import importlib
import re
import shutil
import sys
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apps.doctor.child import NoAnswer
from apps.doctor.machine import Finding, Machine, Severity, ok, problem, program


@dataclass(frozen=True)
class Check:
    """Check.

    Attributes
    ----------
    group : str
        Heading in the report.
    function : str
        ``module:function`` in `apps.doctor`.
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
        "scheduling": ("timing:scheduling", "permission for real-time scheduling, really tried"),
        "memory-lock": ("timing:memory_lock", "permission to lock memory, really tried"),
        "cpu-dma-latency": ("timing:cpu_dma_latency", "deep sleep of the processor", _LINUX),
        "throttling": ("timing:throttling", "throttling of real-time processes", _LINUX),
        "linux-kernel": ("timing:kernel", "whether the kernel is preemptible", _LINUX),
    },
    "timing": {
        "timer": ("timing:timer", "a measurement of 2 s with the servo's own clock"),
        "governor": ("timing:governor", "frequency of the processors", _LINUX),
        "clock-source": ("timing:clock_source", "the kernel's clock, and what reading it costs", _LINUX),
        "cores": ("timing:cores", "number of processors, and limits of a container"),
        "virtual": ("timing:virtual", "virtual machine or container", _LINUX),
        "triggers": ("triggers:triggers", "delay of experiments' triggers over a pseudo terminal and a socket", _LINUX),
    },
    "window": {
        "display": ("software:display", "whether X11 or Wayland answers", _LINUX),
        "opengl": ("software:opengl", "libraries of OpenGL", _LINUX),
        "window-libraries": ("software:window_libraries", "libraries that a window needs", _LINUX),
        "window": ("software:window", "whether Qt can show a window, really tried"),
    },
    "devices": {
        "libusb": ("usb:libusb", "the USB library"),
        "udev": ("usb:udev", "USB devices plugged in, and rules that open them", _LINUX),
        "serial-ports": ("ports:serial_ports", "group of the serial ports", _LINUX),
        "modem-manager": ("ports:modem_manager", "whether somebody else talks to serial devices", _LINUX),
        "can-bus": ("ports:can_bus", "whether CAN interfaces are up", _LINUX),
        "haply-service": ("ports:haply_service", "whether the service of an Inverse3 runs", _LINUX),
        "maker-libraries": ("ports:maker_libraries", "libraries of device makers, and a C compiler for emulated ones"),
    },
    "language": {
        "numbers": ("software:numbers", "decimal point or comma"),
        "encoding": ("software:encoding", "letters that can be printed"),
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


def run_one(name: str, check: Check, machine: Machine) -> Finding:
    """Run one check.

    An exception in the check is returned as a problem.
    """
    if check.linux and machine.system != "linux":
        return ok(f"does not apply on {machine.system}")
    try:
        module, function = check.function.split(":")
        finding: Finding = getattr(importlib.import_module(f"apps.doctor.{module}"), function)(machine)
        return finding
    except Exception as error:  # a failing check must not prevent the others
        kind = "" if isinstance(error, NoAnswer) else f"{type(error).__name__}: "
        return problem(
            f"could not be checked ({kind}{' '.join(str(error).split())})",
            "# if this repeats, report it with what this prints:",
            f"{program()} doctor {name} --json",
        )


# --- report -------------------------------------------------------------------------------------------------------

_WIDEST, _NARROWEST = 120, 60
_PASTE = " " * 11
"""Indentation of shell lines."""
_UNIT = re.compile(r"(?<=\d) (?=(?:[num]?s|[kMG]?B|k?Hz|h|min)\b|%)")
"""Space between a number and its unit, where lines are not broken."""
_TIMING = {"scheduling", "timer"}
"""Checks that are required for a statement about the timing of this machine."""


def result(findings: Mapping[str, Finding]) -> dict[str, Any]:
    """Return the findings for ``--json``.

    ``ready`` is True if there is no problem.
    """
    rows = [
        {
            "name": name,
            "group": CHECKS[name].group,
            "severity": str(finding.severity),
            "found": finding.found,
            "fix": finding.fix,
        }
        for name, finding in findings.items()
    ]
    timer = findings.get("timer")
    ready = not any(finding.severity is Severity.PROBLEM for finding in findings.values())
    return {"findings": rows, "timer": dict(timer.facts) if timer else {}, "ready": ready}


def describe(findings: Mapping[str, Finding]) -> str:
    """Format the findings by group, followed by the verdict."""
    width = min(max(shutil.get_terminal_size((_WIDEST, 24)).columns, _NARROWEST), _WIDEST)
    longest = max(map(len, findings))
    lines: list[str] = []
    heading = ""
    groups = list(dict.fromkeys(check.group for check in CHECKS.values()))
    for name, finding in sorted(findings.items(), key=lambda item: groups.index(CHECKS[item[0]].group)):
        if CHECKS[name].group != heading:
            heading = CHECKS[name].group
            lines += ["", heading]
        begin = f"  {finding.severity:<7}  {name:<{longest}}  "
        options: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
        found = _UNIT.sub("\0", finding.found)
        wrapped = textwrap.wrap(found, width, initial_indent=begin, subsequent_indent=" " * len(begin), **options)
        lines += [line.replace("\0", " ") for line in wrapped]
        lines += [_PASTE + line for line in finding.fix.splitlines()]
    if any(finding.fix for finding in findings.values()):
        lines += ["", "The lines below a finding fix it; paste them into a shell."]
    text, encoding = "\n".join([*lines, "", verdict(findings)]), getattr(sys.stdout, "encoding", None) or "ascii"
    return text.lstrip("\n").encode(encoding, "backslashreplace").decode(encoding)  # what the output cannot encode


def verdict(findings: Mapping[str, Finding]) -> str:
    """Return the last line of the report, the overall verdict."""
    problems = [name for name, finding in findings.items() if finding.severity is Severity.PROBLEM]
    notes = sum(finding.severity is Severity.NOTE for finding in findings.values())
    noted = f" ({_count(notes, 'note')})" if notes else ""
    vital = [name for name in problems if CHECKS[name].vital]
    if vital:
        others = len(problems) - len(vital)
        more = f", and {_count(others, 'more problem')}" if others else ""
        return f"does not work yet: {', '.join(vital)}{more}{noted}"
    if "scheduling" in problems:
        rest = [name for name in problems if name not in _TIMING]
        more = f", and with {_count(len(rest), 'more problem')}: {', '.join(rest)}" if rest else ""
        return f"works, but without real-time priority, so ticks will be late at times{more}{noted}"
    if problems == ["timer"]:
        return f"works, but ticks come late on this machine: do not hold a real device{noted}"
    if problems:
        return f"works, but with {_count(len(problems), 'problem')}: {', '.join(problems)}{noted}"
    if not findings.keys() >= _TIMING:
        return f"no problem found in {_count(len(findings), 'check')}{noted}"
    return f"ready for 1 kHz with real-time priority{noted}"


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
