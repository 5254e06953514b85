# shellcheck shell=bash disable=SC2034,SC2154
# Sourced by scripts/run for --max-restarts and --elastic: decides after which ends a job is restarted, from which step,
# and with how many ranks.

probe_s=${RUN_PROBE_S:-30}  # between two looks for hosts that do not answer
growing=no                  # the job stops because more ranks have room
trap 'growing=yes; forward_stop &' USR2

# A rank was killed or crashed, a rank hangs or was cut off (75), or mpirun lost a host (205). A stop by the user (43,
# SIGTERM, SIGINT) needs no restart, and wrong arguments, data or losses would end a restarted job too.
is_worth_restart() {
  case $1 in
    75 | 132 | 134 | 135 | 136 | 137 | 139 | 205) ;;
    *) return 1 ;;
  esac
}

refuse_restart() {  # WHAT TRY
  printf 'run: %s\n  try: %s\n' "$1" "$2" >&2
  exit 2
}

# Settles restarts, ranks, least and most: numbers of ranks.
read_restart_options() {
  local asked_ranks=$ranks is_given=no
  [[ " ${place[*]} " != *" -np "* ]] || is_given=yes
  [[ $restarts =~ ^[0-9]+$ ]] ||
    refuse_restart "--max-restarts takes a number, got '$restarts'" "--max-restarts 3"
  least=$ranks most=$ranks
  [ "$is_given$elastic" != no ] ||
    refuse_restart "--max-restarts wants the number of ranks, to restart as many" "-np $(nproc)"
  [ -n "$elastic" ] || return 0
  [[ $elastic =~ ^[1-9][0-9]*:[1-9][0-9]*$ && ${elastic%:*} -le ${elastic#*:} ]] ||
    refuse_restart "--elastic takes MIN:MAX, got '$elastic'" "--elastic 2:8"
  least=${elastic%:*} most=${elastic#*:} ranks=$most
  [ $is_given = no ] || [ "$asked_ranks" = "$most" ] ||
    refuse_restart "-np $asked_ranks and --elastic $elastic differ" "--elastic alone"
}

# setting FLAG: prints its value in this job, whether from a variable, a file, a preset or the command line.
setting() {
  local text
  text=$(sed -nE "s/^(# )?$1 = //p" <<<"$config" | sed -n 1p)
  case $text in
    \'*) text=${text#\'} && printf %s "${text%%\'*}" ;;
    \"*) [[ $text =~ ^\"(([^\"\\]|\\.)*)\" ]] && printf %b "${BASH_REMATCH[1]}" ;;
    *) printf %s "${text%% *}" ;;
  esac
}

# prepare_restarts ARGS...: asks the program about this job. Sets dir, the run directory, and named, its
# flag where the job has none; resume; shards, 0 where any number of ranks is right; hosts_asked; losses, a file of
# what mpirun says of lost ranks.
prepare_restarts() {
  local flag
  config=$("$program" "$@" --print-config) || exit $?
  shards=0 resume=$(setting resume)  # one $() a line, as in clean_leftovers
  dir=$(setting output-dir)
  if [ -n "$elastic" ]; then
    shards=$(setting shards)
    for flag in global-batch-size shards bn-groups; do
      [ -n "$(setting "$flag")" ] || [ "$flag $(setting sync-bn)" = "bn-groups true" ] ||
        refuse_restart "--elastic wants --$flag: it would follow from the number of ranks" \
          "--global-batch-size 256 --shards 8 --bn-groups 8"
    done
  fi
  if [ -z "$dir" ] && [ "$resume" = auto ]; then dir=$(readlink -f runs/latest || true); fi
  named=()
  if [ -z "$dir" ]; then claim_directory && named=(-o "$dir"); fi
  read_hosts
  # mpirun would give the other ranks a second to end, and each would only report that it lost a peer.
  set_default OMPI_MCA_odls_base_sigkill_timeout 0
  losses=$job/mpi/losses
  export LOCKSTEP_JOB=${job##*/lockstep."$EUID".}  # for --keep-in-memory (trainers/checkpoint/kept_state.h)
}

# Sets dir to a new run directory, as the program names it: jobs may start in one second.
claim_directory() {
  local name number=2
  name=$(date -u +%Y%m%d-%H%M%S)
  name=runs/$name-$(setting arch)-n$ranks
  dir=$name
  mkdir -p runs 2>/dev/null || return 0  # the program says why
  until mkdir "$dir" 2>/dev/null; do
    [ -e "$dir" ] || [ -L "$dir" ] || return 0
    dir=$name-$number number=$((number + 1))
  done
  claimed=$dir
}

# Sets host_options, mpirun's, and hosts_asked, lines "HOST SLOTS"; none on one host, in an allocation that mpirun
# knows, or where a hostfile leaves slots to mpirun, which counts the hosts' cores.
read_hosts() {
  local i of_file are_counted=yes
  hosts_asked='' host_options=()
  for ((i = 0; i < ${#place[@]}; i += 2)); do  # an option and its value
    [ "${place[i]}" = -np ] || host_options+=("${place[@]:i:2}")
    case ${place[i]} in
      -H | --host) hosts_asked+=$(tr ',' '\n' <<<"${place[i + 1]}" | tr ':' ' ')$'\n' ;;
      --hostfile)
        of_file=$(sed -nE 's/#.*//; s/^\s*(\S+)(.*\sslots\s*=\s*([0-9]+))?.*/\1 \3/p' "${place[i + 1]}")
        ! grep -q ' $' <<<"$of_file" || are_counted=no
        hosts_asked+=$of_file$'\n'
        ;;
    esac
  done
  [ $are_counted = no ] || return 0
  [ -z "$elastic" ] || refuse_restart "--elastic wants slots= for each host of a hostfile" "node1 slots=8"
  hosts_asked=''
}

host_answers() {
  local agent
  case " localhost 127.0.0.1 $(hostname) $(hostname -s) $(hostname -I 2>/dev/null) " in *" $1 "*) return 0 ;; esac
  read -r -a agent <<<"${OMPI_MCA_plm_rsh_agent:-ssh -o BatchMode=yes}"
  timeout 10 "${agent[@]}" "$1" true </dev/null >/dev/null 2>&1
}

# Prints the hosts that answer, "HOST:SLOTS,...", and how many slots they have together; without hosts to ask " MOST".
find_slots() {
  local host slots list='' sum=0
  [ -n "$hosts_asked" ] || { echo " $most" && return; }
  while read -r host slots; do
    if [ -z "$host" ] || ! host_answers "$host"; then continue; fi
    list+=,$host:${slots:-1} sum=$((sum + ${slots:-1}))
  done <<<"$hosts_asked"
  echo "${list#,} $sum"
}

# The largest number of ranks up to $1 and the limit whose shards are equal subtrees of the sum, so that the bits stay;
# 0: none from `least` on.
allowed_ranks() {
  local n=$1
  [ "$n" -le "$limit" ] || n=$limit
  for (( ; n >= least; n--)); do
    if ((n == 1 || (shards % n == 0 && (shards / n & (shards / n - 1)) == 0))); then break; fi
  done
  echo $((n >= least ? n : 0))
}

# Sets ranks and place to what the hosts have room for; waits for `least`. False: they did not come, or a user's stop.
settle_ranks() {
  local found tries=20
  while :; do
    found=$(find_slots)
    ranks=$(allowed_ranks "${found##* }")
    [ "$ranks" = 0 ] || break
    tries=$((tries - 1))
    if [ $tries = 0 ] || [ "$asked" = yes ]; then return 1; fi
    echo "run: hosts that answer have ${found##* } slots, the job wants $least: it waits" >&2
    sleep "$probe_s" &
    wait $! || true
  done
  place=(-np "$ranks")
  if [ -n "${found%% *}" ]; then place+=(--host "${found%% *}"); else place+=("${host_options[@]}"); fi
}

# Asks the job to stop once there is room for more ranks.
watch_for_hosts() {
  local found
  while sleep "$probe_s" && kill -0 $$ 2>/dev/null; do
    found=$(find_slots)
    [ "$(allowed_ranks "${found##* }")" -gt "$ranks" ] || continue
    kill -USR2 $$
    return
  done
}

# Copies the output of the ranks, and keeps the lines about a lost rank.
copy_output() {
  trap '' INT TERM HUP USR1 USR2
  tee >(grep --line-buffered -E 'exited on signal|why: rank|Remote daemon:' >"$losses") >&2
}

# mpirun 4.1 waits forever for ranks that were killed while it started them. Ends it once nothing else is left below it.
watch_for_zombies() {
  trap '' INT TERM HUP USR1 USR2
  local looks=0 states
  while sleep 1 && kill -0 "$mpirun" 2>/dev/null; do
    states=$(cat /proc/[0-9]*/stat 2>/dev/null | sed 's/^.*) //' | awk -v of="$mpirun" '$2 == of { print $1 }') || true
    if [ -n "$states" ] && ! grep -q '[^Z]' <<<"$states"; then looks=$((looks + 1)); else looks=0; fi
    [ $looks -lt 3 ] || { kill -KILL "$mpirun" && return; }
  done
}

what_was_lost() {
  local tries=20 found=
  while [ $tries -gt 0 ] && [ -z "$found" ]; do  # the last lines are on their way
    sleep 0.01
    tries=$((tries - 1))
    found=$(sed -nE "
      s/.* rank ([0-9]+) .* node (.*) exited on (signal [0-9]+) \((.*)\).*/rank \1 on \2 was lost (\3, \4)/p
      s/.*Remote daemon:.* on node (.*)/host \1 was lost/p
      s/.*why: (rank .*)/a rank was lost: \1 (exit code $status)/p" "$losses" | sort -r | sed -n 1p)
  done
  echo "${found:-a rank was lost (exit code $status)}"
}

# "STEP TIME" of the newest checkpoint, on disk or in memory; empty: none.
newest_checkpoint() {
  find "$dir/checkpoints" "$job" -maxdepth 1 -name 'step*.state.safetensors' -printf '%f %T@\n' 2>/dev/null |
    sed -nE 's/^step0*([0-9]+)\.state\.safetensors/\1/p' | sort -n | tail -n 1 || true  # there may be no folder yet
}

# Sets more: how the next start takes up what this job has saved. False: it began from another file and saved nothing.
settle_start() {
  if [ "$newest" != "$begun" ] || [ -z "$resume$begun" ]; then
    more=("${named[@]}" --resume auto --no-overwrite)
  elif [ -n "$resume" ] && [ "$resume" != auto ]; then
    return 1
  fi
}

gives_up() { echo "run: $1; it gives up: $2" >&2; }

# next_start LOST: whether the job goes on after a loss. After a restart without progress it takes fewer
# ranks, where that is allowed: one of them may never get far.
next_start() {
  local before=$newest fewer
  number=$((number + 1)) newest=$(newest_checkpoint)
  [ "$number" -le "$restarts" ] || { gives_up "$1" "$restarts of $restarts restarts are used" && return 1; }
  if [ "$number" -gt 1 ] && [ "$newest" = "$before" ]; then
    fewer=$(allowed_ranks $((ranks - 1)))
    [ "$fewer" = 0 ] || limit=$fewer
  fi
  settle_start || { gives_up "$1" "nothing is saved of what began from $resume" && return 1; }
  settle_ranks || { gives_up "$1" "too few hosts answer" && return 1; }
  echo "run: $1: restart $number of $restarts $(restart_text)" >&2
}

restart_text() {
  local from=${newest%% *} s=s
  [ "$ranks" != 1 ] || s=''
  echo "goes on from ${from:+step }${from:-the beginning} with $ranks rank$s"
}

# start_and_restart ARGS...: as start_ranks, repeated after each loss. Sets status to the last exit code.
start_and_restart() {
  local number=0 begun newest limit=$most watcher more=("${named[@]}")
  begun=$(newest_checkpoint) newest=$begun status=75
  if [ -n "$elastic" ]; then settle_ranks || { gives_up "no rank was started" "too few hosts answer" && return; }; fi
  while :; do
    : >"$losses"
    watcher=
    if [ -n "$hosts_asked" ] && [ "$ranks" -lt "$limit" ]; then watch_for_hosts & watcher=$!; fi
    start_ranks "$@" "${more[@]}" 2> >(copy_output)
    [ -z "$watcher" ] || kill -- "-$watcher" 2>/dev/null || true
    [ "$asked" = no ] || return 0
    if [ "$growing $status" = "yes 43" ]; then
      newest=$(newest_checkpoint)
      { settle_start && settle_ranks; } || return 0
      echo "run: there is room for more ranks: the job $(restart_text)" >&2
    elif is_worth_restart "$status"; then
      next_start "$(what_was_lost)" || return 0
    else
      return 0
    fi
    growing=no
  done
}
