"""Tables of figures: a long measurement prints all rows."""

from tests.devices.sessions import SessionFailed, print_tables


def fail():
    raise SessionFailed("the device\nwas unplugged")


def test_row_that_fails_has_its_cause_and_the_others_are_measured(capsys):
    rows = [(("first",), fail), (("second",), lambda: (1.0, 2))]
    assert print_tables({"only": (("row", "one", "two"), lambda seconds: rows)}, ["3"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2:] == ["| first | failed: the device was unplugged | - |", "| second | 1.0 | 2 |"]
