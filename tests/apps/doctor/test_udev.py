"""Rules of udev: those we write grant what a driver needs, those of others are understood."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.doctor.checks.families import FAMILIES, Family, named, names
from apps.doctor.checks.udev import SEAT, access, parse, read_rules, rule_files, rules
from devices import BACKENDS
from devices.common.bus.udev import RULES_FILE, Node
from tests.apps.doctor.machines import machine
from tests.processes import ROOT as PROJECT

BOARD = "1209:ffb0"


def opens(text: str, identity: str = BOARD, node: Node = Node.HIDRAW, name: str = "70-mine.rules") -> bool:
    return access({name: parse(text)}, identity, node).open_to(["people"])


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_our_rules_open_every_device_file_of_their_family_and_no_other(family: Family) -> None:
    files = {Path(RULES_FILE).name: parse(rules([family]))}
    for other in FAMILIES:
        for identity in other.identities:
            for node in Node:
                wanted = other is family and node in family.nodes
                assert access(files, identity, node).tagged == wanted
                assert access(files, identity, node).open_to(["haptics"]) == wanted


def test_identities_are_four_small_hexadecimal_digits_twice_and_unambiguous() -> None:
    identities = [identity for family in FAMILIES for identity in family.identities]
    assert all(re.fullmatch(r"[0-9a-f]{4}:[0-9a-f]{4}", identity) for identity in identities)
    assert len(identities) == len(set(identities))


def test_the_table_of_families_needs_no_driver() -> None:
    """The command must say what is missing, so it must start without that."""
    question = (
        "import sys, apps.doctor.checks.families; print([name for name in ('numba', 'usb') if name in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", question], cwd=PROJECT, capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


def test_a_stick_of_no_family_is_named_by_its_identity() -> None:
    (stick,) = named("1234:abcd")
    assert 'ATTR{idVendor}=="1234", ATTR{idProduct}=="abcd"' in rules([stick])
    assert named("045e:001b")[0].name == "sidewinder"
    assert named("1234:ABCD") == ()


def test_our_rules_are_read_before_rights_are_given() -> None:
    assert Path(RULES_FILE).name < SEAT
    assert RULES_FILE in rules()


def test_serial_devices_are_kept_from_modem_programs_and_joysticks_awake() -> None:
    for family in FAMILIES:
        assert ("ID_MM_DEVICE_IGNORE" in rules([family])) == (Node.TTY in family.nodes)
        assert 'ATTR{power/control}="on"' in rules([family])


def test_a_device_of_the_command_line_stands_for_its_families() -> None:
    assert {family.name for family in named("arm")} == {"odrive", "optoforce"}
    assert named("odrive")[0].identities[1] == "1209:0d32"
    assert named("toaster") == ()
    assert set(names()) >= {family.backend for family in FAMILIES}
    assert not {family.backend for family in FAMILIES} & {name for name in BACKENDS if name.startswith("virtual")}


@pytest.mark.parametrize(
    ("text", "opened"),
    [
        ('KERNEL=="hidraw*", ATTRS{idVendor}=="1209", ATTRS{idProduct}=="ffb0", TAG+="uaccess"', True),
        ('KERNEL=="hidraw*", ATTRS{idVendor}=="1209", TAG+="uaccess"', True),
        ('SUBSYSTEM=="hidraw", ATTRS{idVendor}=="1209", ATTRS{idProduct}=="ffb*", MODE="0666"', True),
        ('ATTRS{idVendor}=="16c0|1209", ATTRS{idProduct}=="????", MODE:="666"', True),
        ('SUBSYSTEM=="hidraw", ATTRS{idVendor}=="1209", GROUP="people"', True),
        ('SUBSYSTEM=="hidraw", ATTRS{idVendor}=="1209", \\\n  ATTRS{idProduct}=="ffb0", \\\n  TAG+="uaccess"', True),
        ('SUBSYSTEM!="hidraw", GOTO="end"\nATTRS{idVendor}=="1209", TAG+="uaccess"\nLABEL="end"', True),
        ('SUBSYSTEM=="hidraw", GOTO="end"\nATTRS{idVendor}=="1209", TAG+="uaccess"\nLABEL="end"', False),
        ('SUBSYSTEM=="hidraw", ATTRS{idVendor}=="1209", GROUP="others", MODE="0660"', False),
        ('SUBSYSTEM=="hidraw", ATTRS{idVendor}=="1209", GROUP="people", MODE="0640"', False),
        ('SUBSYSTEM=="usb", ATTRS{idVendor}=="1209", TAG+="uaccess"', False),
        ('ATTR{idVendor}=="1209", ATTR{idProduct}=="ffb0", TAG+="uaccess"', False),
        ('ATTRS{idVendor}=="1209", ATTRS{idProduct}=="FFB0", TAG+="uaccess"', False),
        ('# ATTRS{idVendor}=="1209", TAG+="uaccess"', False),
        ('ATTRS{idVendor}=="1209", TAG+="uaccess"\nATTRS{idProduct}=="ffb0", TAG-="uaccess"', False),
        ('PROGRAM=="/bin/false", ATTRS{idVendor}=="1209", TAG+="uaccess"', False),
        ("", False),
    ],
)
def test_rules_of_others(text: str, opened: bool) -> None:
    assert opens(text) == opened


def test_a_tag_that_comes_after_the_seat_rules_gives_nothing() -> None:
    text = 'ATTRS{idVendor}=="1209", TAG+="uaccess"'
    assert opens(text, name="72-mine.rules")
    assert not opens(text, name="99-mine.rules")


@given(text=st.text(alphabet=st.sampled_from('ATRS{}idVendor"=+!:,\\\n #GOTO'), max_size=80))
def test_any_text_can_be_read(text: str) -> None:
    for rule in parse(text):
        assert all(token.operator in {"==", "!=", "+=", "-=", ":=", "="} for token in rule)
    assert opens(text) in {True, False}


def test_a_file_hides_its_namesakes_in_later_folders(tmp_path: Path) -> None:
    text = 'ATTRS{idVendor}=="1209", TAG+="uaccess"'
    files = {
        "/usr/lib/udev/rules.d/70-a.rules": text,
        "/etc/udev/rules.d/70-a.rules": "",
        "/lib/udev/rules.d/60-b.rules": "x",
    }
    found = machine(tmp_path, files)
    assert [path.name for path in rule_files(found)] == ["60-b.rules", "70-a.rules"]
    assert not access(read_rules(found), BOARD, Node.HIDRAW).open_to([])
