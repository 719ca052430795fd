"""Sources: what a user can open, how it is opened, and the inputs that it gets."""
