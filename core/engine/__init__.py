"""The two children, engine and worker: what they say, and the program that they run."""
