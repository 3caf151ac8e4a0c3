"""Tests of the devices: each against the contract, then against the physics it claims."""
