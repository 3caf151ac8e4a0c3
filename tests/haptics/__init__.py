"""Tests of the core: laws, elements and everything else that lives in `haptics`."""
