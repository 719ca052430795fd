"""The pane inputs: its model, views and commands."""
