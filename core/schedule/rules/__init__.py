"""Rules that schedule a function automatically, step by step, each step with its reason."""
