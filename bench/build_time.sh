#!/usr/bin/env bash
# usage: bench/build_time.sh [train] [train_cuda] [change_nn] [change_kernels] [ci_empty] [ci_warm]
# Times what people wait for: from a clone to a trained network, CI, and a changed line to its tests; all of it takes
# about two hours. Writes bench/results/build_time.json, from which tools/bench_table.py makes CONTRIBUTING's table.
exec python3 "$(dirname "$0")/build_time.py" "$@"
