#include "trainers/options/flag_rows.h"

namespace lockstep::trainers {
namespace {

using enum FlagKind;
using enum FlagGroup;
using enum HelpPage;

// clang-format off
constexpr Flag kOutputFlags[] = {
    {.name = "output-dir", .aliases = "-o", .kind = kString, .group = kOutput, .page = kShort,
     .metavar = "DIR", .help = "run directory [runs/<utc>-<arch>-n<ranks>]",
     .origin = "torchvision"},
    {.name = "overwrite", .kind = kBool, .group = kOutput, .page = kShort, .initial = both("false"),
     .help = "write into a directory that holds a run", .origin = "Lockstep"},
    {.name = "name", .kind = kString, .group = kOutput, .metavar = "TEXT",
     .not_built = "names of runs", .help = "name of the run", .origin = "timm"},
    {.name = "print-freq", .aliases = "-p --log-interval", .kind = kInt, .group = kOutput,
     .metavar = "N", .initial = both("10"), .range = kFrom1,
     .help = "steps between two log lines", .origin = "main.py"},
    {.name = "progress", .kind = kChoice, .group = kOutput, .initial = both("auto"),
     .choices = both("auto|bar|line|none"), .later_choices = both("json"),
     .not_built = "progress in JSON", .help = "how to show progress", .origin = "Lockstep"},
    {.name = "quiet", .aliases = "-q", .kind = kBool, .group = kOutput, .page = kShort,
     .initial = both("false"), .help = "only results and errors", .origin = "Lockstep"},
    {.name = "verbose", .aliases = "-v", .kind = kBool, .group = kOutput, .initial = both("false"),
     .help = "with --version: build and processor too", .origin = "Horovod"},
    {.name = "color", .kind = kChoice, .group = kOutput, .initial = both("auto"),
     .choices = both("auto|always|never"), .not_built = "colored output", .help = "color",
     .origin = "Lockstep"},
    {.name = "resume", .kind = kString, .group = kOutput, .page = kShort, .metavar = "PATH|auto",
     .help = "continue a run; auto: the one in --output-dir, if any", .origin = "main.py"},
    {.name = "save-freq", .kind = kInt, .group = kOutput, .metavar = "N", .initial = both("1"),
     .range = kFrom1, .help = "epochs between checkpoints", .origin = "timm"},
    {.name = "save-steps", .kind = kInt, .group = kOutput, .metavar = "N", .range = kFrom1,
     .help = "steps between checkpoints, within epochs too", .origin = "llm.c"},
    {.name = "keep", .kind = kInt, .group = kOutput, .metavar = "N", .initial = both("3"),
     .range = kFrom1, .help = "checkpoints to keep, beside the best weights", .origin = "llm.c"},
    {.name = "eval-freq", .kind = kInt, .group = kOutput, .metavar = "N", .initial = both("1"),
     .range = kFrom1, .help = "epochs between evaluations", .origin = "Lockstep"},
    {.name = "tensorboard", .kind = kBool, .group = kOutput, .initial = both("true"),
     .not_built = "TensorBoard writer", .help = "write TensorBoard events", .origin = "Lockstep"},
    {.name = "csv", .kind = kBool, .group = kOutput, .not_built = "CSV writer",
     .help = "write metrics.csv", .origin = "timm"},
    {.name = "histograms", .kind = kInt, .group = kOutput, .metavar = "N", .range = kFrom1,
     .not_built = "TensorBoard writer", .help = "write histograms every N steps",
     .origin = "Lockstep"},
    {.name = "trace", .aliases = "--timeline-filename", .kind = kString, .group = kOutput,
     .metavar = "A:B", .not_built = "timeline", .help = "write a timeline of steps A to B",
     .origin = "Horovod"},
    {.name = "prof", .kind = kInt, .group = kOutput, .metavar = "N", .range = kFrom0,
     .not_built = "profiling mode", .help = "profile ten steps from N, then stop",
     .origin = "Apex"},
    {.name = "nvtx", .kind = kBool, .group = kOutput, .not_built = "CUDA", .help = "NVTX ranges",
     .origin = "Apex"},
    {.name = "report", .kind = kBool, .group = kOutput, .initial = both("true"),
     .not_built = "report writer", .help = "write report.html", .origin = "Lockstep"},
    {.name = "anonymous", .kind = kBool, .group = kOutput,
     .not_built = "switch for host names in files", .help = "keep host names out of files",
     .origin = "Lockstep"},
    {.name = "config", .aliases = "-c", .kind = kString, .group = kOutput, .metavar = "FILE",
     .not_built = "reader for configuration files", .help = "defaults from a TOML file",
     .origin = "timm"},
    {.name = "print-config", .kind = kBool, .group = kOutput,
     .not_built = "writer for configuration files", .help = "print the resolved configuration",
     .origin = "Lockstep"},
    {.name = "json", .kind = kBool, .group = kOutput, .not_built = "summary on stdout",
     .help = "one summary object on stdout", .origin = "Lockstep"},
    {.name = "help", .aliases = "-h", .kind = kBool, .group = kOutput, .page = kShort,
     .help = "this page", .origin = "main.py"},
    {.name = "help-all", .kind = kBool, .group = kOutput, .page = kShort, .help = "every flag",
     .origin = "Lockstep"},
    {.name = "version", .kind = kBool, .group = kOutput, .page = kShort,
     .help = "version; with -v build and processor", .origin = "Horovod"},
    {.name = "check-build", .kind = kBool, .group = kOutput, .means = "--version",
     .help = "same as --version", .origin = "Horovod"},
    {.name = "completion", .kind = kChoice, .group = kOutput, .choices = both("bash|zsh|fish"),
     .not_built = "writer for completions", .help = "print a shell completion",
     .origin = "Lockstep"},
    {.name = "man", .kind = kBool, .group = kOutput, .not_built = "writer for the man page",
     .help = "print the man page", .origin = "Lockstep"},
};
// clang-format on

}  // namespace

std::span<const Flag> output_flags() {
  return kOutputFlags;
}

}  // namespace lockstep::trainers
