#!/usr/bin/env python3
"""usage: tests/long/explore_faults.py [--lint] [--only PART_OF_TEXT]

Plants one fault at a time in the protocol of ranks that share memory and sees which test of test_explore finds an order
of accesses that shows it. The changed file is compiled with the sources that include it and linked into a program of
its own; build/release/bin/test_explore must be built. Writes tests/long/explore_faults.md, with the orders that the
program explores where nothing is planted.
--lint: the text of each fault still stands in its file once.
"""
import re
import shlex
import subprocess
import sys
from pathlib import Path

from planted_faults import ROOT, lint, plant_all, run

QUEUE, CONTROL, EXCHANGE = "comm/shared/call_queue.cpp", "comm/shared/control.h", "comm/shared/exchange.cpp"
CALLS, REDUCER, LIMIT = "comm/shared/shared_communicator.cpp", "comm/gradient_reducer.cpp", "comm/wait_limit.cpp"

# (file, text, replacement, what it is)
FAULTS = [
    (QUEUE, "% RankState::kRecords] = record;\n  state(rank_).posted.raise_to(call->number);",
     "% RankState::kRecords] = {};\n  state(rank_).posted.raise_to(call->number);\n"
     "  state(rank_).records[call->number % RankState::kRecords] = record;",
     "a call is entered before its record stands"),
    (QUEUE, "pending.target = call.number;", "pending.target = call.number - 1;",
     "a call begins before all entered it"),
    (QUEUE, "call.first_phase + need.phases", "call.first_phase", "a phase does not wait for the one before it"),
    (QUEUE, "      call.exchange->run(call.phases_done);\n      ++call.phases_done;\n"
     "      state(rank_).phase.raise_to(++phase_);",
     "      state(rank_).phase.raise_to(++phase_);\n      call.exchange->run(call.phases_done);\n"
     "      ++call.phases_done;",
     "a phase is called done before it is"),
    (QUEUE, "host_.size() - 1 : rank;", "host_.size() - 2 : rank;", "the last rank is not waited for"),
    (QUEUE, "  while (!counter.has_reached(pending.target)) {\n    check_alive(call);",
     "  while (!counter.has_reached(pending.target)) {", "nobody looks for lost peers"),
    (QUEUE, "if (left <= WaitLimit::Clock::duration::zero())", "if (left <= WaitLimit::Clock::duration::min())",
     "no deadline"),
    (QUEUE, "std::min<WaitLimit::Clock::duration>(left, kNap)", "left", "a sleeper does not look for lost peers"),
    (QUEUE, "        state(peer).phase.has_reached(call.first_phase + call.phases())) {\n      continue;",
     "        state(peer).phase.has_reached(call.first_phase + call.phases())) {",
     "a rank that ended after its part is called lost"),
    (QUEUE, "    if (state(peer).posted.has_reached(call.number) &&\n"
     "        state(peer).phase.has_reached(call.first_phase + call.phases())) {",
     "    if (state(peer).posted.has_reached(call.number)) {",
     "a rank that died within a sum is waited for"),
    (QUEUE, "    if (state(peer).posted.has_reached(call.number) &&\n", "    if (\n",
     "a rank that died before a call without phases is waited for"),
    (QUEUE, "if (const uint32_t blamed = theirs.blames.load(); blamed > 0)",
     "if (const uint32_t blamed = 0; blamed > 0)",
     "ranks that gave up are blamed"),
    (QUEUE, "if (host_.is_gone(rank)) return rank;", "", "a dead rank is taken to wait"),
    (QUEUE, "return counter.has_reached(target) ? rank : peer;", "return counter.has_reached(target), peer;",
     "a stopped rank is taken to wait for what is there"),
    (QUEUE, "culprits.push_back(root_culprit(peer));\n  }", "culprits.push_back(peer);\n  }",
     "ranks that wait are blamed"),
    (QUEUE, "  blame(culprits.front());\n", "", "a rank that lost a peer does not say whom it blames"),
    (QUEUE, "      if (!missing.empty()) blame(missing.front());\n", "",
     "a rank whose deadline passed does not say whom it blames"),
    (QUEUE, "  waits.target.store(pending.target);\n", "", "what a rank waits for is not told"),
    (QUEUE, "+ is_phase);", "+ 0 * is_phase);", "another counter is told"),
    (CONTROL, "    if (sleepers.load(std::memory_order_seq_cst) > 0) futex_wake_all(value);\n", "", "nobody is woken"),
    (CONTROL, "    value.store(target, std::memory_order_seq_cst);\n"
     "    if (sleepers.load(std::memory_order_seq_cst) > 0) futex_wake_all(value);\n",
     "    const bool wakes = sleepers.load(std::memory_order_seq_cst) > 0;\n"
     "    value.store(target, std::memory_order_seq_cst);\n    if (wakes) futex_wake_all(value);\n",
     "sleepers are looked for before the value stands"),
    (CONTROL, "    sleepers.fetch_add(1, std::memory_order_seq_cst);\n"
     "    const uint32_t seen = value.load(std::memory_order_seq_cst);\n"
     "    if (!reached(seen, target)) futex_wait(value, seen, at_most);\n",
     "    const uint32_t seen = value.load(std::memory_order_seq_cst);\n"
     "    if (!reached(seen, target)) {\n      futex_wait(value, seen, at_most);\n    }\n"
     "    sleepers.fetch_add(1, std::memory_order_seq_cst);\n",
     "a sleeper is not counted before it sleeps"),
    (CONTROL, "    if (!reached(seen, target)) futex_wait(", "    futex_wait(", "a rank sleeps although all is there"),
    (CONTROL, "static_cast<int32_t>(value - target) >= 0", "static_cast<int32_t>(value - target) > 0",
     "a counter must go beyond its target"),
    (CALLS, "halves_[staged_calls_++ % 2]", "halves_[staged_calls_++ % 1]", "one half of the staging memory"),
    (CALLS, "      if (rank_ == root) copy_bytes(half, bytes.data() + begin, count);\n      wait_for_all(record);\n",
     "      wait_for_all(record);\n      if (rank_ == root) copy_bytes(half, bytes.data() + begin, count);\n",
     "a broadcast is read before it is written"),
    (CALLS, "mine.data() + begin, count);\n      wait_for_all(record);", "mine.data() + begin, count);",
     "gathered values are read before they are written"),
    (CALLS, "      copy_bytes(halves[static_cast<size_t>(rank_)], sums, count);\n      wait_for_all(record);\n",
     "      copy_bytes(halves[static_cast<size_t>(rank_)], sums, count);\n",
     "counts are summed before they are written"),
    (CALLS, "copy_bytes(half, target.bytes() + begin, count);\n    std::vector", "std::vector",
     "a staged sum of what lay there"),
    (EXCHANGE, "return phase == 0 ? Need{} : Need{.rank = Need::kEverybody, .phases = 1};\n  }\n"
     "  void run(uint32_t) override {\n"
     "    std::vector<Tensor> slices;",
     "return phase == 0 ? Need{} : Need{};\n  }\n  void run(uint32_t) override {\n    std::vector<Tensor> slices;",
     "a tree's sum ends before the others wrote their slices"),
    (EXCHANGE, "phase == phases() ? right_of(context_.rank, context_.ranks())",
     "phase == phases() ? left_of(context_.rank, context_.ranks())",
     "a ring's sum ends before the right neighbor has read it"),
    (EXCHANGE, "return {.rank = neighbor, .phases = phase};",
     "return {.rank = neighbor, .phases = phase > 0 ? phase - 1 : 0};",
     "a ring's phase reads what the left neighbor has not written"),
    (EXCHANGE, "      return phase == 0 ? Need{} : Need{.rank = Need::kEverybody, .phases = 1};\n    }\n"
     "    return phase == 0 ? Need{.rank = 0",
     "      return Need{};\n    }\n    return phase == 0 ? Need{.rank = 0",
     "a star's sum ends before the others have read it"),
    (EXCHANGE, "return phase == 0 ? Need{.rank = 0, .phases = 1} : Need{};", "return Need{};",
     "a star's sum is read before it is written"),
    (REDUCER, ".any_said_yes = asks() && *answer(exchanges_.back().sums).data<float>() != 0",
     ".any_said_yes = asks() && options_.ask()", "each rank goes by its own answer"),
    (REDUCER, "if (options_.ask && bucket + 1 == buckets_.size())", "if (options_.ask && bucket == 0)",
     "the answer is put into the first bucket"),
    (LIMIT, "part == nullptr ? deadline : ", "true ? deadline : ", "a slow part has the ranks' deadline"),
    (LIMIT, "  warn_at_ = Clock::time_point::max();\n  return true;", "  return true;",
     "a slow part is told again and again"),
    (LIMIT, "lowest_that_waits(missing) != rank", "false", "a slow part is told by all ranks"),
]


