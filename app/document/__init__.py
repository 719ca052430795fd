"""The open document, and its queries."""
