"""The report of ``haptics doctor``, and the execution of its checks."""

import io
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.doctor import registry
from apps.doctor.machine import Finding, Severity, note, ok, problem
from apps.doctor.registry import CHECKS, Check, run_one
from tests.apps.doctor.machines import expect, machine

GOOD = {name: ok("fine") for name in CHECKS}
SLOW = ("kernels", "scheduling", "memory-lock", "cpu-dma-latency", "timer", "triggers", "window", "libusb", "numbers")
"""Checks that start a process."""

MALFORMED = ("/proc/sys/kernel/sched_rt_runtime_us", "/sys/fs/cgroup/cpu.max")


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
def test_verdict(changes, verdict):
    assert registry.verdict({**GOOD, **changes}) == verdict


def test_verdict_without_real_time_or_without_a_timing_check_does_not_claim_readiness():
    findings = {**GOOD, "scheduling": problem("no", "x"), "timer": problem("slow", "x")}
    verdict = "works, but without real-time priority, so ticks will be late at times"
    assert registry.verdict(findings) == verdict
    assert registry.verdict({**findings, "disk": problem("full", "x")}) == f"{verdict}, and with 1 more problem: disk"
    assert registry.verdict({"cores": ok("2"), "disk": note("slow", "x")}) == "no problem found in 2 checks (1 note)"


@given(
    severities=st.dictionaries(st.sampled_from(sorted(CHECKS)), st.sampled_from(list(Severity)), min_size=1),
    words=st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=200),
)
def test_every_finding_is_in_both_reports(severities, words):
    fix = "echo mend\n# then log in again"
    findings = {name: Finding(kind, words, "" if kind is Severity.OK else fix) for name, kind in severities.items()}
    result = registry.result(findings)
    assert [row["name"] for row in result["findings"]] == list(findings)
    assert all(set(row) == {"name", "group", "severity", "found", "fix"} for row in result["findings"])
    assert result["ready"] == (Severity.PROBLEM not in severities.values())
    lines = registry.describe(findings).splitlines()
    mended = sum(kind is not Severity.OK for kind in severities.values())
    assert sum(line.strip() == "echo mend" for line in lines) == mended
    assert lines[-1] == registry.verdict(findings)
    assert all(sum(line.split()[:2] == [str(kind), name] for line in lines) >= 1 for name, kind in severities.items())


def test_report_lines_do_not_break_between_a_number_and_its_unit():
    for length in range(60, 130):
        text = registry.describe({"timer": ok("x" * length + " 99.9 % of 250 us and 8 MB")})
        assert "99.9 %" in text and "250 us" in text and "8 MB" in text


def test_report_escapes_letters_that_the_output_cannot_encode(monkeypatch):
    plain = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", plain)
    text = registry.describe({"disk": ok("/home/jörg/\udcff")})
    plain.write(text)
    assert "j\\xf6rg" in text and "\\udcff" in text


@pytest.mark.parametrize("function", ["timing:nothing", "nowhere:nothing", "registry:describe"])
def test_failing_check_is_reported_as_a_problem(tmp_path, function):
    finding = run_one("disk", Check("storage", function, "x"), machine(tmp_path))
    expect(finding, "problem", "could not be checked", "disk --json")


@pytest.mark.parametrize("system", ["linux", "darwin", "win32"])
@pytest.mark.parametrize(
    "files",
    [{}, dict.fromkeys(MALFORMED, "junk") | {"/etc/group": ":::\n\n:", "/proc/stat": ""}],
    ids=["empty", "malformed"],
)
def test_checks_need_no_files_of_the_machine(tmp_path, system, files):
    bare = machine(tmp_path, files, system=system)
    for name, check in CHECKS.items():
        if check.linux and system != "linux":
            expect(run_one(name, check, bare), "ok", f"does not apply on {system}")
        elif name not in SLOW:
            finding = run_one(name, check, bare)
            assert "could not be checked" not in finding.found, (name, finding)
