"""Tiny models of families with latent attention."""

CASES = []
