"""plumb: where two tensor computations stop agreeing, how badly, and whose fault it is."""
