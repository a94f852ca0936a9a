#!/usr/bin/env bash
# Builds the site of README.md and docs/ in build/site, without the network; a link that leads nowhere is an error.
#
#     bash scripts/docs.sh [build] [--site-dir DIR]    # open build/site/index.html
#     bash scripts/docs.sh serve                       # with search, at http://127.0.0.1:8000, rebuilt after an edit
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
python="$(bash "$root/scripts/setup.sh" docs)"

do=build
if [[ ${1:-} == build || ${1:-} == serve ]]; then
    do="$1"
    shift
fi
export NO_MKDOCS_2_WARNING=1 # an advertisement
exec "$python" -P -m mkdocs "$do" --strict --config-file "$root/mkdocs.yml" "$@"
