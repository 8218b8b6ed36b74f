"""Recording what a PyTorch model computes: see recorder.py, and sink.py for where it goes."""
