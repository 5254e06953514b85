"""Fails when a function or a class outgrows its limit: 60 lines, 6 parameters; 12 data members.

usage: python3 tools/check_limits.py
Reads the C++ sources but those of tests and benchmarks. The lines of a lambda are those of the function around it.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("core", "kernels", "nn", "comm", "data", "trainers", "inspect", "engine")
LINES, PARAMETERS, MEMBERS = 60, 6, 12
LISTS = ("Options", "Settings", "Request", "Metrics", "Plan", "Record")  # one member per setting, column or row
EXEMPT = (
    # One member per function of the library.
    "kernels/support/cublaslt/api.h", "kernels/support/cudnn/api.h", "comm/nccl/api.h",
)  # fmt: skip

NOT_CODE = re.compile(
    r'R"\(.*?\)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|//[^\n]*|/\*.*?\*/|^[ \t]*\#(?:[^\\\n]|\\.)*',
    re.DOTALL | re.MULTILINE,
)
TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.']*|::|->|<=>|[<>=!]=|\S")
NAME = re.compile(r"[A-Za-z_]\w*")
PAIRS = {"(": ")", "[": "]", "{": "}"}
# In front of parentheses that are no parameter list.
SPECIFIERS = {"alignas", "decltype", "noexcept", "explicit", "requires", "__align__", "__launch_bounds__"}


def tokens_of(text: str) -> list[tuple[str, int]]:
    """The tokens with their line numbers. A literal becomes a 0."""

    def blank(found: re.Match) -> str:
        return ("0" if found[0][0] in "R\"'" else "") + "\n" * found[0].count("\n")

    text = NOT_CODE.sub(blank, text)
    return [
        (match[0], number)
        for number, line in enumerate(text.split("\n"), 1)
        for match in TOKEN.finditer(line)
    ]


class Source:
    def __init__(self, name: str, text: str) -> None:
        self.name, self.problems = name, []
        found = tokens_of(text)
        self.text = [token for token, _ in found]
        self.line = [line for _, line in found]
        self.read_scope(0, len(self.text))

    def check(self, what: str, at: int, count: int, limit: int, unit: str) -> None:
        if count > limit:
            self.problems.append(f"{self.name}:{self.line[at]}: {what}: {count} {unit}, {limit} allowed")

    def end_of(self, at: int) -> int:
        """The index of the bracket that closes the one at `at`; `at` itself for a `<` that compares."""
        opens = self.text[at]
        if opens != "<":
            depth = 0
            for i in range(at, len(self.text)):
                depth += (self.text[i] == opens) - (self.text[i] == PAIRS[opens])
                if depth == 0:
                    return i
            raise ValueError(f"{self.name}:{self.line[at]}: {opens} is never closed")
        i = at + 1
        while self.text[i] not in (">", ";", ")", "{", "]", "}"):
            i = self.end_of(i) + 1 if self.text[i] in ("(", "[", "<") else i + 1
        return i if self.text[i] == ">" else at

    def list_length(self, opens: int) -> int:
        """The number of items in the parentheses at `opens`."""
        i, end, commas = opens + 1, self.end_of(opens), 0
        if i == end or self.text[i:end] == ["void"]:
            return 0
        while i < end:
            commas += self.text[i] == ","
            i = self.end_of(i) + 1 if self.text[i] in ("(", "[", "{", "<") else i + 1
        return commas + 1

    def read_scope(self, at: int, end: int) -> int:
        """Reads the declarations of a namespace or a class; returns the number of variables."""
        variables = 0
        while at < end:
            at, count = self.read_declaration(at)
            variables += count
        return variables

    def read_declaration(self, at: int) -> tuple[int, int]:
        """Returns the index after the declaration, and the number of variables that it declares."""
        first, second = self.text[at], self.text[min(at + 1, len(self.text) - 1)]
        if first == ";":
            return at + 1, 0
        if first in ("public", "private", "protected"):
            return at + 2, 0
        if first in ("template", "["):
            return self.read_declaration(self.end_of(at + (first == "template")) + 1)
        if first in ("namespace", "extern") and "{" in self.text[at : at + 9]:
            body = self.text.index("{", at)
            self.read_scope(body + 1, self.end_of(body))
            return self.end_of(body) + 1, 0
        if second == "(" and re.fullmatch(r"[A-Z][A-Z0-9_]+", first):  # a macro that declares
            behind = self.end_of(at + 1) + 1
            if self.text[behind] not in ("{", ";"):
                return behind, 0
        return self.read_entity(at)

    def read_entity(self, at: int) -> tuple[int, int]:
        is_class = is_enum = has_value = False
        parameters, variables, i, name = None, 1, at, ""
        while self.text[i] != ";":
            text, before = self.text[i], self.text[i - 1]
            if text in ("class", "struct", "union") and parameters is None:
                is_class, name = not has_value and not is_enum, self.class_name(i + 1)
            elif text == "enum":
                is_enum = True
            elif text == "=" and before != "operator":
                has_value = True
            elif text == ",":
                variables += 1
            elif text == "<" and NAME.fullmatch(before) and before != "operator" and not has_value:
                i = self.end_of(i)
            elif text == "[":
                i = self.end_of(i)
            elif text == "(":
                is_list = before not in SPECIFIERS and before != "operator" and parameters is None
                if is_list and (not has_value or self.text[at] == "using"):
                    parameters, is_class = i, False
                i = self.end_of(i)
            elif text == "{":
                if is_class and not has_value:
                    members = self.read_scope(i + 1, self.end_of(i))
                    if not name.endswith(LISTS):
                        self.check(f"class {name}", at, members, MEMBERS, "data members")
                    return self.end_of(i) + 1, 0
                if parameters is not None and not has_value and not self.initializes_member(parameters, i):
                    self.check_function(at, parameters, self.end_of(i))
                    return self.end_of(i) + 1, 0
                i = self.end_of(i)
            i += 1
        if parameters is not None:
            self.check_function(at, parameters, i)
        none = {"using", "typedef", "friend", "static", "static_assert", "constexpr"}
        is_variable = parameters is None and not is_class and not is_enum and self.text[at] not in none
        return i + 1, variables if is_variable else 0

    def class_name(self, at: int) -> str:
        while self.text[at + 1] == "::":
            at += 2
        return self.text[at]

    def initializes_member(self, parameters: int, brace: int) -> bool:
        """Whether the brace belongs to a constructor's initializer list."""
        i, has_list = self.end_of(parameters) + 1, False
        while i < brace:
            has_list = has_list or self.text[i] == ":"
            i = self.end_of(i) + 1 if self.text[i] in PAIRS else i + 1
        return has_list and self.text[brace - 1] not in (")", "}")

    def check_function(self, at: int, parameters: int, last: int) -> None:
        name = self.text[at + 1 if self.text[at] == "using" else parameters - 1]
        self.check(name, at, self.list_length(parameters), PARAMETERS, "parameters")
        self.check(name, at, self.line[last] - self.line[at] + 1, LINES, "lines")


def problems_of(name: str, text: str) -> list[str]:
    return Source(name, text).problems


def main() -> int:
    suffixes = {".h", ".cpp", ".cu", ".cuh"}
    paths = [p for folder in FOLDERS for p in sorted((ROOT / folder).rglob("*")) if p.suffix in suffixes]
    names = [p.relative_to(ROOT).as_posix() for p in paths]
    names = [name for name in names if not name.startswith(EXEMPT)]
    problems = [p for name in names for p in problems_of(name, (ROOT / name).read_text(encoding="utf-8"))]
    print("\n".join(problems) or f"{len(names)} files keep the limits")
    return 1 if problems or not names else 0


if __name__ == "__main__":
    sys.exit(main())
