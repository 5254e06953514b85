#!/bin/sh
# expect_exit.sh CODE COMMAND...: succeeds if and only if COMMAND exits with CODE. "1|75" allows either code.
wanted=$1
shift
"$@"
code=$?
echo "exit code $code, expected $wanted"
case "|$wanted|" in *"|$code|"*) exit 0 ;; *) exit 1 ;; esac
