#!/usr/bin/env bash
# Makes sure Debian's packages are there: installs them as root or by sudo, else prints the one command that does.
# Usage: prerequisites.sh [PACKAGE...]     what is needed besides the usual ones
set -euo pipefail
packages=(g++ cmake ninja-build ccache pkg-config git patchelf catch2 libcjson-dev libuv1-dev libfmt-dev libffi-dev
          python3-venv python3-dev valgrind opencl-headers ocl-icd-opencl-dev pocl-opencl-icd oclgrind
          "$@")
missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0
install="apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
echo "missing Debian packages: ${missing[*]}"
if [ "$(id -u)" -eq 0 ]; then
  bash -c "export DEBIAN_FRONTEND=noninteractive; apt-get update -qq && apt-get install -qq -y --no-install-recommends ${missing[*]} >/dev/null"
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
  sudo bash -c "export DEBIAN_FRONTEND=noninteractive; apt-get update -qq && apt-get install -qq -y --no-install-recommends ${missing[*]} >/dev/null"
else
  echo "These packages are missing and there is neither root nor sudo without a password. Run once, then again make:" >&2
  echo "    sudo sh -c '$install'" >&2
  exit 1
fi
