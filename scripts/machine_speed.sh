#!/usr/bin/env bash
# usage: scripts/machine_speed.sh
# Prints "speed<tab>1.00": this machine's speed for compilers and kernels, 1 being the machine of CONTRIBUTING's
# budgets. A fixed source is compiled and run, on two cores at once. Takes 20 s at speed 1.
set -euo pipefail
cd "$(dirname "$0")/.."
reference_s=20.0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

measure() {  # one core's share
  for _ in 1 2; do
    g++ -std=c++20 -O2 tests/tools/speed_probe.cpp -o "$work/probe$1"
  done
  "$work/probe$1" >/dev/null
}
began=$EPOCHREALTIME
measure 0 &
measure 1
wait $!
awk -v a="$began" -v b="$EPOCHREALTIME" -v r=$reference_s 'BEGIN {printf "speed\t%.2f\n", r / (b - a)}'
