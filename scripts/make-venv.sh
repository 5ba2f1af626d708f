#!/bin/sh
# Make a virtual environment with the first Python that is new enough: make-venv.sh FOLDER [PYTHON]
set -eu
folder=$1
asked=${2:-}

fits() { # new enough, and able to make an environment with pip in it
    "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' > /dev/null 2>&1
}

for python in ${asked:-python3 python3.13 python3.12 python3.11 python3.14 python}; do
    if fits "$python"; then
        exec "$python" -m venv "$folder"
    fi
done

if [ -n "$asked" ]; then
    echo "$asked is not Python 3.11 or newer with venv and ensurepip." >&2
else
    echo "No Python 3.11 or newer with venv and ensurepip was found on PATH." >&2
fi
echo "Install one (Debian, Ubuntu: apt-get install python3 python3-venv) or name yours: make PYTHON=/path/to/python3." >&2
exit 1
