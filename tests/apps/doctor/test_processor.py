"""Frequency, clock, number of processors, and what lies below."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.doctor.checks import processor
from apps.doctor.checks.processor import CLOCK_SOURCE, CPUS
from tests.apps.doctor.machines import ROOT, expect, machine


def governors(*names: str) -> dict[str, str]:
    return {f"{CPUS}/cpu{k}/cpufreq/scaling_governor": f"{name}\n" for k, name in enumerate(names)}


def test_processors_that_save_power_are_counted(tmp_path: Path) -> None:
    mixed = machine(tmp_path, governors("powersave", "performance", "schedutil", "powersave"))
    finding = expect(processor.governor(mixed), "note", "3 of 4", "2 with 'powersave'", "1 with 'schedutil'")
    assert "sudo tee" in finding.fix


def test_processors_at_full_frequency(tmp_path: Path) -> None:
    expect(processor.governor(machine(tmp_path, governors("performance", "performance"))), "ok")
    expect(processor.governor(machine(tmp_path / "virtual")), "ok", "cannot set")


@pytest.mark.parametrize(
    ("current", "available", "cost", "severity", "word"),
    [
        ("tsc", "tsc hpet", 40e-9, "ok", "40 ns"),
        ("hpet", "tsc hpet acpi_pm", 1.5e-6, "note", "echo tsc"),
        ("acpi_pm", "acpi_pm", 3e-6, "note", "dmesg"),
        ("a-new-one", "a-new-one", 60e-9, "ok", "a-new-one"),
    ],
)
def test_clock_sources(tmp_path: Path, current: str, available: str, cost: float, severity: str, word: str) -> None:
    files = {f"{CLOCK_SOURCE}/current_clocksource": current, f"{CLOCK_SOURCE}/available_clocksource": available}
    expect(processor.clock_source(machine(tmp_path, files), lambda: cost), severity, word)


def test_the_clock_takes_time_to_read() -> None:
    assert 0.0 < processor.reading_time(100) < 1e-3


def test_number_of_processors(tmp_path: Path) -> None:
    expect(processor.cores(machine(tmp_path), lambda: 8), "ok", "8")
    expect(processor.cores(machine(tmp_path), lambda: 1), "note", "--headless")
    assert processor.usable_processors() >= 1


@given(limit=st.integers(1, 3_200_000), count=st.integers(2, 64))
def test_a_container_that_may_use_less_than_it_sees(
    tmp_path_factory: pytest.TempPathFactory, limit: int, count: int
) -> None:
    small = machine(tmp_path_factory.mktemp("m"), {"/sys/fs/cgroup/cpu.max": f"{limit} 100000\n"})
    assert (processor.cores(small, lambda: count).severity == "note") == (limit / 100000 < count)


@given(text=st.text(max_size=30))
def test_a_quota_of_nonsense_is_no_quota(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    odd = machine(tmp_path_factory.mktemp("m"), {"/sys/fs/cgroup/cpu.max": text.encode(errors="ignore").decode()})
    assert processor.cores(odd, lambda: 2).found


@pytest.mark.parametrize(
    ("files", "below"),
    [
        ({"/sys/class/dmi/id/sys_vendor": "QEMU"}, "QEMU"),
        ({"/sys/class/dmi/id/product_name": "VMware Virtual Platform"}, "VMware"),
        ({"/proc/version": "Linux 5.15 microsoft-standard-WSL2"}, "Windows"),
        ({"/proc/cpuinfo": "processor : 0\nflags\t\t: fpu tsc hypervisor sse\n"}, "unknown name"),
        ({"/sys/hypervisor/type": "xen"}, "xen"),
    ],
)
def test_virtual_machines(tmp_path: Path, files: dict[str, str], below: str) -> None:
    expect(processor.virtual(machine(tmp_path, files)), "note", below)


@pytest.mark.parametrize(
    ("files", "environment", "name"),
    [
        ({"/.dockerenv": ""}, {}, "docker"),
        ({"/run/.containerenv": ""}, {}, "podman"),
        ({"/proc/1/cgroup": "12:cpu:/kubepods/burstable/pod7\n"}, {}, "kubepods"),
        ({}, {"container": "lxc"}, "lxc"),
    ],
)
def test_containers(tmp_path: Path, files: dict[str, str], environment: dict[str, str], name: str) -> None:
    expect(processor.virtual(machine(tmp_path, files, ROOT, environment=environment)), "ok", name)


def test_a_machine_of_its_own(tmp_path: Path) -> None:
    files = {
        "/sys/class/dmi/id/sys_vendor": "LENOVO",
        "/proc/cpuinfo": "flags\t: fpu tsc\n",
        "/proc/1/cgroup": "0::/\n",
    }
    expect(processor.virtual(machine(tmp_path, files)), "ok", "no virtual machine")
