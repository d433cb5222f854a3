#!/usr/bin/env bash
# Sets up what the tests need (first time only) and runs all of them: linters, types, pytest, the sign-in app's tests
# and the containers'. Root gets what those two need beyond npm from Debian's packages: Chromium and a Docker engine.
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
.venv/bin/shellcheck -x run_rl_swarm.sh run_tests.sh scripts/setup.sh modal-login/run_tests.sh .ci/run

# What builds and runs the sign-in app and the images goes on beside the other tests, which wait a lot. So do the
# dashboard's pages, for which the app's tests may have to fetch Chromium first.
beside=(tests/browser tests/containers tests/e2e/test_sign_in.py)
test_beside() {
  if [ "${CODEZERO_SKIP_SIGN_IN:-}" = 1 ]; then
    echo "WARNING: CODEZERO_SKIP_SIGN_IN=1: THE SIGN-IN APP IS NOT TESTED"
  else
    modal-login/run_tests.sh
  fi
  .venv/bin/python -m pytest "${beside[@]}"
}
[ "$(id -u)" != 0 ] || export CODEZERO_START_ENGINE="${CODEZERO_START_ENGINE-1}"
log=$(mktemp)
set -m # a process group of its own, which ends whole
test_beside </dev/null >"$log" 2>&1 &
lane=$!
set +m
trap 'kill -- -"$lane" 2>/dev/null || true; rm -f "$log"' EXIT
failed=""
.venv/bin/python -m pytest "${beside[@]/#/--ignore=}" || failed="those above"
if wait "$lane"; then
  grep -E '^(sign-in app:|SKIPPED|WARNING|=+ .* in )' "$log" || true
else
  cat "$log"
  failed="${failed:+$failed and }those of the sign-in app or the containers, just above"
fi
[ -z "$failed" ] || fail "tests failed: $failed"
