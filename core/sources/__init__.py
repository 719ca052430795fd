"""Sources: opening models and making their inputs."""
