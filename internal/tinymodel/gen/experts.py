"""Tiny models of families with experts."""

CASES = []
