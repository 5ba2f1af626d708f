#!/bin/sh
# See to the system packages that tests use: system-packages.sh [java] [postgresql] [chromium] [r] [nspawn]
# As root with apt-get what is missing is installed; otherwise, or where that fails, the script says what is missing
# and how to get it, and ends well: only the tests that need it will fail, and they say why.
set -u

java_fits() { # a JRE of 17 or newer, from JAVA_HOME or PATH
    java=java
    if [ -n "${JAVA_HOME:-}" ]; then java=$JAVA_HOME/bin/java; fi
    version=$("$java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)
    [ -n "$version" ] && [ "$version" -ge 17 ]
}
postgresql_fits() {
    command -v initdb > /dev/null 2>&1 || ls /usr/lib/postgresql/*/bin/initdb > /dev/null 2>&1
}
chromium_fits() {
    for name in chromium chromium-browser google-chrome google-chrome-stable; do
        if command -v "$name" > /dev/null 2>&1; then return 0; fi
    done
    [ -x "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome" ]
}
r_fits() {
    Rscript -e 'library(httr2); library(jsonlite)' > /dev/null 2>&1
}
nspawn_fits() {
    command -v systemd-nspawn > /dev/null 2>&1
}
candidates() { # Debian's names, best first
    case $1 in
        java) echo openjdk-21-jre-headless openjdk-17-jre-headless default-jre-headless ;;
        postgresql) echo postgresql ;;
        chromium) echo chromium ;;
        r) echo r-cran-httr2 r-cran-jsonlite ;;
        nspawn) echo systemd-container ;;
    esac
}
described() {
    case $1 in
        java) echo "a Java runtime, 17 or newer (Spark)" ;;
        postgresql) echo "PostgreSQL (SQL sources)" ;;
        chromium) echo "Chromium (the report in a browser)" ;;
        r) echo "R with httr2 and jsonlite (what recipients run in it)" ;;
        nspawn) echo "systemd-nspawn (a server is set up in it)" ;;
    esac
}

updated=no
missing=
for need in "$@"; do
    if [ -z "$(candidates "$need")" ]; then
        echo "system-packages.sh knows java, postgresql, chromium, r and nspawn, not $need." >&2
        exit 2
    fi
    if "${need}_fits"; then continue; fi
    if [ "$(id -u)" -eq 0 ] && command -v apt-get > /dev/null 2>&1; then
        export DEBIAN_FRONTEND=noninteractive
        if [ "$updated" = no ]; then
            apt-get -q -q update > /dev/null 2>&1 < /dev/null
            updated=yes
        fi
        for package in $(candidates "$need"); do
            echo "Installing $package ..."
            if apt-get -q -q install -y --no-install-recommends "$package" > /dev/null 2>&1 < /dev/null \
                && "${need}_fits"; then
                break
            fi
        done
    fi
    if ! "${need}_fits"; then missing="$missing $need"; fi
done

for need in $missing; do
    set -- $(candidates "$need")
    echo "Missing: $(described "$need"). Debian, Ubuntu: sudo apt-get install one of: $*" >&2
done
exit 0
