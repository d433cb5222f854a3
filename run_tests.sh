#!/usr/bin/env bash
# Sets up what the tests need (first time only) and runs all of them: linters, types, and pytest.
#
#   ./run_tests.sh                  everything, as CI does
#   ./run_tests.sh -m 'not slow'    any pytest arguments: pytest alone with these
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
# shellcheck source=scripts/setup.sh
source scripts/setup.sh

set_up_venv test
set_up_anvil
export OMP_WAIT_POLICY=passive HF_HUB_DISABLE_TELEMETRY=1 TOKENIZERS_PARALLELISM=false
if [ $# -gt 0 ]; then
  exec .venv/bin/python -m pytest "$@"
fi
.venv/bin/ruff check .
.venv/bin/ruff format --check .
.venv/bin/mypy
.venv/bin/shellcheck -x run_rl_swarm.sh run_tests.sh scripts/setup.sh .ci/run
.venv/bin/python -m pytest
