#!/usr/bin/env bash
# usage: tests/long/cudnn_plans.sh [BUILD]: real cuDNN makes a plan for every convolution of every network
# x f16, bf16, f32 x H200, A100, B200, none of which needs to be there. Prints the table of
# tests/long/cudnn_plans.md and exits 1 if a plan is missing. Minutes.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
lockstep=${1:-$root/build/release}/bin/lockstep
networks=(convnet toy_net resnet18 resnet34 resnet50 resnet101 resnet152 resnext50_32x4d seresnet50
  resnet20 resnet32 resnet44 resnet56 alexnet vgg16 vgg16_bn ghostnet_100 airbench94 airbench95 airbench96
  "resnet18 --cifar-stem" "resnet34 --cifar-stem")

holes=0
echo "| network, batch | card | type | calls | by cuDNN | engines | largest workspace, MiB |"
echo "|---|---|---|---|---|---|---|"
for network in "${networks[@]}"; do
  for gpu in h200 a100 b200; do
    for type in f16 bf16 f32; do
      level=(--opt-level O2 --dtype "$type")
      [ "$type" != f32 ] || level=(--opt-level O0)
      # shellcheck disable=SC2086  # a network may bring a flag
      plan=$("$lockstep" plan -a $network -b 256 --gpu $gpu --np 1 "${level[@]}")
      calls=$(grep -c '^  [0-9]*x ' <<<"$plan")
      by_cudnn=$(grep -c '^     engine' <<<"$plan" || true)
      engines=$(sed -n 's/^     engine \([0-9]*\).*/\1/p' <<<"$plan" | sort -u | wc -l)
      workspace=$(sed -n 's/.*workspace of the largest convolution *\([0-9.]*\) MiB/\1/p' <<<"$plan")
      echo "| $network, 256 | ${gpu^^} | $type | $calls | $by_cudnn | $engines | ${workspace:--} |"
      if [ "$calls" != "$by_cudnn" ]; then
        holes=$((holes + 1))
        grep 'no engines' <<<"$plan" >&2 || true
      fi
    done
  done
done
echo
echo "$holes holes"
[ $holes = 0 ]
