"""`python -m gpuutil`."""

import sys

from .cli import main

sys.exit(main())
