"""Tiny models of families of dense decoders."""

CASES = []
