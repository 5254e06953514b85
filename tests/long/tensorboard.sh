#!/usr/bin/env bash
# usage: tensorboard.sh [BIN]; PYTHON has tensorboard and pillow
# A run that is killed at random moments and goes on, read by TensorBoard's EventAccumulator after each kill, and at the
# end by its server over HTTP: tags, steps that stand once, values of metrics.jsonl, the image, hparams.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
bin=${1:-$root/build/release/bin} python=${PYTHON:-python3}
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$work"' EXIT
run=$work/logs/run
train=("$bin/train_convnet" -o "$run" --max-steps 400 --epochs 1 --save-steps 20 --histograms 20 --print-freq 5 -q)

kills=0
while [ $kills -lt 8 ]; do
  "${train[@]}" --resume auto >"$work/log" 2>&1 &
  training=$!
  sleep "0.$((RANDOM % 8 + 2))"
  kill -KILL $training 2>/dev/null || break  # it is done
  wait $training 2>/dev/null || true
  kills=$((kills + 1))
  "$python" - "$run" <<'PYTHON'
import sys
from pathlib import Path
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

if list(Path(sys.argv[1]).glob("events.out.*")):
    events = EventAccumulator(sys.argv[1])
    events.Reload()
PYTHON
done
"${train[@]}" --resume auto >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }

"$python" -m tensorboard.main --logdir "$work/logs" --port 0 --host 127.0.0.1 >"$work/server" 2>&1 &
server=$!
for _ in $(seq 120); do
  url=$(grep -oE 'http://[^ ]+' "$work/server" | head -1 || true)
  [ -z "$url" ] || break
  sleep 1
done
"$python" - "$run" "$url" "$kills" <<'PYTHON'
import io
import json
import sys
import time
import urllib.parse
import urllib.request
from pathlib import Path

from PIL import Image

run, url, kills = Path(sys.argv[1]), sys.argv[2], sys.argv[3]


def get(path, **query):
    with urllib.request.urlopen(f"{url}data/plugin/{path}?{urllib.parse.urlencode(query)}") as answer:
        return answer.read()


def steps_of(plugin, tag):
    return [point[1] for point in json.loads(get(f"{plugin}/{plugin}", run="run", tag=tag))]


for _ in range(60):  # it loads by itself
    tags = json.loads(get("scalars/tags"))
    if tags.get("run"):
        break
    time.sleep(1)
lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
train = {line["step"]: line for line in lines if line["split"] == "train"}
points = json.loads(get("scalars/scalars", run="run", tag="train/loss"))
assert [point[1] for point in points] == sorted(train), "steps"
assert all(abs(point[2] - train[point[1]]["loss"]) < 1e-6 for point in points), "losses"
assert steps_of("histograms", "weight/fc.weight") == list(range(20, 401, 20)), "histograms"
image = json.loads(get("images/images", run="run", tag="train/images", sample=0))
assert len(image) == 1 and image[0]["step"] == 0, image
png = Image.open(io.BytesIO(get("images/individualImage", **dict(urllib.parse.parse_qsl(image[0]["query"])))))
assert png.size == (242, 242) and png.getextrema()[1] > 200, png
text = json.loads(get("text/text", run="run", tag="run/command/text_summary"))
assert "train_convnet" in text[0]["text"], text
request = urllib.request.Request(
    f"{url}data/plugin/hparams/session_groups",
    json.dumps({"startIndex": 0, "sliceSize": 5, "allowedStatuses": [
        "STATUS_SUCCESS", "STATUS_RUNNING", "STATUS_UNKNOWN", "STATUS_FAILURE"], "colParams": []}).encode(),
    {"Content-Type": "application/json"})
session = json.loads(urllib.request.urlopen(request).read())["sessionGroups"][0]
assert session["hparams"]["lr"] == 0.02 and session["hparams"]["arch"] == "convnet", session
assert session["sessions"][0]["status"] == "STATUS_SUCCESS", session
print(f"killed {kills} times: TensorBoard reads {len(points)} losses, each step once, with the values of "
      "metrics.jsonl; 20 histograms, the image, the text and the hparams")
PYTHON
