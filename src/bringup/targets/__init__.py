"""Targets: where a server runs."""
