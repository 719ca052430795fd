"""The scheduled function: its history, primitives, measurements and tuning."""
