#!/usr/bin/env bash
# Installs, checks, builds and tests the sign-in app. Needs Node >= 20.12, npm, and Chromium for the page's tests, which
# root gets with apt-get where it is missing.
#
#   CODEZERO_SKIP_BROWSER=1   leaves out the page's tests, and says so
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
export NEXT_TELEMETRY_DISABLED=1

fail() {
  echo "error: $*" >&2
  exit 1
}

# Runs a command and tells how long it took; what it prints is shown only if it fails.
step() {
  local name=$1 started=$SECONDS log
  shift
  log=$(mktemp)
  if ! "$@" >"$log" 2>&1; then
    cat "$log"
    rm -f "$log"
    fail "$name failed"
  fi
  rm -f "$log"
  echo "sign-in app: $name took $((SECONDS - started)) s"
}

find_chromium() {
  for name in "${CHROMIUM:-}" chromium chromium-browser google-chrome google-chrome-stable \
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"; do
    if [ -n "$name" ] && command -v "$name" >/dev/null; then
      return 0
    fi
  done
  return 1
}

install_chromium() {
  apt-get update && apt-get install -y --no-install-recommends chromium
}

command -v npm >/dev/null || fail "no npm: install Node 20.12 or newer (https://nodejs.org)"
node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 20 || (a == 20 && b >= 12) ? 0 : 1)' ||
  fail "Node $(node --version) is too old: the sign-in app needs 20.12 or newer"

tests=(tests/api.test.mjs tests/guard.test.mjs tests/operations.test.mjs)
if [ "${CODEZERO_SKIP_BROWSER:-}" = 1 ]; then
  echo "WARNING: CODEZERO_SKIP_BROWSER=1: THE SIGN-IN PAGE IS NOT TESTED" >&2
else
  if ! find_chromium && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    step "apt-get install chromium" install_chromium
  fi
  find_chromium || fail "no Chromium for the sign-in page's tests: install it, name it in CHROMIUM, or leave them out" \
    "with CODEZERO_SKIP_BROWSER=1"
  tests+=(tests/browser.test.mjs)
fi

step "npm ci" npm ci --ignore-scripts --no-audit --no-fund
step "npm ci of the tests" npm ci --ignore-scripts --no-audit --no-fund --prefix tests
echo "sign-in app: $(du -sh node_modules | cut -f1) installed"
step "next build, with types" npm run build
echo "sign-in app: $(du -sh .next/standalone | cut -f1) to run it"

started=$SECONDS
node --test --test-concurrency=2 "${tests[@]}"
echo "sign-in app: tests took $((SECONDS - started)) s"
