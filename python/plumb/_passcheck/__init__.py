"""The pass check: a model before and after a transformation."""
