"""Build, run and compare: what the processor makes of a module, held against torch."""
