"""The panes: the model, views and commands of each feature in one folder."""
