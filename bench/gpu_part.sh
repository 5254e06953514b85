#!/usr/bin/env bash
# usage: bench/gpu_part.sh PART: one part of bench/gpu_suite.sh, which sets SUITE_PROGRAMS, SUITE_RESULTS, SUITE_WORK,
# SUITE_COMMIT, SUITE_BUILT and SUITE_REHEARSES. Exit status 77 where the machine lacks what the part needs.
set -euo pipefail
part=$1
programs=$SUITE_PROGRAMS results=$SUITE_RESULTS work=$SUITE_WORK
export LD_LIBRARY_PATH="$programs/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"

# Sizes: of a GPU, and of the emulated machine, which is a hundred thousand times as slow.
if [ -z "$SUITE_REHEARSES" ]; then
  gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU' || true)
  [ -z "${CUDA_VISIBLE_DEVICES:-}" ] || gpus=$(tr ',' '\n' <<<"$CUDA_VISIBLE_DEVICES" | grep -c .)
  resnet50=(-a resnet50 -b 256) small=(-a resnet50 -b 32) convnet=(-a convnet -b 64)
  timed=(--num-warmup-batches 10 --num-batches-per-iter 10 --num-iters 5)
  convnet_steps=() resnet_steps=(--dataset synthetic -j 8 --max-steps 60)
  nccl_steps=(--max-steps 200 --global-batch-size 64)
  ranks_arguments=() tests_filter=() bench_filter='^cuda/' bench_flags=() norms_filter='^cuda/batch_norm_shard_'
  network=train_resnet step_networks=("-a convnet -b 64" "-a resnet20 -b 32" "-a resnet50 -b 8") rounds=3
  patience=20 patience_after_kill=20
else
  gpus=${LOCKSTEP_EMULATION_DEVICES:-2}
  # Lazy, as hardware is: an eager stream waits for its peers in the call that gives it work.
  export LOCKSTEP_EMULATION_DEVICES=$gpus LOCKSTEP_EMULATION_STREAMS=lazy LOCKSTEP_EMULATION_CUDNN=on
  resnet50=(-a convnet -b 2) small=(-a convnet -b 2) convnet=(-a convnet -b 2)
  timed=(--num-warmup-batches 3 --num-batches-per-iter 1 --num-iters 1)
  convnet_steps=(--dataset synthetic -b 2 --max-steps 4 --no-eval --print-freq 2 -j 0)
  resnet_steps=("${convnet_steps[@]}")
  nccl_steps=(--dataset synthetic --max-steps 4 --no-eval -j 0 --global-batch-size 8)
  ranks_arguments=(--dataset synthetic --max-steps 6 --no-eval -j 0 --global-batch-size 4)
  tests_filter=(--gtest_filter='Add*') bench_filter='^cuda/relu_' bench_flags=(--rehearsal)
  norms_filter='^cuda/batch_norm_shard_(forward|backward)/f16/256x2048'
  network=train_convnet step_networks=("-a convnet -b 2") rounds=1
  patience=30 patience_after_kill=5
fi
o2=(--opt-level O2 --dtype f16)

# program NAME: where it is; in a rehearsal the one for the emulated machine.
program() {
  case "$SUITE_REHEARSES $1" in
    "yes test_cuda") echo "$programs/test_cuda_fast" ;;
    "yes lockstep") echo "$programs/lockstep" ;;
    yes*) echo "$programs/$1_emulated" ;;
    *) echo "$programs/$1" ;;
  esac
}
lacks() {
  echo "absent: $*"
  exit 77
}
results() {  # KIND ARGS...
  python3 bench/gpu_results.py "$1" "$results" "$SUITE_COMMIT" "${@:2}"
}
has_library() {  # NAME, as lockstep doctor prints it
  [ -n "$SUITE_REHEARSES" ] || { "$programs/lockstep" doctor || true; } | grep -Eq "^ +ok +$1 "
}
need_nccl() {
  has_library NCCL || lacks "lockstep doctor finds no NCCL 2"
}
has_torch() {
  [ -z "$SUITE_REHEARSES" ] && python3 -c 'import torch; torch.zeros(1, device="cuda")' 2>/dev/null
}

