"""The commands of the window: what menus, shortcuts and the palette do."""
