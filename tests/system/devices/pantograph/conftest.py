"""What the tests at an emulated board share."""

import pytest

from devices.emulators.hapi import arms
from devices.emulators.hapi import board as boards
from devices.emulators.hapi.board import HapiBoard
from tests.devices.pantograph.boards import Attentive, holding


@pytest.fixture(autouse=True)
def quick_operator(monkeypatch):
    monkeypatch.setattr(boards, "Arms", Attentive)
    monkeypatch.setattr(arms, "HOLD", 0.0)
    monkeypatch.setattr(arms, "CARRY", 0.04)


@pytest.fixture
def board():
    with HapiBoard(hand=holding([0.0, 0.0])) as board:
        yield board
