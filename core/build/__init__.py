"""Building and running modules, and the reference runs of torch."""
