#!/usr/bin/env bash
# usage: tests/long/damaged_images.sh SEED FIRST COUNT FOLDER...
# Decodes the images in FOLDERs as they are, then copies FIRST to FIRST + COUNT - 1 of them with bytes changed, cut off,
# spliced in from others, and sizes and lengths in headers set to edge values, under AddressSanitizer and UBSan. A copy
# depends on SEED, its number and the images alone, so a range may go on where another ended, or beside it. Ends with 1
# at the first finding, at a copy that takes more than 60 s of processor time, and beyond 3 GiB of memory.
set -euo pipefail
[ $# -ge 4 ] || { sed -n 2,6p "$0"; exit 2; }
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$root/build/asan-ubsan
cmake -S "$root" --preset asan-ubsan > /dev/null
cmake --build "$build" --target damaged_images > /dev/null
# The system's libjpeg-turbo and libpng are not built with sanitizers: of their own writing, what goes beyond a block of
# memory shows where malloc or our code notices.
ASAN_OPTIONS=hard_rss_limit_mb=3072:allocator_may_return_null=0:detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1 \
  exec "$build/bin/damaged_images" "$@"