# train_one NAME RANKS PROGRAM ARGS...: a training of its own directory.
train_one() {
  local name=$1 ranks=$2 program
  program=$(program "$3")
  rm -rf "$work/runs/$name"
  bench/on_ranks.sh "$ranks" "$program" --device cuda --overwrite --output-dir "$work/runs/$name" "${@:4}" ||
    { echo "training $name failed"; return 1; }
}
# same_bits NAME NAME: of the weights that two trainings ended with.
same_bits() {
  "$programs/lockstep" diff "$work/runs/$1/checkpoints/last.safetensors" "$work/runs/$2/checkpoints/last.safetensors"
}
# measure NAME RANKS ARGS...: bench_train's object, to steps/NAME.json.
measure() {
  mkdir -p "$work/steps"
  local file=$work/steps/$1.json
  bench/on_ranks.sh "$2" "$(program bench_train)" --device cuda --json "${timed[@]}" "${@:3}" >"$file.part"
  mv "$file.part" "$file"
}

build() {
  local built
  read -ra built <<<"$SUITE_BUILT"
  scripts/setup.sh test
  cmake --preset release | tee "$work/configure.log"
  if [ -z "$SUITE_REHEARSES" ] && ! grep -q '^-- CUDA: ON' "$work/configure.log"; then
    printf 'CUDA was left out\n  try: scripts/setup.sh cuda (or the CUDA toolkit 12.4 or newer), then this again\n'
    return 1
  fi
  cmake --build --preset release --target "${built[@]}"
}

plan() {
  local card=$results/gpu.json
  rm -f "$card" "$results/plan.txt"  # of another card, perhaps
  has_library cuDNN || lacks "lockstep doctor finds no cuDNN 9"
  if [ -n "$SUITE_REHEARSES" ]; then
    card=h200
  else
    "$programs/lockstep" describe-gpu >"$card"
  fi
  local flags=(-a resnet50 -b 256 --gpu "$card" --np 8 --opt-level O2)
  if ! "$programs/lockstep" plan "${flags[@]}" >"$work/plan.txt" 2>"$work/plan.err"; then
    cat "$work/plan.err"
    ! grep -q 'is not known here' "$work/plan.err" || lacks "figures of this card"
    ! grep -q 'cuDNN' "$work/plan.err" || lacks "a cuDNN that plans for a described GPU (9.11 or newer)"
    return 1
  fi
  cp "$work/plan.txt" "$results/plan.txt"
}

sanitize() {
  command -v compute-sanitizer >/dev/null || lacks "compute-sanitizer is not installed"
  # without the allocator's cache, which would hide accesses beyond a tensor
  LOCKSTEP_NO_CUDA_CACHE=1 compute-sanitizer --tool "$1" --error-exitcode 9 "$(program test_cuda)" --gtest_brief=1 \
    "${tests_filter[@]}"
}

step() {
  local failed=0 at=0 network level
  mkdir -p "$work/steps"
  for network in "${step_networks[@]}"; do
    for level in O0 O2; do
      at=$((at + 1))
      # shellcheck disable=SC2086  # several arguments
      "$(program bench_train)" --device cuda --against-cpu --opt-level $level --dtype f16 $network \
        >"$work/steps/against_cpu_$at.json" || { echo "$network at $level differs"; failed=1; continue; }
      results against-cpu "$work/steps/against_cpu_$at.json"
    done
  done
  return $failed
}

memory() {
  local promised batch percent
  [ -s "$results/plan.txt" ] || lacks "a plan for this card"
  promised=$(grep -o 'largest batch that fits: [0-9]*' "$results/plan.txt" | grep -o '[0-9]*$')
  for percent in 100 97 94 90 80; do
    batch=$((promised * percent / 100))
    [ -z "$SUITE_REHEARSES" ] || batch=2
    if train_one "memory/$percent" 1 "$network" "${o2[@]}" "${resnet50[@]}" -b "$batch" --dataset synthetic --no-eval \
      --max-steps 4 -j 0; then
      results figure "largest_batch_of_plan=$percent"
      [ $percent = 100 ] && return 0
      echo "$batch images, $percent percent of the promised $promised, are the first that fit"
      return 1
    fi
  done
  return 1
}

