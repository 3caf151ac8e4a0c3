"""Rights: what is granted, what is not and why, and the lines that give it."""

from pathlib import Path
from typing import Any

import pytest

from apps.doctor.checks import real_time
from apps.doctor.checks.real_time import LATENCY_DEVICE, LIMIT_LINES, LIMITS
from apps.doctor.machine import Machine
from tests.apps.doctor.machines import ROOT, expect, machine


def granted(**facts: Any) -> real_time.Granted:
    answer = {"scheduling": "other", "priority": 0, "niceness": 0, "memory_locked": False, "low_latency": False}
    return lambda: {**answer, **facts}


def test_what_a_process_was_really_granted_is_what_is_reported() -> None:
    answer = real_time.granted()
    finding = real_time.scheduling(Machine())
    assert (finding.severity == "ok") == (answer["scheduling"] == "fifo")
    assert set(answer) >= {"scheduling", "priority", "memory_locked", "low_latency"}


def test_rights_that_were_granted(tmp_path: Path) -> None:
    everything = granted(scheduling="fifo", priority=80, memory_locked=True, low_latency=True)
    expect(real_time.scheduling(machine(tmp_path), everything), "ok", "80")
    expect(real_time.memory_lock(machine(tmp_path), everything), "ok")
    expect(real_time.cpu_dma_latency(machine(tmp_path), everything), "ok")


def test_a_person_gets_the_lines_that_write_down_the_limits(tmp_path: Path) -> None:
    finding = real_time.scheduling(machine(tmp_path), granted(), lambda _: 50.0)
    expect(finding, "problem", "50", "sudo tee", LIMITS, *LIMIT_LINES)


def test_a_session_older_than_its_rights_is_told_to_log_in_again(tmp_path: Path) -> None:
    files = {LIMITS: "\n".join(LIMIT_LINES), "/etc/group": "haptics:x:977:ada\n"}
    finding = expect(
        real_time.scheduling(machine(tmp_path, files), granted(), lambda _: 0.0), "problem", "log out and in again"
    )
    assert "tee" not in finding.fix


def test_limits_for_a_group_without_members_do_not_count(tmp_path: Path) -> None:
    files = {LIMITS: "\n".join(LIMIT_LINES), "/etc/group": "haptics:x:977:\n"}
    expect(real_time.scheduling(machine(tmp_path, files), granted(), lambda _: 0.0), "problem", "usermod")


@pytest.mark.parametrize("user", [ROOT, 1000])
def test_in_a_container_the_rights_come_from_outside(tmp_path: Path, user: int) -> None:
    inside = machine(tmp_path, {"/.dockerenv": ""}, user)
    for finding in (
        real_time.scheduling(inside, granted()),
        real_time.memory_lock(inside, granted(), lambda _: 8.0 * 2**20),
    ):
        assert "--cap-add=SYS_NICE" in finding.fix and "sudo" not in finding.fix
    expect(real_time.memory_lock(inside, granted(), lambda _: 8.0 * 2**20), "note", "8 MB")


def test_root_needs_no_sudo(tmp_path: Path) -> None:
    finding = real_time.scheduling(machine(tmp_path, user=ROOT), granted(), lambda _: 0.0)
    assert "sudo" not in expect(finding, "problem", "CAP_SYS_NICE").fix


@pytest.mark.parametrize("name", ["/proc/sys/kernel/sched_rt_runtime_us", "/sys/fs/cgroup/cpu/cpu.rt_runtime_us"])
def test_no_time_for_real_time_processes_is_recognised(tmp_path: Path, name: str) -> None:
    expect(real_time.scheduling(machine(tmp_path, {name: "0\n"}), granted()), "problem", "sysctl")


def test_another_system_has_no_real_time_class(tmp_path: Path) -> None:
    expect(real_time.scheduling(machine(tmp_path, system="darwin"), granted()), "note", "Linux")
    expect(real_time.memory_lock(machine(tmp_path, system="darwin"), granted()), "ok", "does not apply")


def test_the_latency_device_is_given_to_the_group_by_a_rule_or_by_hand(tmp_path: Path) -> None:
    without_udev = machine(tmp_path, {LATENCY_DEVICE: ""})
    expect(real_time.cpu_dma_latency(without_udev, granted()), "note", "chgrp haptics")
    with_udev = machine(tmp_path, {"/run/udev/control": ""})
    expect(real_time.cpu_dma_latency(with_udev, granted()), "note", "udevadm", 'KERNEL=="cpu_dma_latency"')


def test_where_there_is_no_latency_device(tmp_path: Path) -> None:
    expect(real_time.cpu_dma_latency(machine(tmp_path), granted()), "note", "max_cstate")
    inside = machine(tmp_path, {"/run/.containerenv": ""})
    expect(real_time.cpu_dma_latency(inside, granted()), "note", f"--device {LATENCY_DEVICE}")


@pytest.mark.parametrize(
    ("runtime", "severity", "word"),
    [("950000", "ok", "95 %"), ("-1", "ok", "not throttled"), ("100000", "problem", "10 %"), ("0", "problem", "0 %")],
)
def test_throttling(tmp_path: Path, runtime: str, severity: str, word: str) -> None:
    files = {"/proc/sys/kernel/sched_rt_runtime_us": runtime, "/proc/sys/kernel/sched_rt_period_us": "1000000"}
    expect(real_time.throttling(machine(tmp_path, files)), severity, word)


def test_throttling_that_nobody_tells_of(tmp_path: Path) -> None:
    expect(real_time.throttling(machine(tmp_path)), "ok", "does not say")


@pytest.mark.parametrize(
    ("version", "severity", "word"),
    [
        ("6.1.0-18-rt-amd64 #1 SMP PREEMPT_RT Debian 6.1.76-1", "ok", "PREEMPT_RT"),
        ("4.19.0 #1 SMP PREEMPT RT Debian", "ok", "PREEMPT RT"),
        ("6.18.4 #1 SMP PREEMPT_DYNAMIC @0", "ok", "PREEMPT_DYNAMIC"),
        ("5.10.0 #1 SMP Debian 5.10.1", "note", "linux-image-rt"),
        ("unnamed", "note", "unnamed"),
    ],
)
def test_kernels(tmp_path: Path, version: str, severity: str, word: str) -> None:
    expect(real_time.kernel(machine(tmp_path), version), severity, word)


def test_the_kernel_itself_says_that_it_is_real_time(tmp_path: Path) -> None:
    expect(real_time.kernel(machine(tmp_path, {"/sys/kernel/realtime": "1\n"}), "6.12.0 #1 SMP"), "ok", "PREEMPT_RT")
