"""Tests of the tuning of devices."""
