"""Fails if .devcontainer/devcontainer.json is no JSON, has an unknown key, or names a file that does not exist.

usage: python3 tools/check_devcontainer.py

No validator of this format is packaged for Debian; the keys are a part of containers.dev's reference. The system must
be the Dockerfile's, whose images are the slim ones.
"""

import json
import os
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILE = ".devcontainer/devcontainer.json"
COMMANDS = ("onCreateCommand", "postCreateCommand")
KEYS = {"name", "image", "customizations", *COMMANDS}


def problems_of_command(command: str, presets: set[str]) -> list[str]:
    script = command.split()[0]
    if script.startswith("scripts/"):
        return [] if os.access(ROOT / script, os.X_OK) else [f"{script} is no program"]
    preset = re.fullmatch(r"cmake --preset (\S+)", command)
    if not preset:
        return [f'"{command}" is neither a script of ours nor cmake --preset NAME']
    return [] if preset[1] in presets else [f"CMakePresets.json has no preset {preset[1]}"]


def problems_of(text: str) -> list[str]:
    try:
        container = json.loads(text)
    except ValueError as error:
        return [f"no JSON: {error}"]
    problems = [f"unknown key {key}" for key in sorted(set(container) - KEYS)]
    if f"\nFROM {container.get('image')}-slim\n" not in (ROOT / "Dockerfile").read_text(encoding="utf-8"):
        problems.append(f"image {container.get('image')}: the Dockerfile ends on another one")
    configured = json.loads((ROOT / "CMakePresets.json").read_text(encoding="utf-8"))["configurePresets"]
    presets = {preset["name"] for preset in configured if not preset.get("hidden")}
    for key in COMMANDS:
        problems += [f"{key}: {problem}" for problem in problems_of_command(container.get(key, ""), presets)]
    return problems


def main() -> int:
    problems = problems_of((ROOT / FILE).read_text(encoding="utf-8"))
    print("\n".join(f"{FILE}: {problem}" for problem in problems) or f"{FILE} names what is there")
    return 1 if problems else 0


sys.exit(main())