# One rank has nobody to send to, so our sum needs NCCL's communicator alone; NCCL's own is a call in each step.
nccl_alone() {
  need_nccl
  train_one nccl/none 1 train_convnet "${nccl_steps[@]}" &&
    train_one nccl/tree 1 train_convnet "${nccl_steps[@]}" --transport nccl && same_bits nccl/none nccl/tree &&
    train_one nccl/own 1 train_convnet "${nccl_steps[@]}" --algorithm nccl && same_bits nccl/none nccl/own
}

nccl() {
  local ranks=$1 failed=0 begin
  [ "$gpus" -ge "$ranks" ] || lacks "$ranks GPUs: there are $gpus"
  need_nccl
  local same=(train_convnet "${nccl_steps[@]}" --shards 8 --bn-groups 8 --stall-abort "$patience")
  train_one nccl/shards 1 "${same[@]}"
  train_one "nccl/$ranks" "$ranks" "${same[@]}" --transport nccl && same_bits nccl/shards "nccl/$ranks" || failed=1
  train_one "nccl/$ranks-eager" "$ranks" "${same[@]}" --transport nccl --no-graph &&
    same_bits nccl/shards "nccl/$ranks-eager" || failed=1
  train_one "nccl/$ranks-own" "$ranks" "${same[@]}" --algorithm nccl || failed=1
  train_one nccl/sync 1 "${same[@]}" --bn-groups 1 &&
    train_one "nccl/$ranks-sync" "$ranks" "${same[@]}" --transport nccl --bn-groups 1 &&
    same_bits nccl/sync "nccl/$ranks-sync" || failed=1
  begin=$(date +%s%N)
  # The others wait in a recorded step.
  if LOCKSTEP_FAULT=kill:rank=1,step=3 train_one "nccl/$ranks-killed" "$ranks" "${same[@]}" --transport nccl \
    --stall-abort "$patience_after_kill"; then
    echo "a run went on without its rank 1"
    failed=1
  else
    results figure "nccl_${ranks}_killed_s=$(($(date +%s%N) - begin))e-9"
  fi
  measure scaling_1 1 "${o2[@]}" "${resnet50[@]}"
  measure "scaling_$ranks" "$ranks" "${o2[@]}" "${resnet50[@]}" || failed=1
  results scaling "$work/steps/scaling_1.json" "$work/steps/scaling_$ranks.json" || failed=1
  return $failed
}

