"""Runs of the open model: requests and outcomes."""
