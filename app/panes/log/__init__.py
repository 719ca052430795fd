"""The pane log: its model, views and commands."""
