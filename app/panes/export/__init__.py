"""The pane export: its model, views and commands."""
