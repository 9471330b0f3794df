# Shared by demo.sh and test.sh: what Debian 12 packages a step needs, and how to get them.
# Sourced, not run. Needs nothing but bash and apt-get.

packages_build=(g++ cmake ninja-build pkg-config git
  libonnx-dev libprotobuf-dev protobuf-compiler libyaml-cpp-dev libfmt-dev nlohmann-json3-dev libcli11-dev
  coinor-libcbc-dev libsqlite3-dev)
# What builds use where it is installed: explorations under mpirun.
packages_mpi=(libopenmpi-dev)
packages_python=(dpkg-dev file pybind11-dev python3-dev python3-numpy)
packages_fast=(libgtest-dev libgmock-dev librapidcheck-dev)
packages_full=("${packages_mpi[@]}" "${packages_python[@]}" libonnx-testdata python3-pytest python3-mypy python3-matplotlib
  clang-16 libclang-rt-16-dev chromium doxygen)
packages_slow=(libbenchmark-dev libpagmo-dev python3-nbconvert python3-ipykernel python3-pandas python3-tqdm python3-torch)
packages_node=(nodejs npm)

say() { printf '\n== %s\n' "$*"; }

# as_root COMMAND...: runs it, by sudo where that is needed.
as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    echo "error: need root or sudo for: $*" >&2
    return 1
  fi
}

# ensure_packages NAME...: installs those that are missing, saying which.
ensure_packages() {
  local missing=() package
  for package in "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  say "installing Debian packages: ${missing[*]}"
  as_root apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# ensure_node: node and npm from Debian unless there already are some.
ensure_node() {
  if command -v node >/dev/null && command -v npm >/dev/null; then return 0; fi
  ensure_packages "${packages_node[@]}"
}

# build PRESET [-D...] [cmake --build arguments]: configures (quietly unless it fails) and builds.
build() {
  local preset=$1 log settings=()
  shift
  while [[ ${1:-} == -D* ]]; do settings+=("$1"); shift; done
  log=$(mktemp)
  if ! cmake --preset "$preset" "${settings[@]}" >"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    return 1
  fi
  rm -f "$log"
  cmake --build "build/$preset" "$@"
}

# in_background COMMAND...: runs it in the background; join_background prints its output.
background_pids=() background_logs=()
in_background() {
  local log
  log=$(mktemp)
  (set -e; "$@") >"$log" 2>&1 &
  background_pids+=($!)
  background_logs+=("$log")
}

# join_background: waits for the background commands, prints their output and fails if one failed.
join_background() {
  local i failed=0
  for i in "${!background_pids[@]}"; do
    wait "${background_pids[$i]}" || failed=1
    cat "${background_logs[$i]}"
    rm -f "${background_logs[$i]}"
  done
  background_pids=() background_logs=()
  return "$failed"
}

# run_tests [ctest arguments]: prints the summary if all tests pass, else all output of ctest.
run_tests() {
  local log status=0
  log=$(mktemp)
  ctest --no-tests=error --output-on-failure "$@" >"$log" 2>&1 || status=$?
  if [ "$status" -eq 0 ]; then tail -n 5 "$log"; else cat "$log" >&2; fi
  rm -f "$log"
  return "$status"
}
