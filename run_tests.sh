#!/usr/bin/env bash
# Sets up what the tests need (first time only), then runs linters, types and tests.
#
#   ./run_tests.sh                  all that needs neither npm, Chromium, a Docker engine nor a model's real weights
#   ./run_tests.sh --all            everything, as CI does. Root gets Chromium and an engine from Debian's packages
#   ./run_tests.sh -m 'not slow'    any pytest arguments: pytest alone with these
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
# shellcheck source=scripts/setup.sh
source scripts/setup.sh

set_up_venv test
set_up_anvil
export OMP_WAIT_POLICY=passive HF_HUB_DISABLE_TELEMETRY=1 TOKENIZERS_PARALLELISM=false
unset PYTHONDONTWRITEBYTECODE # else each of some hundred processes compiles the package again
if [ $# -gt 0 ] && [ "$*" != --all ]; then
  exec .venv/bin/python -m pytest "$@"
fi
.venv/bin/ruff check .
.venv/bin/ruff format --check .
.venv/bin/mypy
.venv/bin/shellcheck -x run_rl_swarm.sh run_tests.sh scripts/setup.sh scripts/release.sh modal-login/run_tests.sh .ci/run
echo "linters and types took $SECONDS s, set-up included"

# Two workers a core, since the tests wait as much as they compute. A file stays with one worker, which shares its
# fixtures, and files are begun in the order of tests/conftest.py.
workers=$(.venv/bin/python -c 'import os; print(min(2 * (os.cpu_count() or 1), 8))')
beside=(tests/browser tests/containers tests/e2e/test_sign_in.py)
failed=""
test_in_parallel() {
  .venv/bin/python -m pytest -n "$workers" --dist loadfile --no-loadscope-reorder --durations 20 \
    "${beside[@]/#/--ignore=}" "$@" || failed="those above"
}
test_beside() {
  if [ "${CODEZERO_SKIP_SIGN_IN:-}" = 1 ]; then
    echo "WARNING: CODEZERO_SKIP_SIGN_IN=1: THE SIGN-IN APP IS NOT TESTED"
  else
    modal-login/run_tests.sh
  fi
  .venv/bin/python -m pytest --durations 20 "${beside[@]}"
}

if [ $# -eq 0 ]; then
  test_in_parallel -m 'not real_model'
  echo "left for ./run_tests.sh --all: the sign-in app, the pages in Chromium, the containers, and the tests on real weights"
else
  # What builds and runs the sign-in app and the images goes on beside the other tests, which wait a lot. So do the
  # dashboard's pages, for which the app's tests may have to fetch Chromium first.
  [ "$(id -u)" != 0 ] || export CODEZERO_START_ENGINE="${CODEZERO_START_ENGINE-1}"
  log=$(mktemp)
  set -m # a process group of its own, which ends whole
  test_beside </dev/null >"$log" 2>&1 &
  lane=$!
  set +m
  trap 'kill -- -"$lane" 2>/dev/null || true; rm -f "$log"' EXIT
  test_in_parallel
  if wait "$lane"; then
    grep -E '^(sign-in app:|SKIPPED|WARNING|tests/[a-z0-9_/]+: |[0-9.]+s |=+ .* in )' "$log" || true
  else
    cat "$log"
    failed="${failed:+$failed and }those of the sign-in app or the containers, just above"
  fi
fi
[ -z "$failed" ] || fail "tests failed: $failed"
echo "all of it took $SECONDS s"
