"""The panes: each knows the domain, draws records, and tells the workspace what the user wants."""
