"""Checks of scheduling rights, kernel, processor and timer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.doctor import timing
from apps.doctor.machine import Machine
from apps.doctor.timing import CLOCK_SOURCE, CPUS, LATENCY_DEVICE, LIMIT_LINES, LIMITS
from haptics.recording.certificate import Fitness
from tests.apps.doctor.machines import ROOT, expect, machine

PERIOD = 1e-3


def granted(**facts):
    answer = {"scheduling": "other", "priority": 0, "niceness": 0, "memory_locked": False, "low_latency": False}
    return lambda: {**answer, **facts}


# --- rights ----------------------------------------------------------------------------------------------------------


def test_scheduling_reports_the_class_that_was_granted(tmp_path):
    answer = timing.granted()
    assert (timing.scheduling(Machine()).severity == "ok") == (answer["scheduling"] == "fifo")
    assert set(answer) >= {"scheduling", "priority", "memory_locked", "low_latency"}
    everything = granted(scheduling="fifo", priority=80, memory_locked=True, low_latency=True)
    expect(timing.scheduling(machine(tmp_path), everything), "ok", "80")
    expect(timing.memory_lock(machine(tmp_path), everything), "ok")
    expect(timing.cpu_dma_latency(machine(tmp_path), everything), "ok")


@pytest.mark.parametrize("user", [ROOT, 1000])
def test_rights_in_a_container_are_granted_from_outside(tmp_path, user):
    inside = machine(tmp_path, {"/.dockerenv": ""}, user)
    memory = timing.memory_lock(inside, granted(), lambda _: 8.0 * 2**20)
    for finding in (timing.scheduling(inside, granted()), expect(memory, "note", "8 MB")):
        assert "--cap-add=SYS_NICE" in finding.fix and "sudo" not in finding.fix


RUNTIME, RT_PERIOD = "/proc/sys/kernel/sched_rt_runtime_us", "/proc/sys/kernel/sched_rt_period_us"
CGROUP_RUNTIME = "/sys/fs/cgroup/cpu/cpu.rt_runtime_us"


def test_missing_scheduling_right_is_a_problem(tmp_path):
    limited = timing.scheduling(machine(tmp_path / "a"), granted(), lambda _: 50.0)
    expect(limited, "problem", "50", "sudo tee", LIMITS, *LIMIT_LINES)
    root = timing.scheduling(machine(tmp_path / "b", user=ROOT), granted(), lambda _: 0.0)
    assert "sudo" not in expect(root, "problem", "CAP_SYS_NICE").fix
    expect(timing.scheduling(machine(tmp_path / "c", {RUNTIME: "0\n"}), granted()), "problem", "sysctl")
    expect(timing.scheduling(machine(tmp_path / "d", {CGROUP_RUNTIME: "0\n"}), granted()), "problem", "sysctl")


def test_limits_file_counts_for_members_of_the_group_after_a_login(tmp_path):
    files = {LIMITS: "\n".join(LIMIT_LINES), "/etc/group": "haptics:x:977:ada\n"}
    member = timing.scheduling(machine(tmp_path, files), granted(), lambda _: 0.0)
    assert "tee" not in expect(member, "problem", "log out and in again").fix
    empty = machine(tmp_path, {"/etc/group": "haptics:x:977:\n"})
    expect(timing.scheduling(empty, granted(), lambda _: 0.0), "problem", "usermod")


def test_other_systems_have_no_real_time_class(tmp_path):
    here = machine(tmp_path, system="darwin")
    expect(timing.scheduling(here, granted()), "note", "Linux")
    expect(timing.memory_lock(here, granted()), "ok", "does not apply")


def test_latency_device_is_noted_with_a_fix(tmp_path):
    udev, none = {LATENCY_DEVICE: "", "/run/udev/control": ""}, machine(tmp_path / "c")
    rule = 'KERNEL=="cpu_dma_latency"'
    container = machine(tmp_path / "d", {"/run/.containerenv": ""})
    expect(timing.cpu_dma_latency(machine(tmp_path / "a", {LATENCY_DEVICE: ""}), granted()), "note", "chgrp haptics")
    expect(timing.cpu_dma_latency(machine(tmp_path / "b", udev), granted()), "note", "udevadm", rule)
    expect(timing.cpu_dma_latency(none, granted()), "note", "max_cstate")
    expect(timing.cpu_dma_latency(container, granted()), "note", f"--device {LATENCY_DEVICE}")


@pytest.mark.parametrize(
    ("runtime", "severity", "word"),
    [("950000", "ok", "95 %"), ("-1", "ok", "not throttled"), ("100000", "problem", "10 %"), ("0", "problem", "0 %")],
)
def test_throttling(tmp_path, runtime, severity, word):
    expect(timing.throttling(machine(tmp_path / "none")), "ok", "does not say")
    expect(timing.throttling(machine(tmp_path, {RUNTIME: runtime, RT_PERIOD: "1000000"})), severity, word)


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
def test_kernel(tmp_path, version, severity, word):
    expect(timing.kernel(machine(tmp_path), version), severity, word)
    real = machine(tmp_path, {"/sys/kernel/realtime": "1\n"})
    expect(timing.kernel(real, version), "ok", "PREEMPT")


# --- processor -------------------------------------------------------------------------------------------------------


def test_governor(tmp_path):
    def governors(*names):
        return {f"{CPUS}/cpu{k}/cpufreq/scaling_governor": f"{name}\n" for k, name in enumerate(names)}

    mixed = machine(tmp_path / "a", governors("powersave", "performance", "schedutil", "powersave"))
    expect(timing.governor(mixed), "note", "3 of 4", "2 with 'powersave'", "1 with 'schedutil'", "sudo tee")
    expect(timing.governor(machine(tmp_path / "b", governors("performance", "performance"))), "ok")
    expect(timing.governor(machine(tmp_path / "c")), "ok", "cannot set")


@pytest.mark.parametrize(("current", "available", "cost", "severity", "word"), [
    ("tsc", "tsc hpet", 40e-9, "ok", "40 ns"), ("hpet", "tsc hpet acpi_pm", 1.5e-6, "note", "echo tsc"),
    ("acpi_pm", "acpi_pm", 3e-6, "note", "dmesg"), ("a-new-one", "a-new-one", 60e-9, "ok", "a-new-one"),
])  # fmt: skip
def test_clock_source(tmp_path, current, available, cost, severity, word):
    files = {f"{CLOCK_SOURCE}/current_clocksource": current, f"{CLOCK_SOURCE}/available_clocksource": available}
    expect(timing.clock_source(machine(tmp_path, files), lambda: cost), severity, word)


@pytest.mark.parametrize(
    ("files", "severity", "word"),
    [
        ({"/sys/class/dmi/id/sys_vendor": "QEMU"}, "note", "QEMU"),
        ({"/sys/class/dmi/id/product_name": "VMware Virtual Platform"}, "note", "VMware"),
        ({"/proc/version": "Linux 5.15 microsoft-standard-WSL2"}, "note", "Windows"),
        ({"/proc/cpuinfo": "processor : 0\nflags\t\t: fpu tsc hypervisor sse\n"}, "note", "unknown name"),
        ({"/sys/hypervisor/type": "xen"}, "note", "xen"),
        ({"/.dockerenv": ""}, "ok", "docker"),
        ({"/run/.containerenv": ""}, "ok", "podman"),
        ({"/proc/1/cgroup": "12:cpu:/kubepods/burstable/pod7\n"}, "ok", "kubepods"),
        ({"/sys/class/dmi/id/sys_vendor": "LENOVO", "/proc/cpuinfo": "flags\t: fpu tsc\n"}, "ok", "no virtual machine"),
        ({"/proc/1/cgroup": "0::/\n"}, "ok", "no virtual machine"),
    ],
)
def test_virtual_machine(tmp_path, files, severity, word):
    expect(timing.virtual(machine(tmp_path, files, ROOT)), severity, word)
    expect(timing.virtual(machine(tmp_path / "lxc", environment={"container": "lxc"})), "ok", "lxc")


def test_clock_reading_time_and_number_of_processors(tmp_path):
    assert 0.0 < timing.reading_time(100) < 1e-3
    assert timing.usable_processors() >= 1
    expect(timing.cores(machine(tmp_path), lambda: 8), "ok", "8")
    expect(timing.cores(machine(tmp_path), lambda: 1), "note", "--headless")


@given(limit=st.integers(1, 3_200_000), count=st.integers(2, 64))
def test_container_quota_is_noted(tmp_path_factory, limit, count):
    small = machine(tmp_path_factory.mktemp("m"), {"/sys/fs/cgroup/cpu.max": f"{limit} 100000\n"})
    assert (timing.cores(small, lambda: count).severity == "note") == (limit / 100000 < count)


# --- timer -----------------------------------------------------------------------------------------------------------


@given(missed=st.integers(0, 50), part=st.floats(0.01, 0.99))
def test_delay_counts_for_every_deadline_missed_meanwhile(missed, part):
    late = (missed + part) * PERIOD
    delays = timing.passed(late, PERIOD)
    assert delays[0] == late
    assert all(0.0 < delay <= late for delay in delays)
    assert sum(delay > PERIOD for delay in delays) == missed == len(delays) - 1


@given(delays=st.lists(st.floats(0.0, 0.02), min_size=1, max_size=300))
def test_timer_quantiles_rise_and_are_measured_delays(delays):
    found = timing.lateness(delays, PERIOD)
    quantiles = [found[name] for name in ("p50_us", "p99_us", "p999_us", "max_us")]
    assert quantiles == sorted(quantiles)
    assert set(quantiles) <= {round(1e6 * delay, 1) for delay in delays}
    assert quantiles[-1] == round(1e6 * max(delays), 1)
    assert 0.0 <= found["missed_share"] <= found["late_share"] <= 1.0


def timer_facts(**others):
    return {
        **{"p50_us": 1.0, "p99_us": 20.0, "p999_us": 60.0, "max_us": 90.0, "late_share": 0.0, "missed_share": 0.0},
        **{"realtime": "fifo", "low_latency": True, "memory_locked": True, "usage": {"stolen_s": 0.0}},
        **others,
    }


@pytest.mark.parametrize(("others", "severity", "word"), [
    ({}, "ok", "99.9 % 60"), ({"usage": {"stolen_s": None}}, "ok", "us"), ({"late_share": 0.004}, "note", "top"),
    ({"late_share": 0.2}, "problem", "us"), ({"late_share": 0.004, "usage": {"stolen_s": 0.12}}, "note", "120 ms"),
    ({"late_share": 0.02, "missed_share": 0.02}, "problem", "2 %"),
    ({"late_share": 0.004, "max_us": 150e3}, "problem", "150000"),
    ({"late_share": 0.2, "realtime": "other", "low_latency": False},
     "problem", "doctor scheduling cpu-dma-latency timer"),
])  # fmt: skip
def test_timer(tmp_path, others, severity, word):
    expect(timing.timer(machine(tmp_path), lambda _: timer_facts(**others)), severity, word)


@given(late=st.floats(0.0, 1.0), part=st.floats(0.0, 1.0), longest=st.floats(1.0, 1e6))
def test_timer_problems_are_those_that_make_a_run_unfit(late, part, longest):
    found = timer_facts(late_share=late, missed_share=late * part, max_us=longest)
    certificate = {
        **{"ticks": 1_000_000, "overruns": late * 1_000_000, "longest_gap_us": longest},
        **dict.fromkeys(("skipped", "unusable_ticks", "lost_ticks"), 0),
    }
    unfit = bool(Fitness().evaluate(certificate)) or late * part > Fitness().skipped_share
    assert (timing.severity_of(found) == "problem") == (unfit and late > 0.001)
