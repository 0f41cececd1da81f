#!/usr/bin/env bash
# Sets everything up in .venv and runs the main example: training on photographs, without and with
# gpuutil. Options go to examples/photos.py; examples/setup_env.sh says what can be chosen by variables.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source examples/setup_env.sh

setup_environment examples
exec "$VENV_PYTHON" examples/photos.py "$@"
