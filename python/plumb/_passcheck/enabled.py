"""The quiet form of the check, for the inside of a compiler: off unless configured, never raising.

On with the environment variable PLUMB_NUMERIC_CHECK=1, or with

    plumb.numeric_check_config["pre_grad"] = True

The dictionary has the shape of inductor's fx_passes_numeric_check.
"""

import logging
import os
from typing import Any, Dict, Optional

log = logging.getLogger("plumb.numeric_check")

numeric_check_config: Dict[str, Any] = {
    "pre_grad": False,
    "num_iterations": 1,
    "precision": 1e-4,
    "requires_optimizer": True,
}


# The names that inductor gives its arguments.
SAME = {"gm_before_fx_passes": "before", "gm_after_fx_passes": "after", "example_inputs": "inputs"}


def numeric_check_if_enabled(*args: Any, **kwargs: Any) -> Any:
    """numeric_check_if_enabled(before, after, inputs, num_iterations=None, precision=None,
    requires_optimizer=None, **more): the report of numeric_check, or None when the check is off or
    failed itself. Options that are not given are those of plumb.numeric_check_config. The first
    three also go by the names gm_before_fx_passes, gm_after_fx_passes and example_inputs."""
    try:
        if not _wanted():
            return None
        return _check(*args, **{SAME.get(name, name): value for name, value in kwargs.items()})
    except ValueError as error:  # options, and modules over one graph, as inductor's own check has them
        log.error("not checked: %s", error)
        return None
    except (Exception, SystemExit):
        log.exception("the numeric check failed; what it was to check goes on")
        return None


def _wanted() -> bool:
    import plumb
    variable = os.environ.get("PLUMB_NUMERIC_CHECK", "")
    return variable != "0" if variable else bool(plumb.numeric_check_config.get("pre_grad"))


def _check(before: Any, after: Any, inputs: Any, num_iterations: Optional[int] = None,
           precision: Optional[float] = None, requires_optimizer: Optional[bool] = None,
           **more: Any) -> Any:
    import plumb
    from plumb._passcheck.run import numeric_check

    def chosen(value: Any, name: str) -> Any:
        config = plumb.numeric_check_config
        return config.get(name, numeric_check_config[name]) if value is None else value

    report = numeric_check(before, after, inputs, chosen(num_iterations, "num_iterations"),
                           chosen(precision, "precision"),
                           chosen(requires_optimizer, "requires_optimizer"), **more)
    if report:
        log.info("%s", report.summary())
    else:
        log.warning("%s", report.summary())
        log.debug("%s", report.text(every_iteration=True))
    return report
