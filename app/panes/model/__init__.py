"""The pane model: its model, views and commands."""
