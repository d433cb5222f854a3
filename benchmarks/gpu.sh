#!/usr/bin/env bash
# Everything that only a GPU can show, in less than ten minutes and without a network: benchmarks/gpu.py says what.
#
#   benchmarks/gpu.sh           on the first NVIDIA GPU
#   benchmarks/gpu.sh --tiny    a minute with a tiny model, also on a CPU: shows only that all of it works
#
# PYTHON names an interpreter that has codezero's packages, else .venv's is taken.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=${PYTHON:-.venv/bin/python}
case " $* " in
*" --tiny "*) ;;
*) "$python" -m pytest -q -m gpu tests || true ;; # figures of what works are wanted even if something does not
esac
exec "$python" -m benchmarks.gpu "$@"
