"""The commands of the window, run from menus, shortcuts and the palette."""
