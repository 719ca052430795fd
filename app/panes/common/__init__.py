"""Texts and pages that several panes show."""
