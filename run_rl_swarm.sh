#!/usr/bin/env bash
# Sets up codezero in .venv beside this script (first time only), then runs a node, or a whole swarm on this machine.
#
#   ./run_rl_swarm.sh --local [--rounds N] [key=value ...]    train alone: no account, no hub, no chain
#   ./run_rl_swarm.sh --local --nodes K [--rounds N] [...]    a swarm of your own: a bootnode and K nodes
#   ./run_rl_swarm.sh swarm=FILE [--rounds N] [...]           join the swarm that a swarm file invites to
#   ./run_rl_swarm.sh [--rounds N] [key=value ...]            with the settings of configs/node.yaml
#
# Environment: PYTHON  the interpreter to use (3.10 to 3.13);  TORCH  a torch requirement of your own.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
# shellcheck source=scripts/setup.sh
source scripts/setup.sh

command=(run)
settings=()
for argument in "$@"; do
  case "$argument" in
    -h | --help) sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 0 ;;
    --local) settings+=("preset=local") ;;
    --nodes | --nodes=*) command=(swarm up); settings+=("$argument") ;;
    *) settings+=("$argument") ;;
  esac
done

set_up_venv
exec .venv/bin/codezero "${command[@]}" ${settings[@]+"${settings[@]}"}
