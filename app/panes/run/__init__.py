"""The pane run: its model, views and commands."""
