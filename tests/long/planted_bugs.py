"""One bug for each fuzz target, which tests/long/fuzz.py --planted has to find.

usage: tests/long/planted_bugs.py: each target has one, and its text still stands in its file once.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# target: (file, text, replacement, what it is)
PLANTED = {
    "safetensors": (
        "core/safetensors_header.cpp",
        'if (entry_.offsets->size() != 2) return fail("tensor `{}`: not two offsets", name_);',
        "",
        "offsets are read that are not there",
    ),
    "torch_file": (
        "data/torch_file/zip_reader.cpp",
        "refuse(fmt::format(\"its '{}' is not where the directory says\", printable(name)));",
        "refuse(fmt::format(\"its '{}' is not where the directory says\", name));",
        "control characters of a name reach the terminal",
    ),
    "flight": (
        "trainers/flight/flight_verdict.cpp",
        'return printable(text) + (is_cut ? "..." : "");',
        'return std::string(text) + (is_cut ? "..." : "");',
        "control characters of a record reach the terminal",
    ),
    "torch_pickle": (
        "data/torch_file/pickle_reader.cpp",
        'if (marks_.empty()) damaged("a mark is missing");',
        "",
        "the last mark of none",
    ),
    "idx": ("data/idx.cpp", "if (image_file.extents[0] != label_file.extents[0]) {", "if (false) {",
            "fewer images than labels"),
    "cifar10": (
        "data/cifar10.cpp",
        "if (label > 9) {",
        "static std::array<int, 10> counts{};\n      if (++counts[label] < 0) {",
        "labels counted before they are checked",
    ),
    "image": (
        "data/codecs/png.cpp",
        "if (count > source->file.size() - source->position) {",
        "if (source->position > source->file.size()) {",
        "a PNG file is read beyond its end",
    ),
    "class_folders": (
        "data/class_folders.cpp",
        'fmt::format("{} {} has no images", what, printable(folder.string()))',
        'fmt::format("{} {} has no images", what, folder.string())',
        "control characters of a folder's name reach the terminal",
    ),
    "options": (
        "trainers/options/parser.cpp",
        "if (next_ + 1 >= arguments_.size() || !parse_int(arguments_[next_ + 1])) return;",
        "if (!parse_int(arguments_[next_ + 1])) return;",
        "the argument after the last one",
    ),
    "config": (
        "trainers/options/config_file.cpp",
        "if (end >= text_.size() || text_[end] != mark) refuse(",
        "if (text_[end] != mark) refuse(",
        "what comes after a backslash that ends the file",
    ),
    "run_record": (
        "trainers/report/run_record.cpp",
        "catch (const std::logic_error&) {",
        "catch (const std::domain_error&) {",
        "std::stoull's exceptions are not caught",
    ),
    "metrics": (
        "trainers/page/run_curves.cpp",
        '!json.at("split").is_string() ||',
        "",
        "a number read as text",
    ),
    "plans": (
        "trainers/planner/plan_file.cpp",
        '.workspace_bytes = found.at("workspace_bytes")',
        '.workspace_bytes = found["workspace_bytes"]',
        "a key that is not there",
    ),
    "checkpoint_record": (
        "trainers/checkpoint/checkpoint_record.cpp",
        "catch (const FileJson::exception&) {",
        "catch (const FileJson::out_of_range&) {",
        "what is no JSON is not refused",
    ),
    "trace": ("trainers/timeline/read_trace.cpp", "if (steps.empty()) return {};", "", "the usual one of no steps"),
    "fault": (
        "trainers/debug/planted_fault.cpp",
        "if (at_end()) return std::nullopt;",
        "",
        "the word after the last one",
    ),
    "events": (
        "trainers/report/event_file.cpp",
        "if (size > file.size() - kHead - kTail) return std::nullopt;",
        "",
        "an event that is cut off",
    ),
    "tcp_introduction": (
        "comm/tcp/rank_listener.cpp",
        "if (connection.hello.key != key_)",
        "if (connection.hello.key > key_)",
        "connections with a smaller key are accepted",
    ),
    "tcp_answer": (
        "comm/tcp/join_meeting.cpp",
        "return reply.bytes == sizeof(uint64_t) + static_cast<size_t>(size) * sizeof(RankAddress);",
        "return reply.bytes <= sizeof(uint64_t) + static_cast<size_t>(size) * sizeof(RankAddress);",
        "a table with fewer ranks",
    ),
    "meeting_place": (
        "comm/meeting_place.cpp",
        'if (!url.starts_with(kTcp)) throw refuse("it begins with neither tcp:// nor file://");',
        "",
        "a URL shorter than its beginning",
    ),
    "handshake": (
        "comm/handshake.cpp",
        'if (field.empty()) return "nothing in its place";',
        "",
        "the first letter of an empty field",
    ),
}


def target_names() -> set[str]:
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "tests/fuzz").glob("*_targets.cpp")]
    return set(re.findall(r'\{"(\w+)", \w+, \w+\},', "".join(texts)))


def plant(tree: Path) -> None:
    for file, text, replacement, _ in PLANTED.values():
        source = (tree / file).read_text(encoding="utf-8")
        (tree / file).write_text(source.replace(text, replacement), encoding="utf-8")


def main() -> int:
    lost = [target for target, (file, text, *_) in PLANTED.items()
            if (ROOT / file).read_text(encoding="utf-8").count(text) != 1]
    without = sorted(target_names() ^ PLANTED.keys())
    if lost:
        print(f"not in their files once: {' '.join(lost)}")
    if without:
        print(f"no planted bug, or no such target: {' '.join(without)}")
    if not lost and not without:
        print(f"{len(PLANTED)} bugs can be planted, one for each target")
    return 1 if lost or without else 0


if __name__ == "__main__":
    sys.exit(main())
