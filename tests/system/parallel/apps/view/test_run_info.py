"""Run information of a message or a recording, and the certificate."""

import pytest

from apps.front_ends.messages import HOLD_EVERY
from apps.front_ends.run import from_message, from_metadata, levels
from apps.shared.summary import certificate, durations, verdict
from haptics.servo.kernels import KEY_TIMEOUT
from tests.apps.view import view_rows
from tests.apps.view.summaries import REASONS, SUMMARY, UNFIT


def test_held_key_is_repeated_before_it_expires():
    assert 2 * HOLD_EVERY < KEY_TIMEOUT


def test_message_describes_the_run(started):
    info = from_message(started)
    assert info.title == "model C on virtual-joystick"
    assert info.force_name == "command"
    assert (info.workspace, info.rate, info.mouse) == (started.workspace, 1000.0, True)
    assert (info.max_energy, info.dead_man) == (started.max_energy, started.dead_man)


def test_metadata_describe_the_run(rows):
    info = from_metadata(view_rows.METADATA, rows)
    assert (info.device, info.model, info.causality) == ("virtual-joystick", "C", "impedance")
    assert info.workspace == ((-0.06, -0.045), (0.06, 0.045))
    assert levels({p.key: p.value for p in info.parameters}) == (4.0,)
    assert info.force_scale == 4.0
    assert (info.max_energy, info.dead_man) == (0.02, "none")


def test_configuration_of_a_recording_describes_the_run(rows):
    tables = {"law": {"name": "coulomb", "force": 3.0}, "element": {"stiffness": 500.0}, "session": {"rate": 1.0}}
    tables["device"] = {"name": "virtual-joystick", "hand": {"name": "minimum-jerk"}}
    info = from_metadata({"configuration": tables}, rows)
    assert {p.key: p.value for p in info.parameters} == {"law.force": 3.0, "element.stiffness": 500.0}
    assert [p.unit for p in info.parameters] == ["N", "N/m"]
    assert info.hand == "minimum-jerk"


def test_run_of_a_recording_without_metadata_is_estimated(rows):
    info = from_metadata({}, rows)
    (left, low), (right, high) = info.workspace
    assert left < rows["position"][:, 0].min() < rows["position"][:, 0].max() < right
    assert low < rows["position"][:, 1].min() < rows["position"][:, 1].max() < high
    assert info.force_scale == pytest.approx(4.0, rel=0.05)
    assert (info.rate, info.causality) == (1000.0, "impedance")


@pytest.mark.parametrize(("model", "causality"), [("A", "admittance"), ("B", "impedance"), ("D", "admittance")])
def test_causality_follows_from_the_model(rows, model, causality):
    info = from_metadata({"model": model}, rows)
    assert info.causality == causality
    assert info.force_name == ("hand force" if causality == "admittance" else "command")


def certificate_text(summary):
    """Return the lines of a certificate with ordinary spaces."""
    return "\n".join(f"{name}: {value}" for name, value in certificate(summary)).replace("\u00a0", " ")


def test_certificate_has_every_count():
    text = certificate_text(SUMMARY)
    for part in ("12\u2009000 at 1000 Hz", "2 skipped", "34 late", "1 lost", "7 unusable samples", "3.02 ms between"):
        assert part in text
    for part in ("real-time (FIFO), pinned to CPU 1", "mean 2.50 N", "max 4.00 N", "38 % of the time"):
        assert part in text
    assert "disturbed by: CPU steal 0.25 s, 9 preemptions" in text


def test_certificate_leaves_out_zero_counts():
    quiet = {**SUMMARY, "stolen_s": 0.0, "involuntary_switches": 0, "unusable_ticks": 0, "major_faults": None}
    text = certificate_text(quiet)
    assert "disturbed" not in text
    assert "unusable" not in text
    assert "sample age" not in durations(SUMMARY)
    assert durations({**SUMMARY, "sample_age_us": {"p50": 0.0, "max": 900.0}})["sample age"] == {"p50": 0, "max": 900}


def test_durations_have_their_quantiles():
    found = durations(SUMMARY)
    assert list(found) == ["start delay", "computation time", "time to command"]
    assert found["start delay"] == {"p50": 21.0, "p99": 63.0, "p99.9": 410.0, "max": 1377.0}


def test_certificate_reads_the_names_of_a_recording():
    recorded = {"ticks": 10, "scheduling": "other", "processors": "0, 1"}
    assert "scheduling: not real-time, CPUs 0, 1" in certificate_text(recorded)


def test_verdict_has_its_reasons():
    assert verdict({"ticks": 5}) is None
    fit, unfit = verdict(SUMMARY), verdict(UNFIT)
    assert fit is not None and unfit is not None
    assert (fit.word, fit.reasons) == ("fit", ())
    assert (unfit.word, unfit.reasons) == ("UNFIT", tuple(REASONS))


def test_certificate_without_ticks_is_empty():
    assert certificate({}) == []
    assert durations({}) == {}
    assert certificate({"force_n": {}, "stick_fraction": None}) == []
