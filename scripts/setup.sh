# shellcheck shell=bash
# Sourced by run_rl_swarm.sh and run_tests.sh from the project's root: makes .venv and installs codezero into it.

TORCH_VERSION=2.13.0
TORCH_CPU_INDEX=https://download.pytorch.org/whl/cpu
TORCH_WITH_CUDA="torch==$TORCH_VERSION,!=$TORCH_VERSION+cpu" # pip takes the CPU build for torch==X.Y.Z too
SILENCE_S=20

fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# Prints an interpreter from 3.10 to 3.13: $PYTHON if set, else the first one found.
find_python() {
  local candidate
  for candidate in ${PYTHON:+"$PYTHON"} python3 python3.12 python3.13 python3.11 python3.10 python; do
    if "$candidate" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 14))' 2>/dev/null; then
      printf '%s\n' "$candidate"
      return
    fi
    [ "$candidate" != "${PYTHON:-}" ] || fail "PYTHON=$PYTHON is not a Python from 3.10 to 3.13"
  done
  fail "no Python from 3.10 to 3.13 found: install one (for macOS from https://www.python.org/downloads), or name it as" \
    "PYTHON=/path/to/python"
}

has_nvidia_gpu() { [[ "$(nvidia-smi -L 2>/dev/null)" == GPU* ]]; }

wants_cpu_only() {
  case "$(printf %s "${CPU_ONLY:-}" | tr '[:upper:]' '[:lower:]')" in 1 | y | yes | true) return 0 ;; *) return 1 ;; esac
}

# Says which large packages pip downloads, since these are most of the time, when it begins to unpack, and after
# SILENCE_S seconds without a line how far it is. Nothing is compiled: Python does that with what it imports, and all of
# it takes 0.35 GB and minutes.
pip_install() {
  local line bar=off shown=$SECONDS large='Downloading ([^ ]*/)?([^/ -]+)-[^/ ]*\.whl \(([0-9]+)\.[0-9]+ MB\)'
  if .venv/bin/python -c 'import sys, pip; sys.exit(int(pip.__version__.split(".")[0]) < 25)'; then bar=raw; fi
  PYTHONUNBUFFERED=1 .venv/bin/python -m pip install --disable-pip-version-check --no-compile --progress-bar $bar "$@" |
    while IFS= read -r line; do
      if [[ $line =~ $large ]] && [ "${BASH_REMATCH[3]}" -ge 10 ]; then
        line="downloading ${BASH_REMATCH[2]}, ${BASH_REMATCH[3]} MB"
      elif [[ $line == "Installing collected packages"* ]]; then
        line="unpacking, a minute or two"
      elif [ $((SECONDS - shown)) -lt $SILENCE_S ]; then
        continue
      elif [[ $line =~ ^Progress\ ([0-9]+)\ of\ ([0-9]+) ]]; then
        line="$((BASH_REMATCH[1] / 1000000)) of $((BASH_REMATCH[2] / 1000000)) MB"
      elif [[ $line =~ ^\ *Collecting\ ([A-Za-z0-9._-]+) ]]; then
        line="smaller packages: ${BASH_REMATCH[1]}"
      else
        continue
      fi
      shown=$SECONDS
      echo "  $line"
    done
}

# Shows what pip says of an index or host that does not answer, and nothing else of its errors. What it reads from is a
# subshell, since a trap that runs in a function with redirected output has that too.
only_retries() {
  local line
  while IFS= read -r line; do
    if [[ $line == *"connection broken by "* ]]; then printf '  trying again: %s\n' "${line##*connection broken by }" >&2; fi
  done
}

# Prints what to do about a SOCKS proxy, which pip cannot use, for the end of a message; nothing where there is none.
socks_hint() {
  case "${ALL_PROXY:-} ${all_proxy:-} ${HTTPS_PROXY:-} ${https_proxy:-}" in
    *socks*) printf '%s' "; pip cannot use the SOCKS proxy in ALL_PROXY or HTTPS_PROXY: name an http:// proxy, or unset it" ;;
  esac
}

# Prints the torch to install: the one asked for here or at an earlier start, else the default. The default one of Linux
# brings gigabytes of CUDA; a machine without an NVIDIA GPU gets the CPU build instead, unless it has the other one
# already, which needs no GPU.
wanted_torch() {
  if [ -n "${TORCH:-}" ]; then
    printf '%s\n' "$TORCH"
  elif [ -s .venv/torch ]; then
    cat .venv/torch
  elif [ "$(uname -s)" != Linux ] || grep -qsF "$TORCH_WITH_CUDA" .venv/installed ||
    { ! wants_cpu_only && has_nvidia_gpu; }; then
    printf '%s\n' "$TORCH_WITH_CUDA"
  else
    printf '%s\n' "torch==$TORCH_VERSION+cpu"
  fi
}

