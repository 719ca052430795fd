"""The search for the step that makes a model differ from torch, and its reproduction."""
