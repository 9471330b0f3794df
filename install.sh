#!/usr/bin/env bash
# Builds the Python package monet and installs it: as the Debian package python3-monet, for every user's python3, or, where
# a virtual environment is active, into that one.
# Works on a fresh Debian 12 with git and bash, as root or with sudo.
# MONET_PRESET names another build to use, where there is one already.
set -euo pipefail
cd "$(dirname "$0")"
. scripts/common.sh

[ $# -eq 0 ] || { echo "usage: ./install.sh" >&2; exit 2; }
ensure_packages "${packages_build[@]}" "${packages_mpi[@]}" "${packages_python[@]}"
preset=${MONET_PRESET:-release}
say "building (build/$preset)"
python3=/usr/bin/python3
[ -z "${VIRTUAL_ENV:-}" ] || python3=$VIRTUAL_ENV/bin/python3
configured=$(mktemp)
MONET_UNITY=ON cmake --preset "$preset" -DMONET_PYTHON=ON -DPython3_EXECUTABLE="$python3" >"$configured" 2>&1 || { cat "$configured" >&2; exit 1; }
rm -f "$configured"

if [ -n "${VIRTUAL_ENV:-}" ]; then
  ensure_packages python3-wheel # for environments that see Debian's packages
  build "$preset" --target monet_python
  say "installing into $VIRTUAL_ENV"
  apart=--no-build-isolation # else pip fetches what makes a wheel
  "$python3" -c 'import setuptools, wheel' 2>/dev/null || apart=
  MONET_BUILD_FOLDER=build/$preset "$python3" -m pip install --quiet $apart .
else
  build "$preset" --target python3-monet
  package=$(ls -t "build/$preset"/packages/python3-monet_*.deb | head -n 1)
  say "installing $package"
  as_root apt-get install -y -qq --no-install-recommends --reinstall "./$package" >/dev/null
fi
cd / # the package that is installed, not the sources
"$python3" -c 'import monet; print("monet", monet.__version__, "in", monet.__path__[0])'
