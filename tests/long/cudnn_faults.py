#!/usr/bin/env python3
"""usage: tests/long/cudnn_faults.py [--lint] [--only PART_OF_TEXT]

Plants one fault at a time in the host code around cuDNN and sees which test notices, over the emulated machine's cuDNN.
A changed source is compiled with its unit and linked ahead of the libraries of build/release, whose test_cuda_fast and
test_emulated_train must be built. Writes tests/long/cudnn_faults.md.
--lint: the text of each fault still stands in its file once.
"""
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from planted_faults import BUILD, ROOT, lint, plant_all, run

CONV, PLAN, GRAPH = "kernels/conv/conv2d_cudnn.cpp", "kernels/conv/cudnn_plan.cpp", "kernels/conv/cudnn_graph.cpp"
TARGET = "kernels/support/cudnn/target.cpp"

# (file, text, replacement, what it is)
FAULTS = [
    (GRAPH,
     "shape.stride0(), 1, shape[1] * shape[3], shape[1]}",
     "shape.stride0(), 1, shape[1] * shape[2], shape[1]}",
     "rows as long as columns"),
    (GRAPH,
     "{shape.stride0(), 1, shape[1] * shape[3], shape[1]}",
     "{shape.stride0(), shape[2] * shape[3], shape[3], 1}",
     "NCHW strides"),
    (GRAPH, "shape[1] * shape[3], shape[1]}", "shape[1], shape[1] * shape[2]}", "axes H and W swapped"),
    (GRAPH, "{params.stride_h, params.stride_w}", "{params.stride_w, params.stride_h}", "strides swapped"),
    (GRAPH, "{params.pad_h, params.pad_w}", "{params.pad_w, params.pad_h}", "pads swapped"),
    (GRAPH, "dilations = {1, 1}", "dilations = {params.stride_h, params.stride_w}", "dilation is the stride"),
    (GRAPH,
     "CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, strides",
     "CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, dilations",
     "the stride is the dilation"),
    (GRAPH,
     "CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, pads",
     "CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, dilations",
     "another padding at the end"),
    (GRAPH,
     "CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT",
     "CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_HALF",
     "sums in f16"),
    (GRAPH, "CUDNN_CROSS_CORRELATION", "CUDNN_CONVOLUTION", "filters turned round"),
    (GRAPH, "kTensorAlignment = 16", "kTensorAlignment = 256", "more alignment promised than there is"),
    (GRAPH, ".set(names.beta, 0.0F)", ".set(names.beta, 1.0F)", "the result is added to"),
    (GRAPH, ".set(names.alpha, 1.0F)", ".set(names.alpha, 2.0F)", "the result is doubled"),
    (GRAPH, "return CUDNN_DATA_BFLOAT16", "return CUDNN_DATA_HALF", "bf16 read as f16"),
    (GRAPH,
     "operations.push_back(pointwise_operation(CUDNN_POINTWISE_MUL, in, &scale, scaled));",
     "operations.push_back(pointwise_operation(CUDNN_POINTWISE_ADD, in, &scale, scaled));",
     "the scale is added"),
    (GRAPH, "scaled, &shift, shifted", "scaled, &scale, shifted", "the scale for the shift"),
    (GRAPH,
     "CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC, tensor(kSums,",
     "CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC, tensor(kSquareSums,",
     "squares for sums"),
    (GRAPH,
     "operations.push_back(sums_operation(out, out_shape[1]))",
     "operations.push_back(sums_operation(in, out_shape[1]))",
     "sums of the input"),
    (GRAPH,
     "const Descriptor bias = by_channel(kBias, out_shape[1])",
     "const Descriptor bias = by_channel(kBias, problem.in[1])",
     "a bias of as many as input channels"),
    (GRAPH,
     "tensor(kWeight, problem.weight, {.dtype = problem.dtype})",
     "tensor(kWeight, problem.weight, {.dtype = Dtype::kF32})",
     "weights of another type"),
    (PLAN,
     "put(true, kWeight, memory.weight)",
     "put(true, kWeight, memory.in)",
     "a stale variant pack: the input for the weights"),
    (PLAN, "put(has_bias_, kBias, memory.bias)", "put(false, kBias, memory.bias)", "no bias in the variant pack"),
    (PLAN,
     "put(gives_sums_, kSums, memory.sums)",
     "put(gives_sums_, kSums, memory.square_sums)",
     "one row for both sums"),
    (PLAN,
     "put(norms_in_, kInScale, memory.in_scale)",
     "put(norms_in_, kInScale, memory.in_shift)",
     "the shift's row for the scale's"),
    (PLAN, "note == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC ||", "", "engines with sums in any order"),
    (PLAN, "note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS ||", "", "engines that round inputs"),
    (PLAN, " && dtype == Dtype::kF32", " && dtype != dtype", "engines with TF32"),
    (PLAN, "note == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION ||", "", "engines with half sums"),
    (PLAN,
     "return made->workspace_bytes() <= most_workspace ? std::move(made) : nullptr",
     "return made",
     "workspace without a limit"),
    (PLAN,
     'text += fmt::format(" {}:{}", static_cast<int>(type), value);',
     'text += fmt::format(" {}", static_cast<int>(type + 0 * value));',
     "an engine's knob lost"),
    (PLAN,
     "if (!plan.try_finalize()) return nullptr;",
     "plan.finalize();",
     "an engine that takes no plan ends the run"),
    (PLAN,
     "if (target.handle() != nullptr) plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, target.handle());",
     "",
     "a plan without its handle"),
    (PLAN, "if (choice_of(config) == choice) plan", "plan", "any engine for the chosen one"),
    (CONV,
     "return make_plan(target, shard, kMaxWorkspace);",
     "return make_plan(target, problem, kMaxWorkspace);",
     "a plan of the whole batch for a shard"),
    (CONV,
     "plans.largest([](const ConvolutionPlan& plan) { return plan.workspace_bytes(); })",
     "plans.largest([](const ConvolutionPlan& plan) { return plan.workspace_bytes() / 2; })",
     "workspace too small"),
    (CONV, "in_ = workspace_ + scratch;", "in_ = workspace_;", "staged input in the plan's workspace"),
    (CONV, "weight_ = in_ + in_bytes;", "weight_ = in_;", "weights staged over the input"),
    (CONV, "bias_ = weight_ + weight_bytes;", "bias_ = weight_;", "a bias staged over the weights"),
    (CONV, "if (!from.defined() || problem_.dtype == Dtype::kF32)", "if (true)", "a bias that is not converted"),
    (CONV, "return is_padded() ? in_ : to;", "return to;", "a padded gradient written to the narrow one"),
    (CONV, "    if (!is_padded()) return;\n", "    return;\n", "a padded gradient not converted back"),
    (CONV,
     "return is_direct() ? static_cast<void*>(leaf) : weight_;",
     "return static_cast<void*>(leaf);",
     "a gradient of 16 bits written as f32"),
    (CONV, "    if (is_direct()) return;\n", "    return;\n", "a staged gradient not converted back"),
    (CONV,
     "const int64_t at = (which * shape[1] + k) * shape[2];",
     "const int64_t at = (which * shape[1]) * shape[2];",
     "the first shard's affine row for all"),
    (CONV,
     "memory.in_shift = row(affine, 1);",
     "memory.in_shift = row(affine, 0);",
     "the scale's row for the shift's"),
    (CONV, "memory.square_sums = row(sums, 1);", "memory.square_sums = row(sums, 0);", "sums and squares in one row"),
    (CONV, "      neighbors.zero_sums(stream, k);\n", "", "zero_sums forgotten"),
    (CONV,
     "for (const int64_t row : {k, shape[1] + k})",
     "for (const int64_t row : {k})",
     "squares of an empty shard not zeroed"),
    (CONV,
     "if (images == 0) {\n      Tensor leaf = args.grad_weight.slice(k, 1);\n      cuda::fill(stream, 0.0F, leaf);",
     "if (images == 0) {",
     "leaf of an empty shard not zeroed"),
    (CONV,
     "shard_rows(args.grad_out, shards, k)",
     "shard_rows(args.grad_out, shards, 0)",
     "the gradient of another shard"),
    (CONV,
     "if (grad_bias.defined()) cuda::add_bias_backward",
     "if (false) cuda::add_bias_backward",
     "the bias gets no gradient"),
    (TARGET, "check(api().set_stream(target.handle(), stream.cuda()), \"a stream\");", "", "the wrong stream"),
]

