#!/usr/bin/env bash
# Makes .venv, keyed by a hash of its requirements: one environment serves demo, test and bench.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
key=$({ cat requirements/*.txt; "$python" -VV; } | sha256sum | cut -d' ' -f1)
[ "$(cat .venv/requirements.key 2>/dev/null)" = "$key" ] && exit 0
echo "making .venv (torch 2.13.0, oneDNN, transformers; about a minute)"
"$python" -m venv --clear .venv
pip=".venv/bin/python -m pip --disable-pip-version-check -q"
# torch first and alone; afterwards a constraint keeps anything else from replacing it.
$pip install torch==2.13.0
echo "torch==2.13.0" > .venv/constraints.txt
$pip install -c .venv/constraints.txt -r requirements/build.txt -r requirements/demo.txt -r requirements/test.txt
$pip install --no-deps -r requirements/nodeps.txt
echo "$key" > .venv/requirements.key
