"""Rules that schedule a function by themselves, step by step, each step with its reason."""
