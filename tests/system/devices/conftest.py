"""Fixtures of the drivers: an emulated stick, service or board."""

import pytest

from devices.emulators.hapi import arms
from devices.emulators.hapi import board as boards
from devices.emulators.hapi.board import HapiBoard
from devices.emulators.inverse3.server import InverseServer
from tests.devices.inverse3.services import emulated
from tests.devices.joystick.conftest import compiled, opened, trace
from tests.devices.pantograph.boards import Attentive, holding

__all__ = ["compiled", "opened", "trace"]


@pytest.fixture
def server():
    with InverseServer([emulated()]) as server:
        yield server


@pytest.fixture
def quick_operator(monkeypatch):
    monkeypatch.setattr(boards, "Arms", Attentive)
    monkeypatch.setattr(arms, "HOLD", 0.0)
    monkeypatch.setattr(arms, "CARRY", 0.04)


@pytest.fixture
def board(quick_operator):
    with HapiBoard(hand=holding([0.0, 0.0])) as board:
        yield board


@pytest.fixture
def own_cache(monkeypatch, tmp_path_factory):
    """Keep the cache of endpoint tables in a temporary folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))
