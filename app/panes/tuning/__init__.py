"""The pane tuning: its model, views and commands."""
