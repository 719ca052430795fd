"""The two child processes, engine and worker: their messages, and their program."""
