"""Machines made of files, and what holds for every finding."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from apps.doctor.finding import Finding, Severity
from apps.doctor.machine import Machine

ROOT, PERSON = 0, 1000


def machine(root: Path, files: dict[str, str] | None = None, user: int = PERSON, **facts: Any) -> Machine:
    """Make a machine whose ``/`` is the folder `root` and that has `files`."""
    for name, text in (files or {}).items():
        path = root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    given = {"system": "linux", "environment": {}, "groups": frozenset({user}), "record": root, **facts}
    return Machine(root=root, user=user, **given)


def expect(finding: Finding, severity: str, *words: str) -> Finding:
    """Require of a finding what must hold for all: a fix, which a shell understands, exactly if something is wrong."""
    assert finding.severity == severity, finding
    for word in words:
        assert word in finding.found or word in finding.fix, (word, finding)
    assert finding.found and "\n" not in finding.found and not finding.found.endswith(".")
    assert bool(finding.fix) == (finding.severity is not Severity.OK), finding
    assert is_shell(finding.fix), finding.fix
    return finding


def is_shell(lines: str) -> bool:
    """Tell whether a shell understands `lines`; nothing is executed."""
    return subprocess.run(["sh", "-n"], input=lines, text=True, capture_output=True, check=False).returncode == 0
