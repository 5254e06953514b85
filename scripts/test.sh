#!/usr/bin/env bash
# usage: scripts/test.sh [--quick]
# Installs what is missing, builds, and runs every test that this machine can run: the release build's,
# then unit tests under AddressSanitizer with UBSan and under ThreadSanitizer (--quick: the release
# build's alone). Exit status 0 only if nothing failed; the last line counts.
set -uo pipefail
cd "$(dirname "$0")/.." || exit

quick=0
case "${1:-}" in
  "") ;;
  --quick) quick=1 ;;
  *) sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2 ;;
esac

scripts/setup.sh test || exit
results=build/test-results
rm -rf $results
mkdir -p $results

# suite PRESET TARGETS CTEST_ARGS...: builds TARGETS ("all" or names) and runs the preset's tests.
suite() {
  local preset=$1 targets=$2
  shift 2
  echo "== $preset"
  # shellcheck disable=SC2086  # targets are words
  if ! { cmake --preset "$preset" &&
    cmake --build --preset "$preset" --target $targets; } >$results/"$preset".log 2>&1; then
    tail -n 40 $results/"$preset".log
    echo "test: the $preset build failed"
    return 1
  fi
  ctest --preset "$preset" --output-junit "$PWD/$results/$preset.xml" "$@"
}

status=0
suite release all -j 2 || status=1
if [ $quick = 0 ]; then
  suite asan-ubsan "test_core test_kernels test_comm test_data" -j 2 -L unit || status=1
  suite tsan "test_core test_comm" -j 2 -L unit || status=1
fi
python3 tools/count_tests.py $results/*.xml || status=1
exit $status