train() {
  local failed=0 resnet=("$network" "${resnet_steps[@]}")
  [ -n "$SUITE_REHEARSES" ] || resnet+=("${resnet50[@]}")
  train_one convnet 1 train_convnet "${convnet_steps[@]}" || failed=1
  train_one convnet_eager 1 train_convnet "${convnet_steps[@]}" --no-graph &&
    same_bits convnet convnet_eager || failed=1
  if has_library cuDNN; then
    train_one convnet_tuned 1 train_convnet "${convnet_steps[@]}" --autotune && train_one convnet_planned 1 \
      train_convnet "${convnet_steps[@]}" --plan-file "$work/runs/convnet_tuned/plans.json" &&
      same_bits convnet_tuned convnet_planned || failed=1
    train_one resnet50_o2_tuned 1 "${resnet[@]}" --opt-level O2 --autotune &&
      results convolutions "$work/runs/resnet50_o2_tuned/plans.json" || failed=1
  fi
  train_one convnet_o2 1 train_convnet "${convnet_steps[@]}" --opt-level O2 || failed=1
  train_one resnet50_f32 1 "${resnet[@]}" || failed=1
  train_one resnet50_o2 1 "${resnet[@]}" --opt-level O2 || failed=1
  train_one resnet50_o2_eager 1 "${resnet[@]}" --opt-level O2 --no-graph || failed=1
  results training "$work"/runs/*/run.json || failed=1
  return $failed
}

# speed NAME OURS... -- PYTORCH'S...: in turn. Ours alone without PyTorch.
speed() {
  local name=$1 ours=() flags=()
  shift
  while [ "$1" != -- ]; do ours+=("$1") && shift; done
  shift
  has_torch || flags=(--alone)
  python3 bench/gpu_step_speed.py "$results" "$SUITE_COMMIT" "$name" --rounds "$rounds" "${flags[@]}" \
    --ours "$(program bench_train) --device cuda --json ${timed[*]} ${ours[*]}" \
    --peer "python3 bench/peers/torch_step.py --device cuda --warmup 10 --steps 30 $*"
}
tuned=""  # without cuDNN there are no engines to choose from
case "$part" in speed-* | input) ! has_library cuDNN || tuned="--autotune --plan-file $work/engines.json" ;; esac

photos() {
  local folder=${LOCKSTEP_PHOTOS:-$work/photos} count=2000 side=500
  local flags=(-b 256 -j "$(nproc)" --epochs 4 --drop-last --print-freq 2)
  if [ -n "$SUITE_REHEARSES" ]; then
    count=8 side=40 flags=(-b 2 -j 1 --train-crop-size 32 --max-steps 2 --no-eval --print-freq 1)
  fi
  [ -n "${LOCKSTEP_PHOTOS:-}$SUITE_REHEARSES" ] || python3 -c 'import PIL' 2>/dev/null ||
    lacks "photos: set LOCKSTEP_PHOTOS, or install Python's PIL"
  [ -d "$folder/train" ] || python3 bench/photo_folder.py "$folder" $count $side
  local program=(train_resnet "$folder" -a resnet50)
  [ -z "$SUITE_REHEARSES" ] || program=(train_resnet "$folder" -a resnet20)
  train_one jpeg/photos 1 "${program[@]}" "${o2[@]}" "${flags[@]}" && results jpeg "$work/runs/jpeg/photos/run.json"
}

trace() {
  local ten=(--device cuda --json "${o2[@]}" "${resnet50[@]}" --num-warmup-batches 5 --num-batches-per-iter 10)
  if command -v nsys >/dev/null; then
    nsys profile --force-overwrite true -o "$results/trace" \
      "$(program bench_train)" "${ten[@]}" --num-iters 1 >/dev/null ||
      echo "nsys failed; the steps' times follow"
  else
    echo "nsys is not installed; the steps' times follow"
  fi
  mkdir -p "$work/steps"
  "$(program bench_train)" "${ten[@]}" --num-iters 1 >"$work/steps/trace.json"
  results trace "$work/steps/trace.json"
}

kernels() {  # KIND FILTER
  "$(program bench_kernels)" "${bench_flags[@]}" "--benchmark_filter=$2" "--benchmark_out=$work/$1.json" &&
    results "$1" "$work/$1.json"
}

amp="--channels-last --autocast f16"
# shellcheck disable=SC2086  # several arguments
case "$part" in
  build | plan | step | memory | train | trace) "$part" ;;
  tests) "$(program test_cuda)" --gtest_brief=1 "${tests_filter[@]}" ;;
  *check) sanitize "$part" ;;
  nccl-1) nccl_alone ;;
  nccl-*) nccl "${part#nccl-}" ;;
  ranks) tests/long/ranks_on_one_gpu.sh "$(program train_convnet)" "${ranks_arguments[@]}" ;;
  norms) kernels norms "$norms_filter" ;;
  bench) kernels kernels "$bench_filter" ;;
  speed-amp) speed amp "${o2[@]}" "${resnet50[@]}" $tuned -- $amp "${resnet50[@]}" ;;
  speed-rule) speed rule "${o2[@]}" "${resnet50[@]}" -- $amp "${resnet50[@]}" ;;
  speed-compile) speed compile "${o2[@]}" "${resnet50[@]}" $tuned -- $amp --compile "${resnet50[@]}" ;;
  speed-max-autotune) speed max_autotune "${o2[@]}" "${resnet50[@]}" $tuned -- $amp --max-autotune "${resnet50[@]}" ;;
  speed-f32) speed f32 "${resnet50[@]}" -- --channels-last "${resnet50[@]}" ;;
  speed-tf32) speed tf32 "${o2[@]}" "${resnet50[@]}" $tuned -- --channels-last --tf32 "${resnet50[@]}" ;;
  speed-convnet) speed convnet "${convnet[@]}" -- "${convnet[@]}" ;;
  speed-small) speed small "${o2[@]}" "${small[@]}" $tuned -- $amp "${small[@]}" ;;
  input) speed input "${o2[@]}" "${resnet50[@]}" $tuned --with-input -j "$(nproc)" -- $amp "${resnet50[@]}" ;;
  jpeg) photos ;;
  peers)
    has_torch || lacks "python3 has no PyTorch for this device"
    python3 bench/peers/torch_kernels.py >"$work/peers.json" && results peers "$work/peers.json"
    ;;
esac
