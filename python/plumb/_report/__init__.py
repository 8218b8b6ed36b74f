"""Results as a page for people."""
