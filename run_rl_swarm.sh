#!/usr/bin/env bash
# Sets up codezero in .venv beside this script (first time only), then asks what to start and keeps it running.
#
#   ./run_rl_swarm.sh                                         asks; without a terminal a swarm of your own
#   ./run_rl_swarm.sh --local [--rounds N] [key=value ...]    train alone: no account, no hub, no chain
#   ./run_rl_swarm.sh --nodes K [--rounds N] [key=value ...]  a swarm of your own: a bootnode, a proposer and K nodes
#   ./run_rl_swarm.sh --join FILE [key=value ...]             join the swarm that a swarm file invites to
#   ./run_rl_swarm.sh --join FILE --gpus 0,2                  on these GPUs, a node each; without --gpus on all
#   ./run_rl_swarm.sh --testnet [--sign-in app|wallet]        the Gensyn testnet
#   ./run_rl_swarm.sh [--rounds N] key=value ...              with the settings of configs/node.yaml
#
# `./run_rl_swarm.sh --help-all` has every option. Environment: PYTHON is the interpreter to use (3.10 to 3.13), TORCH a
# torch requirement of your own, CPU_ONLY=1 uses no GPU, and CODEZERO_VENV names a virtual environment in which codezero is
# installed already: nothing is set up then.
set -euo pipefail
unset CDPATH # with it cd may go elsewhere, and prints where
script=${BASH_SOURCE[0]}
while [ -L "$script" ]; do # macOS has no readlink -f before 12.3
  target=$(readlink "$script")
  case "$target" in /*) script=$target ;; *) script=$(dirname "$script")/$target ;; esac
done
here=$(cd "$(dirname "$script")" && pwd)
if [ "$PWD" != "$here" ]; then
  # A swarm file that is named from the folder of the call stays that file.
  before=
  for argument in "$@"; do
    shift
    case "$argument" in --j*=* | swarm=*.yaml | swarm=*.yml) name=${argument%%=*}= ;; *) name= ;; esac
    file=${argument#"$name"}
    case "$before $name" in --j* | *=) if [ -f "$file" ] && [ "${file#/}" = "$file" ]; then file=$PWD/$file; fi ;; esac
    set -- "$@" "$name$file"
    before=$argument
  done
  if [ -f "${CODEZERO_JOIN:-}" ] && [ "${CODEZERO_JOIN#/}" = "$CODEZERO_JOIN" ]; then CODEZERO_JOIN=$PWD/$CODEZERO_JOIN; fi
  cd "$here"
fi
# shellcheck source=scripts/setup.sh
source scripts/setup.sh

for argument in "$@"; do
  case "$argument" in
    -h | --help) sed -n '2,15s/^# \{0,1\}//p' run_rl_swarm.sh; exit 0 ;;
    --help-all) python=$(find_python); exec "$python" -B -m codezero start --help ;; # needs no package
  esac
done

if [ -n "${CODEZERO_VENV:-}" ]; then
  [ -x "$CODEZERO_VENV/bin/codezero" ] || fail "CODEZERO_VENV=$CODEZERO_VENV holds no codezero: install it there, or unset it"
else
  # A misspelt option or setting is told before minutes of set-up; what is asked here needs no package.
  if [ ! -e .venv/installed ] && python=$(find_python 2>/dev/null); then "$python" -B -m codezero start --check-names "$@"; fi
  set_up_venv
  CODEZERO_VENV=$PWD/.venv
fi
exec "$CODEZERO_VENV/bin/codezero" start "$@"
