"""The online check under the name that programs and saved tests import."""

from plumb._guard.enable import (current, disable_precision_check, enable_precision_check,
                                 precision_check)
from plumb._guard.replay import replay

__all__ = ["current", "disable_precision_check", "enable_precision_check", "precision_check",
           "replay"]
