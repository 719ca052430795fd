"""The pane difference: its model, views and commands."""
