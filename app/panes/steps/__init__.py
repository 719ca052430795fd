"""The pane steps: its model, views and commands."""
