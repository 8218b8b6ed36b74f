"""The online check: operators of a running program against a reference."""
