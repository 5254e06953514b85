#!/usr/bin/env bash
# usage: tools/reference.sh FOLDER
# Writes the library's reference to FOLDER/html by Doxygen; fails where it warns.
set -euo pipefail
[ $# -eq 1 ] || { sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2; }
folder=$(realpath -m "$1")
cd "$(dirname "$0")/.."
mkdir -p "$folder"
(
  cat packaging/Doxyfile
  echo "OUTPUT_DIRECTORY = \"$folder\""
  echo "INPUT = $(xargs <cmake/public_headers.txt)"
) | doxygen -
echo "the reference is $folder/html/index.html"