PROGRAMS = [("test_cuda_fast", "*CudaConv2d*", {}),
            ("test_cuda_fast", "*CudaConv2d*", {"LOCKSTEP_EMULATION_STREAMS": "random:3"}),
            ("test_emulated_train", "OverCudnn.Steps*:OverCudnn.Engines*:OverCudnn.Fused*", {})]


def last_command(target):
    return run(["ninja", "-t", "commands", target]).stdout.strip().splitlines()[-1]


def compile_commands():
    """Each source with the joined unit that holds it, and that unit's command: callers are compiled with it, since
    they may hold its functions inline."""
    found = {}
    targets = run(["ninja", "-t", "targets", "all"]).stdout
    objects = re.findall(r"^(\S*lockstep_kernels_parts\.dir/\S+\.o):", targets, re.M)
    for target in objects:
        command = last_command(target)
        unit = Path(shlex.split(command)[-1])
        text = unit.read_text() if "Unity" in str(unit) else f'#include "{unit}"\n'
        for source in re.findall(r'#include "(\S+\.cpp)"', text):
            found[str(Path(source).relative_to(ROOT))] = (text, command)
    return found


def noticed_by(work, compiled, links, fault):
    file, text, replacement, _ = fault
    source, unit = work / "fault.cpp", work / "unit.cpp"
    source.write_text((ROOT / file).read_text().replace(text, replacement))
    unit_text, command_text = compiled[file]
    unit.write_text(unit_text.replace(str(ROOT / file), str(source)))
    command = shlex.split(command_text)
    command[-1] = str(unit)
    command[command.index("-o") + 1] = str(work / "fault.o")
    command += ["-Wno-error", "-w"]
    if run(command).returncode != 0:
        return "the compiler"
    for program, filter_, environment in PROGRAMS:
        binary = BUILD / "bin" / f"{program}_fault"
        linked = re.sub(rf"-o bin/{program}\b", f"-o {binary} {work}/fault.o -Wl,--allow-multiple-definition",
                        links[program])
        done = run(linked, shell=True)
        if done.returncode != 0:
            sys.exit(done.stderr)
        try:
            tests = run([binary, "--gtest_fail_fast", f"--gtest_filter={filter_}"], timeout=120,
                        env=os.environ | {"LOCKSTEP_EMULATION_CUDNN": "on"} | environment)
        except subprocess.TimeoutExpired:
            return f"{program}: no end"
        finally:
            binary.unlink(missing_ok=True)
        if tests.returncode != 0:
            failed = re.findall(r"^\[  FAILED  \] ([\w./]+)", tests.stdout, re.M)
            begun = re.findall(r"^\[ RUN      \] ([\w./]+)", tests.stdout, re.M)
            return (failed or begun or [program])[0 if failed else -1]
    return None


def main():
    if "--lint" in sys.argv:
        return lint(FAULTS, 40)
    compiled = compile_commands()
    links = {program: last_command(f"bin/{program}") for program, _, _ in PROGRAMS}
    return plant_all(FAULTS, lambda work, fault: noticed_by(work, compiled, links, fault),
                     "Faults planted in the host code around cuDNN")


if __name__ == "__main__":
    sys.exit(main())
