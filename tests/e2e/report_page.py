#!/usr/bin/env python3
"""Checks the pages that trainings and `lockstep report` write: figures, escaping, size, no external resources.

usage: tests/e2e/report_page.py BIN_DIR
"""

import fcntl
import json
import re
import shutil
import subprocess
import sys
import tempfile
from html.parser import HTMLParser
from pathlib import Path

BIN = Path(sys.argv[1]).resolve()
EVIL = "<script>&\"' \x1b[31m"  # a folder's name
FETCHING = {"src", "href", "srcset", "data", "action", "poster", "background", "xlink:href", "formaction"}
VOID = {"meta", "br", "img"}


class Page(HTMLParser):
    """Checks while parsing that the page uses no other files and that its elements are closed in order."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.words: list[str] = []
        self.images: list[str] = []
        content = path.read_bytes()
        assert len(content) < 2_000_000, f"{path} has {len(content)} bytes"
        self.feed(content.decode("utf-8"))
        assert not self.open, f"not closed: {self.open}"
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attrs):
        assert tag not in {"script", "link", "iframe", "object", "embed", "base", "form"}, tag
        self.tags.append(tag)
        for name, value in attrs:
            assert not name.startswith("on"), f"<{tag} {name}>"
            if name in FETCHING:
                assert value.startswith("data:image/png;base64,"), f"<{tag} {name}={value[:60]}>"
                self.images.append(value)
            assert not re.search(r"url\((?!#)|https?:|//", value or "") or name in FETCHING, f"<{tag} {name}={value}>"
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, f"</{tag}> out of order"

    def handle_data(self, data):
        if self.open and self.open[-1] == "style":
            assert not re.search(r"@import|url\(|https?:", data)
            return
        self.words.append(data)

    def has(self, *texts: str) -> None:
        for text in texts:
            assert text in self.text, f"the page lacks {text!r}:\n{self.text[:3000]}"


def run(*command: str, code: int = 0, cwd: Path) -> str:
    done = subprocess.run([str(BIN / command[0]), *command[1:]], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == code, f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def train(folder: str, *more: str, cwd: Path) -> str:
    return run("train_convnet", "--max-steps", "12", "--print-freq", "2", "-o", folder, *more, cwd=cwd)


def check_figures(path: Path) -> Page:
    """The figures of the page must be those of run.json and metrics.jsonl."""
    record = json.loads((path / "run.json").read_text())
    page = Page(path / "report.html")
    final, plan = record["final"], record["run"]
    page.has(f"{final['acc1']:.2f} %", f"{final['correct']:,} of {final['total']:,} test images")
    page.has(f"{final['loss']:.4f}", f"{int(final['images_per_s']):,} images/s")
    page.has(f"digest of the weights {record['digest']}", f"digest of the data {record['data_digest']}")
    page.has(f"images per step {plan['global_batch']}", f"shards {plan['shards']}")
    page.has(f"same bits on {', '.join(map(str, plan['same_bits_on']))} ranks")
    page.has(f"may be resumed on 1 to {plan['shards']} ranks")
    for name, version in record["versions"].items():
        page.has(f"{name} {version}")
    for name, flag in record["flags"].items():
        page.has(f"--{name} {flag['value']}".strip().replace("\x1b", r"\x1b"))
    steps = sum(entry["steps"] for entry in record["step_times"])
    page.has(f"{steps} steps of rank 0", "half ", "99 % ")
    assert all(rank["peak_bytes"] > 10_000_000 and rank["cores"] > 0 for rank in record["ranks"]), record["ranks"]
    mistakes = json.loads((path / "mistakes.json").read_text())
    assert sum(mistakes["confusion"]) == final["total"], mistakes["confusion"]
    assert sum(mistakes["confusion"][:: mistakes["classes"] + 1]) == final["correct"], mistakes["confusion"]
    for wrong in mistakes["worst"]:
        page.has(f"{wrong['label']} taken for {wrong['predicted']}")
        page.has(f"image {wrong['index']:,}, loss {wrong['loss']:.2f}")
    assert len(page.images) == 10 and page.images == [f"data:image/png;base64,{w['png']}" for w in mistakes["worst"]]
    return page


def check_refusals(work: Path) -> None:
    said = run("lockstep", "report", "nowhere", code=5, cwd=work)
    assert "there is no run in nowhere" in said, said
    (work / "broken").mkdir()
    for text, words in {
        "{": "it is not a JSON object",
        '{"schema_version": 99}': "its schema_version is 99, this program reads 1",
        '{"schema_version": 1, "argv": []}': "flags",
    }.items():
        (work / "broken" / "run.json").write_text(text)
        said = run("lockstep", "report", "broken", code=3, cwd=work)
        assert words in said and said.count("\n") == 3, said


def check_no_room(work: Path) -> None:
    """A report that cannot be written gives an error of three lines and leaves the previous page."""
    before = (work / "plain" / "report.html").read_bytes()
    command = 'ulimit -f 1; exec "$0" report plain'
    done = subprocess.run(["bash", "-c", command, str(BIN / "lockstep")], cwd=work, capture_output=True, text=True)
    assert done.returncode == 5 and done.stderr.count("\n") == 3 and "File too large" in done.stderr, done.stderr
    said = run("lockstep", "report", "plain", "-o", "plain/run.json/page.html", code=5, cwd=work)
    assert said.count("\n") == 3, said
    assert (work / "plain" / "report.html").read_bytes() == before


def check_lists(work: Path) -> None:
    """Checks `lockstep runs` and `compare`. The run in folder `broken` is unreadable; a lock makes one look alive."""
    record = json.loads((work / "plain" / "run.json").read_text())
    (work / "killed").mkdir()
    record |= {"end": None, "exit_code": None, "final": None, "digest": None, "start": "2020-01-01T00:00:00Z"}
    (work / "killed" / "run.json").write_text(json.dumps(record))
    said = run("lockstep", "runs", ".", cwd=work)
    lines = said.splitlines()
    assert "\x1b" not in said and "<script>&\"' \\x1b[31m" in lines[2], said  # the older of the two runs
    assert lines[1].startswith("plain ") and " done " in lines[1] and "12" in lines[1], said
    assert re.match(r"killed +killed +2020-01-01T00:00:00Z +convnet +1 +0 +- +- +0 s", lines[3]), said
    assert lines[4].startswith("broken  cannot be read: "), said
    with open(work / "killed" / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert re.search(r"killed +running ", run("lockstep", "runs", ".", "--sort", "name", cwd=work))
    said = run("lockstep", "runs", ".", "--sort", "shape", code=2, cwd=work)
    assert "--sort" in said and "shape" in said, said
    said = run("lockstep", "compare", "plain", EVIL, cwd=work)
    digests = [json.loads((work / name / "run.json").read_text())["digest"] for name in ("plain", EVIL)]
    assert re.search(rf"weights +{digests[0]} +{digests[1]}\n", said), said
    assert "--parallel" in said and "bits: the final weights differ" in said and "\x1b" not in said, said
    assert "bits: the same final weights" in run("lockstep", "compare", "plain", "plain", cwd=work)
    assert "bits: not known" in run("lockstep", "compare", "plain", "killed", cwd=work)


def main() -> None:
    work = Path(tempfile.mkdtemp())
    try:
        said = train(EVIL, "--parallel", "dp", "--devices", "2", cwd=work)
        assert "report  " in said, said
        page = check_figures(work / EVIL)
        page.has("<script>&\"' \\x1b[31m", "rank 1", "bucket 1", "2 ranks")
        assert page.tags.count("svg") >= 7, page.tags
        train("plain", "--lr", "0.01", "--no-report", cwd=work)
        assert not (work / "plain" / "report.html").exists()
        run("lockstep", "report", "plain", cwd=work)
        assert not (work / "plain" / "mistakes.json").exists()
        assert not Page(work / "plain" / "report.html").images
        train("plain", "--lr", "0.01", "--overwrite", cwd=work)
        check_figures(work / "plain")
        run("lockstep", "report", "plain", EVIL, "-o", "both.html", cwd=work)
        Page(work / "both.html").has("2 runs side by side", "--lr 0.01 0.02", "<script>")
        check_no_room(work)
        (work / "plain" / "report.html").unlink()
        (work / "plain" / "report.html").mkdir()  # cannot be replaced by a file
        said = train("plain", "--overwrite", cwd=work)
        assert "lockstep: warning: there is no report" in said, said
        check_refusals(work)
        check_lists(work)
    finally:
        shutil.rmtree(work)
    print("pages of 1 and 2 runs agree with their runs and need nothing else")


main()
