"""The pane common: its model, views and commands."""
