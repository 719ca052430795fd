"""Domain-independent widgets: they draw plain values and emit signals."""
