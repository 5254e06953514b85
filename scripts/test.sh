#!/usr/bin/env bash
# usage: scripts/test.sh [--quick|--changed|--all]
# Installs what is missing, builds, and runs the tests: the release build's, then unit tests under AddressSanitizer with
# UBSan and under ThreadSanitizer (--quick: the release build's alone). Exit status 0 only if nothing failed; the last
# line is the result.
# --changed builds and runs the unit tests of the folders with uncommitted changes, or of the last commit.
# --all then runs what takes too long for each landing (tools/long_parts.py).
set -uo pipefail
cd "$(dirname "$0")/.." || exit
. scripts/part.sh

mode=${1:-}
case "$mode" in
  "" | --quick | --changed | --all) ;;
  *) sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2 ;;
esac

results=build/test-results
rm -rf $results
mkdir -p $results
export LOCKSTEP_MINUTES=${LOCKSTEP_MINUTES:-$PWD/$results/minutes.tsv}
# One architecture: tools/long_parts.py compiles for all. A GPU's tests need its own.
[ -e /dev/nvidiactl ] || export CUDAARCHS=${CUDAARCHS:-90}

changed_tests() {  # the unit test programs of what changed, a line each
  local changed
  changed=$(git diff --name-only HEAD; git ls-files --others --exclude-standard)
  [ -n "$changed" ] || changed=$(git diff --name-only HEAD~1)
  {
    sed -n -E 's/^(tests\/)?(core|kernels|nn|comm|data|trainers|inspect|engine|bench|fuzz)\/.*/test_\2/p' <<<"$changed"
    ! grep -qE '^tests/reference/' <<<"$changed" || echo test_kernels
    ! grep -qE '^(kernels/.*\.cuh?|core/cuda/.*|tests/(cuda|emulation|reference)/.*)$' <<<"$changed" ||
      echo test_cuda_fast
    ! grep -qE '^tests/(support|golden)/' <<<"$changed" ||
      printf 'test_%s\n' core kernels nn comm data trainers inspect engine
  } | sort -u
}

# logged LOG COMMAND...: runs the command, and shows the end of its log where it fails.
logged() {
  local log=$results/$1.log
  shift
  "$@" >>"$log" 2>&1 && return
  tail -n 40 "$log"
  echo "test: this failed: $*"
  return 1
}

if [ "$mode" = --changed ]; then
  mapfile -t programs < <(changed_tests)
  [ ${#programs[@]} -gt 0 ] || { echo "test: no unit test looks at what changed; --quick runs all tests"; exit 0; }
  if ! grep -q 'LOCKSTEP_ISA_LEVELS:STRING=all' build/release/CMakeCache.txt 2>/dev/null; then
    scripts/setup.sh test && logged release cmake --preset release || exit
  fi
  logged release cmake --build build/release --target "${programs[@]}" || exit
  status=0
  for program in "${programs[@]}"; do
    echo "== $program"
    halves=()
    for half in 0 1; do  # side by side
      GTEST_TOTAL_SHARDS=2 GTEST_SHARD_INDEX=$half "build/release/bin/$program" --gtest_brief=1 &
      halves+=($!)
    done
    trap 'kill "${halves[@]}" 2>/dev/null; exit 130' INT TERM  # Ctrl-C does not reach background jobs
    for half in "${halves[@]}"; do
      wait "$half" || status=1
    done
  done
  exit $status
fi

# suite PRESET TARGETS CTEST_ARGS...: builds TARGETS ("all" or names) and runs the preset's tests.
suite() {
  local preset=$1 targets=$2
  shift 2
  echo "== $preset"
  # ctest overwrites it.
  echo "<testsuite><testcase name='the build'><failure/></testcase></testsuite>" >"$results/$preset.xml"
  logged "$preset" cmake --preset "$preset" || return 1
  # shellcheck disable=SC2086  # targets are words
  part "$preset: build" logged "$preset" cmake --build --preset "$preset" --target $targets || return 1
  part "$preset: tests" ctest --preset "$preset" --output-junit "$PWD/$results/$preset.xml" "$@" |
    tee $results/"$preset".txt
}

commit=$(git rev-parse --short=7 HEAD 2>/dev/null) || commit=1
export LOCKSTEP_EMULATION_SEED=${LOCKSTEP_EMULATION_SEED:-$((16#$commit))}
echo "test: random orders have the commit's seed; LOCKSTEP_EMULATION_SEED=$LOCKSTEP_EMULATION_SEED repeats them"
part packages scripts/setup.sh test || exit
part "machine speed" scripts/machine_speed.sh >>"$LOCKSTEP_MINUTES"
status=0
rm -rf build/{release,asan-ubsan,tsan}/gtest
suite release all -j 2 || status=1
if [ "$mode" != --quick ]; then
  filter='-*/*SameBits.*:*SameBitsMutant.*:Ranks/*/1?'  # tools/long_parts.py runs these, too
  GTEST_FILTER=$filter suite asan-ubsan "test_core test_kernels test_comm test_data" -j 2 \
    -R '^test_(core|kernels|comm|data)\.' || status=1
  GTEST_FILTER=$filter suite tsan "test_core test_comm" -j 2 -R '^test_(core|comm)\.' || status=1
fi
part "machine speed" scripts/machine_speed.sh >>"$LOCKSTEP_MINUTES"
if [ "$mode" = --all ]; then
  python3 tools/long_parts.py || status=1
fi
python3 tools/minutes.py "$LOCKSTEP_MINUTES" $results/release.txt || status=1
python3 tools/count_tests.py $results/*.xml || status=1
exit $status
