"""Text from a device, its name or serial number, made safe for people and for commands to paste."""

from __future__ import annotations

import re
import shlex

LONGEST = 126
"""Characters of a string of USB at most."""

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_OTHER_TOML = frozenset({"true", "false", "inf", "nan"})


def printable(text: str) -> str:
    """Return `text` without what cannot be printed, such as line ends and the sequences that steer a terminal."""
    return "".join(character for character in text if character.isprintable())[:LONGEST].strip()


def setting(key: str, value: str) -> str:
    """Return ``--set KEY=VALUE`` for a shell, whatever characters are in the text `value`."""
    if not _PLAIN.fullmatch(value) or value in _OTHER_TOML:
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        value = f'"{escaped}"'
    return f"--set {shlex.quote(f'{key}={value}')}"
