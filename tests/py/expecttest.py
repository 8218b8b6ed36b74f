"""Stands in for the package of this name, which PyTorch's own test helpers import but plumb's tests do not need."""

import unittest

ACCEPT = False


class TestCase(unittest.TestCase):
    """Without the comparison of texts that the package adds."""
