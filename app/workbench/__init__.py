"""The function that is scheduled: its history, moves, measurements and tuning."""
