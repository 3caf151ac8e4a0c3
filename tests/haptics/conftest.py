import pytest

from tests.haptics.drives import Drive
from tests.haptics.strategies import LAWS, make


@pytest.fixture
def begin():
    """Makes drives, and verifies them in the end."""
    drives: list[Drive] = []

    def new(element, tighter=None, **facts):
        element = make(element, LAWS["coulomb"]) if isinstance(element, str) else element
        drives.append(Drive(element, tighter, **facts))
        return drives[-1]

    yield new
    for drive in drives:
        drive.verify()
