"""Comparisons and summaries of tensors at hand, and of files."""
