"""plumb.diagnose: a model run in two ways, and where they part."""
