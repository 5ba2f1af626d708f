#!/bin/sh
# Compile the lock files from pyproject.toml (make lock). Needs uv, https://docs.astral.sh/uv/.
#
# Every file pins every distribution by version and hash, for every platform and Python >= 3.11 (markers decide at
# install time), and names no package index: pip takes whichever it is set up with, the hashes say what is acceptable.
# Arguments go to the compilation of dev.txt: `requirements/compile.sh --upgrade` moves everything forward,
# `--upgrade-package NAME` one; without arguments the pins of the present dev.txt are kept.
set -eu
cd "$(dirname "$0")/.."

compile() { # compile OUTPUT TITLE ARGUMENT...
    output=requirements/$1
    title=$2
    shift 2
    aside=$output.partial
    if [ -f "$output" ]; then cp "$output" "$aside"; else : > "$aside"; fi
    uv pip compile --quiet --universal --python-version 3.11 --fork-strategy fewest --generate-hashes \
        --no-header --no-emit-index-url --no-emit-find-links --no-annotate "$@" --output-file "$aside" > /dev/null
    { printf '# %s\n# Written by `make lock`; change pyproject.toml and run it again.\n' "$title"; cat "$aside"; } > "$output"
    rm -f "$aside"
}

# dev.txt first: it holds everything, and the others take its versions, so that one environment serves all of them.
compile dev.txt "Every extra, the tools that check the project, and its build backend (make test)." \
    pyproject.toml --extra all --group dev "$@"
compile all.txt "Leeward with every extra." pyproject.toml --extra all --constraint requirements/dev.txt
compile portal.txt "Leeward with the portal (make demo-portal)." \
    pyproject.toml --extra portal --constraint requirements/dev.txt
compile run.txt "Leeward without extras (make demo)." pyproject.toml --constraint requirements/dev.txt
compile build.txt "The build backend alone, to install the checkout itself." \
    requirements/build.in --constraint requirements/dev.txt