def objects():
    """Each object of test_explore and the command that compiles it; and the command that links them."""
    lines = run(["ninja", "-t", "commands", "test_explore"]).stdout.strip().splitlines()
    compiled = [shlex.split(line) for line in lines if "test_explore.dir" in line and " -c " in line]
    return {command[command.index("-o") + 1]: command for command in compiled}, lines[-1]


def noticed_by(work, compiled, link, fault):
    file, text, replacement, _ = fault
    planted = False
    changed = work / file
    changed.parent.mkdir(parents=True, exist_ok=True)
    changed.write_text((ROOT / file).read_text().replace(text, replacement))
    for name, command in compiled.items():
        unit = Path(command[-1]).read_text()  # a source, or a file that includes some
        if file.endswith(".cpp") and command[-1] != str(ROOT / file) and str(ROOT / file) not in unit:
            continue
        made = work / Path(name).name
        command = [*command[:command.index("-c")], "-w", "-c", command[-1]]
        command[command.index("-o") + 1] = str(made)
        if command[-1] == str(ROOT / file):
            command[-1] = str(changed)
        elif file.endswith(".cpp"):
            command[-1] = str(work / "unit.cpp")
            Path(command[-1]).write_text(unit.replace(str(ROOT / file), str(changed)))
        else:
            command.insert(command.index(next(word for word in command if word.startswith("-I"))), f"-I{work}")
        done = run(command)
        if done.returncode != 0:
            sys.exit(f"{fault[3]}: {done.stderr}")
        link, planted = link.replace(f" {name} ", f" {made} "), True
    if not planted:
        sys.exit(f"{fault[3]}: no object of test_explore is made from {file}")
    program = work / "test_explore"
    done = run(link.replace("-o bin/test_explore", f"-o {program}"), shell=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    try:
        tests = run([program, "--gtest_fail_fast"], timeout=300)
    except subprocess.TimeoutExpired:
        return "no end"
    changed.unlink()
    if tests.returncode == 0:
        return None
    failed = re.findall(r"^\[  FAILED  \] ([\w./]+)", tests.stdout, re.M)
    begun = re.findall(r"^\[ RUN      \] ([\w./]+)", tests.stdout, re.M)
    return (failed or begun)[0 if failed else -1]


def explored():
    """A table of what test_explore explores without a fault, which must pass."""
    said = run([ROOT / "build/release/bin/test_explore"])
    if said.returncode != 0:
        sys.exit("test_explore fails without a fault")
    sums = {}
    for what, ranks, orders, accesses in re.findall(r"(.*), (\d) ranks: (\d+) orders of (\d+) accesses", said.stdout):
        one = sums.setdefault((what, ranks), [0, 0])
        one[0], one[1] = one[0] + int(orders), one[1] + int(accesses)
    rows = [f"| {what} | {ranks} | {orders:,} | {accesses:,} |" for (what, ranks), (orders, accesses) in sums.items()]
    return ("\n## Orders explored without a fault\n\nNo test failed.\n\n| what | ranks | orders | accesses |\n"
            "|---|---|---|---|\n" + "\n".join(rows) + "\n")


def main():
    if "--lint" in sys.argv:
        return lint(FAULTS, 30)
    compiled, link = objects()
    status = plant_all(FAULTS, lambda work, fault: noticed_by(work, compiled, link, fault),
                       "Faults planted in the protocol of ranks")
    if "--only" not in sys.argv:
        with open(ROOT / "tests/long/explore_faults.md", "a") as table:
            table.write(explored())
    return status


if __name__ == "__main__":
    sys.exit(main())
