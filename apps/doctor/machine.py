"""Interface of the checks: the examined machine (its files, and the identity of the user), and findings."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

_REPOSITORY = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Machine:
    """Interface of the checks to the system.

    Attributes
    ----------
    root : Path
        Folder that replaces ``/``.
    system : str
        Name of the system as in `sys.platform`.
    environment : mapping
        Environment variables.
    user : int
        User ID, -1 on a system without user IDs.
    groups : frozenset of int
        Group IDs of this session.
    record : Path
        Folder for recordings.
    show : callable
        Receives a progress line.
    """

    root: Path = Path("/")
    system: str = sys.platform
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    user: int = field(default_factory=lambda: os.geteuid() if hasattr(os, "geteuid") else -1)
    groups: frozenset[int] = field(
        default_factory=lambda: frozenset((*os.getgroups(), os.getegid()) if hasattr(os, "getgroups") else ())
    )
    record: Path = Path("recordings")
    show: Callable[[str], None] = lambda _: None

    @property
    def is_root(self) -> bool:
        """Whether the user is root."""
        return self.user == 0

    @property
    def sudo(self) -> str:
        """Prefix of commands that need administrator rights."""
        return "" if self.is_root else "sudo "

    def path(self, name: str) -> Path:
        """Return the path of the absolute path `name` below the root."""
        return self.root / name.lstrip("/")

    def read(self, name: str) -> str | None:
        """Return the stripped text of the file `name`, or None if it cannot be read."""
        try:
            return self.path(name).read_text(errors="replace").strip()
        except OSError:
            return None

    def groups_of_names(self) -> dict[str, int]:
        """Return the groups in the group file: name to ID."""
        lines = [line.split(":") for line in (self.read("/etc/group") or "").splitlines()]
        return {line[0]: int(line[2]) for line in lines if len(line) > 2 and line[2].isdecimal()}

    def join_group(self, group: str) -> str:
        """Return the command that creates `group` if needed and adds the user to it."""
        return f'{self.sudo}groupadd -f {group} && {self.sudo}usermod -aG {group} "$(id -un)"'


LOG_IN_AGAIN = "# then log out and in again: rights are given at login"


_CONTAINERS = {"/.dockerenv": "docker", "/run/.containerenv": "podman"}


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


def program() -> str:
    """Return the shell command that starts this program."""
    if shutil.which("haptics"):
        return "haptics"
    if (_REPOSITORY / "run").exists():
        return f"{shlex.quote(str(_REPOSITORY / 'run'))} haptics"
    return f"{shlex.quote(sys.executable)} -m apps"


class Severity(StrEnum):
    """Severity of a finding."""

    OK = "ok"
    NOTE = "note"
    """Information; everything works."""
    PROBLEM = "problem"
    """Something does not work, or not well enough for use with a participant."""


@dataclass(frozen=True)
class Finding:
    """Result of one check.

    Attributes
    ----------
    severity : Severity
        Severity.
    found : str
        One sentence, without a full stop.
    fix : str
        Shell commands that fix the problem, and comments for manual steps. Empty if there is no problem.
    facts : mapping
        Measured values for programs, if any.
    """

    severity: Severity
    found: str
    fix: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


def ok(found: str) -> Finding:
    """Return a finding without a problem."""
    return Finding(Severity.OK, found)


def note(found: str, *fix: str) -> Finding:
    """Return a note; `fix` are the shell lines."""
    return Finding(Severity.NOTE, found, "\n".join(fix))


def problem(found: str, *fix: str) -> Finding:
    """Return a problem; `fix` are the shell lines."""
    return Finding(Severity.PROBLEM, found, "\n".join(fix))
