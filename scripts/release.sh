#!/usr/bin/env bash
# Builds a release of the last commit into dist/: source, the wheel made of it, the versions of packages that it was
# tried with, a bill of materials (SBOM, CycloneDX) of what these install here, and checksums. Uploads nothing.
#
#   scripts/release.sh [TAG]      TAG must be that of the version, such as v0.1.0
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/setup.sh
source scripts/setup.sh

version=$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' codezero/__init__.py)
[ "${1:-v$version}" = "v$version" ] || fail "the tag is $1, and __version__ in codezero/__init__.py is $version"
grep -q "^## \[$version\] - " CHANGELOG.md || fail "CHANGELOG.md has no section of version $version"
git diff --quiet HEAD || echo "what is not committed is left out" >&2

python=$(find_python)
work=$(mktemp -d)
dist=$PWD/dist
trap 'rm -rf "$work"' EXIT
rm -rf "$dist"
mkdir "$work/source"
git archive HEAD | tar -x -C "$work/source"
cd "$work/source"
"$python" -m venv "$work/tools"
"$work/tools/bin/python" -m pip install --quiet --disable-pip-version-check build==1.6.1 cyclonedx-bom==7.5.0
"$work/tools/bin/python" -m build --outdir "$dist" .

"$python" -m venv .venv
install_torch "$(wanted_torch)"
pip_install --constraint scripts/constraints.txt "$dist/codezero-$version-py3-none-any.whl"
.venv/bin/codezero run --show-config >/dev/null
# The next command takes the project's own version from here only.
sed "s/^dynamic = .*/version = \"$version\"/" pyproject.toml >"$work/pyproject.toml"
"$work/tools/bin/cyclonedx-py" environment --pyproject "$work/pyproject.toml" --mc-type application \
  --output-reproducible --output-file "$dist/codezero-$version.cdx.json" .venv/bin/python
cp scripts/constraints.txt "$dist"
cd "$dist"
sha256sum -- * >SHA256SUMS
cat SHA256SUMS
