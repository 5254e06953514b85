#!/usr/bin/env bash
# usage: tests/long/report_pages.sh OUT_DIR: photographs report.html of 1 and 8 ranks, light, dark and printed, in
# headless Chromium, and fails if the browser logs an error: whatever a page would fetch, its policy refuses and logs.
# Look at the pictures in OUT_DIR.
# Needs chromium and pdftoppm (packages chromium, poppler-utils) and build/release/bin/train_convnet.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
out=$(mkdir -p "$1" && cd "$1" && pwd)
cd "$out"
browse() { # PAGE and flags
  local page=$1
  shift
  chromium --headless=new --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$out/profile" \
    --enable-logging=stderr "$@" "file://$page" 2>"$out/browser.log"
  if grep -E 'CONSOLE|Refused to' "$out/browser.log"; then
    echo "$page: the browser complains"
    exit 1
  fi
}
for ranks in 1 8; do
  OMP_NUM_THREADS=1 "$root/scripts/run" -np $ranks "$root/build/release/bin/train_convnet" --max-steps 200 -b 16 \
    --first-bucket-mb 0.02 --bucket-cap-mb 0.05 -q --overwrite -o "$out/n$ranks"
  page=$out/n$ranks/report.html
  browse "$page" --window-size=1200,4600 --screenshot="$out/n$ranks-light.png"
  browse "$page" --force-dark-mode --blink-settings=preferredColorScheme=0 --window-size=1200,4600 \
    --screenshot="$out/n$ranks-dark.png"
  browse "$page" --no-pdf-header-footer --print-to-pdf="$out/n$ranks.pdf"
  pdftoppm -r 60 -png "$out/n$ranks.pdf" "$out/n$ranks-print"
done
cmp -s n8-light.png n8-dark.png && { echo "light and dark are the same picture"; exit 1; }
ls "$out"/*.png
