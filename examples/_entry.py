"""How an example ends: with a summary, with one sentence on stderr, or quietly on Ctrl-C."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn


class ExampleError(RuntimeError):
    """Its text is all that a person needs to know; no traceback helps."""


def run_main(script: str, main: Callable[[], int]) -> NoReturn:
    """Ends the process with the exit code of `main`.

    Args:
        script: file of the example, for the message.
        main: the example.
    """
    try:
        sys.exit(main())
    except ExampleError as error:
        print(f"{Path(script).name}: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
