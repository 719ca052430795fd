"""The pane relax: its model, views and commands."""
