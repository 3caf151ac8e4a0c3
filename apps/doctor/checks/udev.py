"""udev rules: generate rules for our devices, and evaluate the permissions of the installed rules."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from apps.doctor.checks.families import FAMILIES, Family
from apps.doctor.machine import Machine
from devices.common.bus import RULES_FILE, Node, device_rules

FOLDERS = (
    "/etc/udev/rules.d",
    "/run/udev/rules.d",
    "/usr/local/lib/udev/rules.d",
    "/usr/lib/udev/rules.d",
    "/lib/udev/rules.d",
)
"""Folders in order of precedence. A file hides files of the same name in later folders."""
SEAT = "73-seat-late.rules"
"""Rules file of systemd that converts the tag uaccess into permissions. Tags set by later files have no effect."""

_TOKEN = re.compile(r'([A-Z_]+)(?:\{([^}]*)\})?\s*(==|!=|\+=|-=|:=|=)\s*[ei]?"((?:[^"\\]|\\.)*)"')
_READ_WRITE = 0o6


def rules(families: Iterable[Family] = FAMILIES) -> str:
    """Return a rules file that gives the logged-in user, and the group, access to our devices."""
    lines = [
        f"# {RULES_FILE}",
        "# Force feedback devices: for who sits at the machine (uaccess), and for members of the group.",
    ]
    for family in families:
        lines += ["", f"# {family.name}: {family.title}"]
        for identity in family.identities:
            lines += device_rules(identity, family.nodes)
    return "\n".join(lines)


# --- evaluation of rules -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Token:
    """Token of a rule, ``KEY{attribute}operator"value"``."""

    key: str
    attribute: str
    operator: str
    value: str


@dataclass(frozen=True)
class Access:
    """Permissions that rules grant for a device file."""

    tagged: bool = False
    mode: int | None = None
    group: str | None = None

    def open_to(self, groups: Iterable[str]) -> bool:
        """Return True if the logged-in user, a member of `groups`, may read and write."""
        if self.tagged:
            return True
        mode = self.mode if self.mode is not None else (0o660 if self.group is not None else 0)
        return mode & _READ_WRITE == _READ_WRITE or (
            self.group in set(groups) and mode >> 3 & _READ_WRITE == _READ_WRITE
        )


@dataclass(frozen=True)
class _Candidate:
    """Device file with the properties that rules can match."""

    facts: dict[tuple[str, str], str] = field(default_factory=dict)

    @classmethod
    def of(cls, identity: str, node: Node) -> _Candidate:
        vendor, product = identity.split(":")
        kernel = {Node.USB: "1-1", Node.HIDRAW: "hidraw0", Node.TTY: "ttyACM0"}[node]
        facts = {
            ("ACTION", ""): "add",
            ("SUBSYSTEM", ""): str(node),
            ("SUBSYSTEMS", ""): "usb",
            ("KERNEL", ""): kernel,
            ("ATTRS", "idVendor"): vendor,
            ("ATTRS", "idProduct"): product,
        }
        if node is Node.USB:
            facts |= {("ATTR", "idVendor"): vendor, ("ATTR", "idProduct"): product, ("ENV", "DEVTYPE"): "usb_device"}
        return cls(facts)

    def fits(self, token: Token) -> bool:
        """Return True if a condition holds.

        A condition about an unknown property does not hold.
        """
        value = self.facts.get((token.key, token.attribute))
        if value is None:
            return token.operator == "!="
        found = any(fnmatch.fnmatchcase(value, pattern) for pattern in token.value.split("|"))
        return found == (token.operator == "==")


def parse(text: str) -> list[list[Token]]:
    """Return the rules of a file as lists of tokens; lines that are not rules are ignored."""
    joined = re.sub(r"\\\n\s*", "", text)
    lines = (line.strip() for line in joined.splitlines())
    found = [
        [Token(key, name, *rest) for key, name, *rest in _TOKEN.findall(line)] for line in lines if line[:1] != "#"
    ]
    return [tokens for tokens in found if tokens]


def rule_files(machine: Machine) -> list[Path]:
    """Return the active rules files in the order of udev."""
    by_name: dict[str, Path] = {}
    for folder in FOLDERS:
        for path in sorted(machine.path(folder).glob("*.rules")):
            by_name.setdefault(path.name, path)
    return [by_name[name] for name in sorted(by_name)]


def read_rules(machine: Machine) -> dict[str, list[list[Token]]]:
    """Return the active rules by file name, in the order of udev."""
    found = {}
    for path in rule_files(machine):
        try:
            found[path.name] = parse(path.read_text(errors="replace"))
        except OSError:
            continue
    return found


def access(files: dict[str, list[list[Token]]], identity: str, node: Node) -> Access:
    """Return the permissions that the rules of `files` grant for the file `node` of the device `identity`."""
    candidate, granted = _Candidate.of(identity, node), Access()
    for name, content in files.items():
        for rule in _applying(content, candidate):
            granted = _assign(granted, rule, in_time=name < SEAT)
    return granted


def _applying(content: list[list[Token]], candidate: _Candidate) -> Iterator[list[Token]]:
    """Yield the rules of a file whose conditions hold, with the same handling of jumps as udev."""
    label = ""
    for rule in content:
        if label and not any(token.key == "LABEL" and token.value == label for token in rule):
            continue
        label = ""
        if all(candidate.fits(token) for token in rule if token.operator in {"==", "!="}):
            yield rule
            label = next((token.value for token in rule if token.key == "GOTO"), "")


def _assign(granted: Access, rule: list[Token], *, in_time: bool) -> Access:
    for token in rule:
        if token.operator in {"==", "!="}:
            continue
        if token.key == "TAG" and token.value == "uaccess" and in_time:
            granted = replace(granted, tagged=token.operator != "-=")
        elif token.key == "MODE" and re.fullmatch(r"0?[0-7]{3}", token.value):
            granted = replace(granted, mode=int(token.value, 8))
        elif token.key == "GROUP":
            granted = replace(granted, group=token.value)
    return granted
