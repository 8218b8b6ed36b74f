"""torch.compile: what each of its steps did to the numbers."""
