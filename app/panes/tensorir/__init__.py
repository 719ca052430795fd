"""The pane tensorir: its model, views and commands."""
