"""The pane remote: its model, views and commands."""
