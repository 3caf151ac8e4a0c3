"""Rules of udev: written for our devices, and read to see what those on this machine grant."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from apps.doctor.checks.families import FAMILIES, Family
from apps.doctor.machine import Machine
from devices.common.bus.udev import RULES_FILE, Node, device_rules

FOLDERS = (
    "/etc/udev/rules.d",
    "/run/udev/rules.d",
    "/usr/local/lib/udev/rules.d",
    "/usr/lib/udev/rules.d",
    "/lib/udev/rules.d",
)
"""In the order of precedence: a file hides one of the same name in a later folder."""
SEAT = "73-seat-late.rules"
"""This file of systemd turns the tag uaccess into rights; what is tagged after it comes too late."""

_TOKEN = re.compile(r'([A-Z_]+)(?:\{([^}]*)\})?\s*(==|!=|\+=|-=|:=|=)\s*[ei]?"((?:[^"\\]|\\.)*)"')
_READ_WRITE = 0o6


def rules(families: Iterable[Family] = FAMILIES) -> str:
    """Return the text of a rules file that gives the person at the machine, and the group, what drivers need."""
    lines = [
        f"# {RULES_FILE}",
        "# Force feedback devices: for who sits at the machine (uaccess), and for members of the group.",
    ]
    for family in families:
        lines += ["", f"# {family.name}: {family.title}"]
        for identity in family.identities:
            lines += device_rules(identity, family.nodes)
    return "\n".join(lines)


# --- reading ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Token:
    """One ``KEY{attribute}operator"value"`` of a rule."""

    key: str
    attribute: str
    operator: str
    value: str


@dataclass(frozen=True)
class Access:
    """What rules grant a device file."""

    tagged: bool = False
    mode: int | None = None
    group: str | None = None

    def open_to(self, groups: Iterable[str]) -> bool:
        """Tell whether a person at the machine who is in `groups` may read and write."""
        if self.tagged:
            return True
        mode = self.mode if self.mode is not None else (0o660 if self.group is not None else 0)
        return mode & _READ_WRITE == _READ_WRITE or (
            self.group in set(groups) and mode >> 3 & _READ_WRITE == _READ_WRITE
        )


@dataclass(frozen=True)
class _Candidate:
    """A device file as rules see it."""

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
        """Tell whether a condition holds; one about something unknown does not."""
        value = self.facts.get((token.key, token.attribute))
        if value is None:
            return token.operator == "!="
        found = any(fnmatch.fnmatchcase(value, pattern) for pattern in token.value.split("|"))
        return found == (token.operator == "==")


def parse(text: str) -> list[list[Token]]:
    """Return the rules of a file as lists of their tokens; what is not a rule is left out."""
    joined = re.sub(r"\\\n\s*", "", text)
    lines = (line.strip() for line in joined.splitlines())
    found = [
        [Token(key, name, *rest) for key, name, *rest in _TOKEN.findall(line)] for line in lines if line[:1] != "#"
    ]
    return [tokens for tokens in found if tokens]


def rule_files(machine: Machine) -> list[Path]:
    """Return the rules files in force, in the order in which udev reads them."""
    by_name: dict[str, Path] = {}
    for folder in FOLDERS:
        for path in sorted(machine.path(folder).glob("*.rules")):
            by_name.setdefault(path.name, path)
    return [by_name[name] for name in sorted(by_name)]


def read_rules(machine: Machine) -> dict[str, list[list[Token]]]:
    """Return the rules in force by name of the file, in the order in which udev reads them."""
    found = {}
    for path in rule_files(machine):
        try:
            found[path.name] = parse(path.read_text(errors="replace"))
        except OSError:
            continue
    return found


def access(files: dict[str, list[list[Token]]], identity: str, node: Node) -> Access:
    """Return what the rules of `files` grant the device file `node` of the device `identity`."""
    candidate, granted = _Candidate.of(identity, node), Access()
    for name, content in files.items():
        for rule in _applying(content, candidate):
            granted = _assign(granted, rule, in_time=name < SEAT)
    return granted


def _applying(content: list[list[Token]], candidate: _Candidate) -> Iterator[list[Token]]:
    """Go through the rules of a file as udev does, jumps included, and give those whose conditions hold."""
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
