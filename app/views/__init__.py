"""The panes: domain-aware views that draw records and forward commands to the document."""
