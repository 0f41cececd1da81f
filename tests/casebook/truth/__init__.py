"""What is true of each script, by its name."""

from .data_loading import DATA_LOADING
from .entry import Edit, FixError, Truth, fixed
from .healthy import HEALTHY
from .resources import RESOURCES
from .tricky import TRICKY

TRUTHS: dict[str, Truth] = {
    truth.script: truth for truth in (*DATA_LOADING, *RESOURCES, *TRICKY, *HEALTHY)
}

__all__ = ["TRUTHS", "Edit", "FixError", "Truth", "fixed"]