install_torch() {
  case "$1" in
    *+cpu) (pip_install "$1") 2> >(only_retries) || pip_install "$1" --index-url "$TORCH_CPU_INDEX" ;;
    *) pip_install "$1" ;;
  esac || fail "cannot get $1 for $(.venv/bin/python -V): check the connection (the CPU build is at $TORCH_CPU_INDEX)" \
    "and start the same command again; if there is none for this Python, remove .venv and try another with PYTHON=...," \
    "or choose yourself with TORCH=torch$(socks_hint)"
}

# Keeps other starts from installing here meanwhile, until `unlock_set_up`. What a process that was killed has left is removed.
lock_set_up() {
  local other
  until ln -s $$ .setting-up 2>/dev/null; do
    other=$(readlink .setting-up) || fail "cannot write in $PWD: give yourself the right to, or free disk"
    if [ "$other" != $$ ] && kill -0 "$other" 2>/dev/null; then # in a new container it may be this process's own id
      fail "process $other is setting up .venv: wait for it and start again, or remove .setting-up if it is another program"
    fi
    rm -f .setting-up
  done
  trap 'rm -f .setting-up' EXIT
  # pip ends at a Ctrl-C with an exit code of its own, after which this script would go on.
  trap 'echo "stopped; the same command goes on where it was" >&2; exit 130' INT TERM HUP
}

unlock_set_up() {
  trap - EXIT INT TERM HUP
  rm -f .setting-up
}

# set_up_venv [EXTRA]: makes .venv and installs the package, unless the same was installed before.
set_up_venv() {
  local extra=${1:-} python stamp torch kept
  torch=$(wanted_torch)
  stamp="$(cat pyproject.toml scripts/constraints.txt | cksum) $PWD $torch"
  if [ "$(cat ".venv/installed${extra:+-$extra}" 2>/dev/null)" = "$stamp" ] &&
    .venv/bin/python -c 'import codezero' 2>/dev/null; then # which a new Python of the system ends
    return
  fi
  lock_set_up
  if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    # One that somebody else has made, such as uv, which leaves pip out, is not deleted.
    [ ! -e .venv ] || [ -e .venv/installed ] || [ -e .venv/made-by-setup ] ||
      fail ".venv is another program's and has no pip: move it away, or install there and name it as CODEZERO_VENV=$PWD/.venv"
    python=$(find_python)
    echo "setting up .venv with $("$python" -V); this happens once" >&2
    kept=$(cat .venv/torch 2>/dev/null || true)
    rm -rf .venv
    mkdir .venv
    touch .venv/made-by-setup
    [ -z "$kept" ] || printf '%s\n' "$kept" >.venv/torch
    "$python" -m venv .venv || fail "$python cannot make a virtual environment: install its venv package (python3-venv)"
  fi
  echo "installing packages: 0.5 GB to download (3 GB with CUDA), a few minutes, at 1 MB/s twelve" >&2
  [ -n "$extra" ] || echo "then 0.5 GB of weights are fetched, 1.6 on a large machine, and prepared; the first round ends five to fifteen" \
    "minutes after that, and is told here" >&2
  # The pip that Python brings tells a download that broke off as packages that somebody tampered with; this one resumes it.
  (pip_install 'pip>=25.2,<27') 2> >(only_retries) >/dev/null || true
  install_torch "$torch" >&2
  pip_install --constraint scripts/constraints.txt --editable ".${extra:+[$extra]}" >&2 ||
    fail "installation failed, see the messages above (a download that broke off may be told as a wrong hash): check the" \
      "connection and start the same command again, which goes on with what pip has kept$(socks_hint)"
  [ -z "${TORCH:-}" ] || printf '%s\n' "$TORCH" >.venv/torch
  rm -f .venv/installed .venv/installed-*
  printf '%s' "$stamp" >.venv/installed
  [ -z "$extra" ] || printf '%s' "$stamp" >".venv/installed-$extra"
  unlock_set_up
}

# set_up_anvil: gets anvil from npm for the tests, which look for it there; without it those on a chain are skipped.
set_up_anvil() {
  local folder=tests/anvil without="the tests on a chain are skipped" stamp said
  if command -v anvil >/dev/null; then
    return
  fi
  stamp="$(cksum <"$folder/package-lock.json")"
  if [ "$(cat "$folder/node_modules/installed" 2>/dev/null)" != "$stamp" ]; then
    if ! command -v npm >/dev/null; then
      echo "npm is not installed, so there is no anvil: $without" >&2
      return
    fi
    echo "installing anvil into $folder" >&2
    if ! said=$(npm ci --prefix "$folder" --ignore-scripts --no-audit --no-fund --loglevel=error \
      --fetch-retries=1 --fetch-retry-mintimeout=1000 --fetch-timeout=30000 2>&1); then
      printf '%s\n' "${said:0:500}" "npm cannot install anvil: $without" >&2
      return
    fi
    printf '%s' "$stamp" >"$folder/node_modules/installed"
  fi
}
