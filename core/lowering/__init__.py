"""Lowering: from an FX graph to a Relax module, with the provenance of every binding."""
