"""Certificate, forces and flags of rows in memory."""

from haptics.recording.certificate import RunSummary


def certificate(rows, executed, planned, period):
    return RunSummary(period).add(rows).certificate(executed, planned)


def felt(rows, causality):
    return RunSummary(1.0).add(rows).force_statistics(causality)


def flags_seen(rows):
    return RunSummary(1.0).add(rows).flags_seen()
