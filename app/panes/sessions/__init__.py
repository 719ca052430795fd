"""The pane sessions: its model, views and commands."""
