"""Tracing: from an ``nn.Module`` to an FX graph whose nodes know their values and source lines."""
