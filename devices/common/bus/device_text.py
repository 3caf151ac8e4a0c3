"""Sanitising of device text, such as names and serial numbers, for display and for shell commands."""

from __future__ import annotations

import re
import shlex

LONGEST = 126
"""Maximum length of a USB string in characters."""

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_OTHER_TOML = frozenset({"true", "false", "inf", "nan"})


def printable(text: str) -> str:
    """Return `text` without unprintable characters, such as line ends and terminal escape sequences."""
    return "".join(character for character in text if character.isprintable())[:LONGEST].strip()


def setting(key: str, value: str) -> str:
    """Return ``--set KEY=VALUE`` with shell quoting for any text `value`."""
    if not _PLAIN.fullmatch(value) or value in _OTHER_TOML:
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        value = f'"{escaped}"'
    return f"--set {shlex.quote(f'{key}={value}')}"
