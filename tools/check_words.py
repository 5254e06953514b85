"""Fails on British spelling, on unclear phrases, and on header comments that begin as a fragment.

usage: python3 tools/check_words.py
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXEMPT = re.compile(
    r"LICENSE|bench/results/.*|tests/(golden|fuzz/corpus)/.*|tools/check_words\.py|tests/tools/check_words_test\.py"
)

IZE = "(optim|normal|initial|recogn|organ|minim|maxim|summar|serial|parallel|synchron|final|quant|special|general|util"
IZE += "|character|random|vector|standard|custom|prior|memor|penal|stabil|tabul|modern|token|regular)is(e[drs]?|ing)"
BRITISH = {  # what to find, in small letters -> what to write
    IZE: "-ize",
    IZE.replace("(e[drs]?|ing)", "ation"): "-ization",
    r"\brealis(e|ing|ation)": "realiz-",
    r"analys(e[drs]?\b|ing)": "analyze",
    r"colour": "color",
    r"neighbour": "neighbor",
    r"behaviour": "behavior",
    r"favour": "favor",
    r"flavour": "flavor",
    r"honour": "honor",
    r"labour": "labor",
    r"\bcentre": "center",
    r"\b(kilo|centi|milli)?metres?\b": "meter",
    r"fibre": "fiber",
    r"cancelled|cancelling": "canceled, canceling",
    r"labelled|labelling": "labeled, labeling",
    r"signalled|signalling": "signaled, signaling",
    r"travelled|travelling|traveller": "traveled, traveling, traveler",
    r"modelled|modelling": "modeled, modeling",
    r"levelled|levelling": "leveled, leveling",
    r"licence": "license",
    r"\b(de|of)fence": "defense, offense",
    r"artefact": "artifact",
    r"\bgrey": "gray",
    r"judgement": "judgment",
    r"\blearnt|\bburnt|\bspelt|\bspoilt": "learned, burned, spelled, spoiled",
    r"\bwhilst|\bamongst": "while, among",
    r"\btowards|\bafterwards": "toward, afterward",
    r"\bprogrammes?\b": "program",
    r"\bpractis(e[ds]?\b|ing)": "practice",
    r"catalogue": "catalog",
    r"\bfulfil\b": "fulfill",
}
COUNTED = "one|two|values?|bytes?|bits|spans|elements|logits|calls|counters|pixels|registers|threads|member|folder|line"
COUNTED += "|row|float|nats|ms|[KMG]i?B"
UNITS = "rank|step|bucket|parameter|channel|thread|image|class|GPU|side|request|iteration|epoch|flag|tensor|host|second"
UNITS += "|function|pixel"
UNCLEAR = {  # what to find -> what to write
    r"\bhangs? on (that|this|it|its|their|the number|`)": "depend on",
    r"makes use of": "uses",
    r"\b(images|steps|shards|iterations|one object|a graph) a (step|rank|second|line)\b": "per",
    rf"\b({COUNTED}) an? ({UNITS})\b": "per",
    r"(?<!of)_an?_(rank|step|batch)\b": "_per_",
    r"\bwhoever\b": "name the caller, the rank or the op",
    r"\banew\b": "again, or start over",
}
FRAGMENT = re.compile(r"\s*// ?(Of|What|The same)\b")  # as the first line of a comment


def spelling_problems(name: str, text: str) -> list[str]:
    small = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text).lower()  # VectorIsEnough is three words
    return [
        f"{name}:{small.count(chr(10), 0, match.start()) + 1}: {match[0]}: write {american}"
        for pattern, american in BRITISH.items()
        for match in re.finditer(pattern, small)
    ]


def wording_problems(name: str, text: str) -> list[str]:
    found = [
        f"{name}:{text.count(chr(10), 0, match.start()) + 1}: {match[0].strip()}: write {instead}"
        for pattern, instead in UNCLEAR.items()
        for match in re.finditer(pattern, text)
    ]
    if not name.endswith((".h", ".cuh")):
        return found
    lines = ["", *text.splitlines()]
    for number, (before, line) in enumerate(zip(lines, lines[1:]), 1):
        if FRAGMENT.match(line) and not before.lstrip().startswith("//"):
            found.append(f"{name}:{number}: a comment begins as a fragment: {line.strip()}")
    return found


def main() -> int:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    problems, files = [], 0
    for name in tracked:
        content = (ROOT / name).read_bytes()
        if EXEMPT.fullmatch(name) or b"\0" in content:
            continue
        files += 1
        text = content.decode(encoding="utf-8")
        problems += spelling_problems(name, name) + spelling_problems(name, text)
        problems += wording_problems(name, text)
    print("\n".join(problems) or f"{files} files are in plain American English")
    return 1 if problems or not files else 0


if __name__ == "__main__":
    sys.exit(main())
