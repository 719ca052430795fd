"""The panes: each knows the domain, draws records, and sends what the user wants to the workspace."""
