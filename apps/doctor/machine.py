"""The examined machine: location of its files, and identity of the user."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

_REPOSITORY = Path(__file__).resolve().parents[2]


def _own_user() -> int:
    return os.geteuid() if hasattr(os, "geteuid") else -1


def _own_groups() -> frozenset[int]:
    return frozenset({*os.getgroups(), os.getegid()}) if hasattr(os, "getgroups") else frozenset()


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
    user: int = field(default_factory=_own_user)
    groups: frozenset[int] = field(default_factory=_own_groups)
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


def program() -> str:
    """Return the shell command that starts this program."""
    if shutil.which("haptics"):
        return "haptics"
    if (_REPOSITORY / "run").exists():
        return f"{shlex.quote(str(_REPOSITORY / 'run'))} haptics"
    return f"{shlex.quote(sys.executable)} -m apps"
