#!/bin/sh
# expect_exit.sh CODE COMMAND...: succeeds if and only if COMMAND exits with CODE.
wanted=$1
shift
"$@"
code=$?
echo "exit code $code, expected $wanted"
[ "$code" -eq "$wanted" ]
