"""What a right implementation would have shown."""
