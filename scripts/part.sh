# shellcheck shell=bash
# Sourced: measures how long the parts of a script take.

# part NAME COMMAND...: runs the command; where LOCKSTEP_MINUTES names a file, "NAME<tab>SECONDS" is added to it.
part() {
  local name=$1 began=$EPOCHREALTIME status=0
  shift
  "$@" || status=$?
  [ -z "${LOCKSTEP_MINUTES:-}" ] ||
    awk -v n="$name" -v a="$began" -v b="$EPOCHREALTIME" 'BEGIN {printf "%s\t%.1f\n", n, b - a}' >>"$LOCKSTEP_MINUTES"
  return $status
}
