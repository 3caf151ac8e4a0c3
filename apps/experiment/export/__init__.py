"""Exports of sessions: wide CSV with a script for R, three columns for psignifit, BIDS, Psych-DS."""
