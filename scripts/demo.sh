#!/bin/sh
# Run the demo into a folder, in place of an earlier demo's: demo.sh LEEWARD FOLDER
# The earlier release is put aside first and comes back when the new one fails. A folder that is not a release stays.
set -eu
leeward=$1
out=$2
old=$out.old

if [ -e "$out" ]; then
    if [ ! -f "$out/share/release.json" ]; then
        echo "$out exists and is not a release: move it away, then run make demo again." >&2
        exit 2
    fi
    rm -rf "$old"
    mv "$out" "$old"
fi
status=0
"$leeward" demo -o "$out" || status=$?
if [ "$status" -ne 0 ]; then
    if [ -e "$old" ] && [ ! -e "$out" ]; then mv "$old" "$out"; fi
    exit "$status"
fi
rm -rf "$old"
echo "Report: $(pwd)/$out/custody/report.html"
