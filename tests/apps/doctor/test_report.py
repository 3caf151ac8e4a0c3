"""The words: groups, alignment, lines to be pasted, the verdict; and that no check can stop the others."""

import io
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.doctor import registry, report
from apps.doctor.finding import Finding, Severity, note, ok, problem
from apps.doctor.registry import CHECKS, Check, chosen, run_one
from haptics.errors import ConfigurationError
from tests.apps.doctor.machines import expect, machine

GOOD = {name: ok("fine") for name in CHECKS}
SLOW = ("kernels", "scheduling", "memory-lock", "cpu-dma-latency", "timer", "window", "libusb", "numbers")
"""Checks that ask another process."""


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, "ready for 1 kHz with real-time priority"),
        ({"display": note("none", "x")}, "ready for 1 kHz with real-time priority (1 note)"),
        ({"timer": problem("slow", "x")}, "works, but ticks come late on this machine: do not hold a real device"),
        ({"disk": problem("full", "x"), "libusb": problem("none", "x")}, "works, but with 2 problems: libusb, disk"),
        (
            {"packages": problem("none", "x"), "disk": problem("full", "x")},
            "does not work yet: packages, and 1 more problem",
        ),
    ],
)
def test_verdicts(changes: dict[str, Finding], verdict: str) -> None:
    assert report.verdict({**GOOD, **changes}) == verdict


def test_the_verdict_without_real_time() -> None:
    findings = {**GOOD, "scheduling": problem("no", "x"), "timer": problem("slow", "x")}
    assert report.verdict(findings) == "works, but without real-time priority, so ticks will be late at times"
    more = report.verdict({**findings, "disk": problem("full", "x")})
    assert more.startswith("works, but without real-time priority") and more.endswith("with 1 more problem: disk")


def test_only_a_look_at_timing_makes_a_machine_ready_for_1_khz() -> None:
    assert report.verdict({"cores": ok("2"), "disk": note("slow", "x")}) == "no problem found in 2 checks (1 note)"


@given(
    severities=st.dictionaries(st.sampled_from(sorted(CHECKS)), st.sampled_from(list(Severity)), min_size=1),
    words=st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=200),
)
def test_every_finding_is_in_both_reports(severities: dict[str, Severity], words: str) -> None:
    fix = "echo mend\n# then log in again"
    findings = {name: Finding(kind, words, "" if kind is Severity.OK else fix) for name, kind in severities.items()}
    result = report.result(findings)
    assert [row["name"] for row in result["findings"]] == list(findings)
    assert all(set(row) == {"name", "group", "severity", "found", "fix"} for row in result["findings"])
    assert result["ready"] == (Severity.PROBLEM not in severities.values())
    lines = report.describe(findings).splitlines()
    mended = sum(kind is not Severity.OK for kind in severities.values())
    assert sum(line.strip() == "echo mend" for line in lines) == mended
    assert lines[-1] == report.verdict(findings)
    assert all(sum(line.split()[:2] == [str(kind), name] for line in lines) >= 1 for name, kind in severities.items())


def test_a_line_ends_nowhere_between_a_number_and_its_unit() -> None:
    for length in range(60, 130):
        text = report.describe({"timer": ok("x" * length + " 99.9 % of 250 us and 8 MB")})
        assert "99.9 %" in text and "250 us" in text and "8 MB" in text


def test_letters_that_the_output_does_not_take_are_written_as_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", plain)
    text = report.describe({"disk": ok("/home/jörg/\udcff")})
    plain.write(text)
    assert "j\\xf6rg" in text and "\\udcff" in text


def test_names() -> None:
    assert chosen([]) == list(CHECKS)
    assert chosen(["timer", "disk", "timer"]) == ["timer", "disk"]
    with pytest.raises(ConfigurationError, match="unknown check 'clock'"):
        chosen(["clock"])


@pytest.mark.parametrize("function", ["timer:nothing", "nowhere:nothing", "report:describe"])
def test_a_check_that_fails_is_a_finding(tmp_path: Path, function: str) -> None:
    expect(
        run_one("disk", Check("storage", function, "x"), machine(tmp_path)),
        "problem",
        "could not be checked",
        "disk --json",
    )


def test_checks_of_linux_do_not_apply_elsewhere(tmp_path: Path) -> None:
    for name, check in CHECKS.items():
        if check.linux:
            expect(run_one(name, check, machine(tmp_path, system="win32")), "ok", "does not apply on win32")


@pytest.mark.parametrize("system", ["linux", "darwin", "win32"])
@pytest.mark.parametrize(
    "files", [{}, {"/proc/sys/kernel/sched_rt_runtime_us": "junk", "/etc/group": ":::\n\n:", "/proc/stat": ""}]
)
def test_nothing_is_needed_of_a_machine(tmp_path: Path, system: str, files: dict[str, str]) -> None:
    """No /proc, no /sys, or nonsense in it: every check says something."""
    bare = machine(tmp_path, files, system=system)
    for name, check in CHECKS.items():
        if name not in SLOW:
            finding = run_one(name, check, bare)
            assert "could not be checked" not in finding.found, (name, finding)


def test_the_order_of_the_groups_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    shuffled: dict[str, Any] = {name: ok("fine") for name in ("disk", "python", "stale-files", "packages")}
    text = report.describe(shuffled)
    assert text.index("software") < text.index("python") < text.index("packages") < text.index("storage")
    assert text.count("storage") == 1
    assert registry.CHECKS["disk"].group == "storage"
