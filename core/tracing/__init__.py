"""Tracing of an ``nn.Module`` to an FX graph with the values and source lines of its nodes."""
