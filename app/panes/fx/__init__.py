"""The pane fx: its model, views and commands."""
