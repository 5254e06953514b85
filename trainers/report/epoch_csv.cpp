#include "trainers/report/epoch_csv.h"

#include <sstream>
#include <system_error>

#include <fmt/core.h>

#include "core/error.h"
#include "core/input_file.h"
#include "core/words.h"
#include "trainers/config/run_files.h"
#include "trainers/report/process.h"

namespace lockstep::trainers {
namespace {

constexpr size_t kEpochColumn = 2;

// Returns the header and the whole rows of the epochs before `end`. The last row may be cut off
// where a run was killed, and a run that was stopped in an epoch left a row for its part of it.
std::string rows_before(const std::string& text, int64_t end) {
  std::istringstream lines(text.substr(0, text.rfind('\n') + 1));
  std::string kept = csv_header();
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    const std::vector<std::string_view> cells = split_words(line, ',');
    const auto epoch = cells.size() > kEpochColumn ? parse_int(cells[kEpochColumn]) : std::nullopt;
    if (epoch && *epoch < end) kept += line + "\n";
  }
  return kept;
}

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& why) {
  throw UsageError(fmt::format("--csv {} is another file", path.string()),
                   why,
                   "another name after --csv, or --overwrite to replace the file");
}

}  // namespace

std::string csv_header() {
  return "start_time,epoch_seconds,epoch,step,lr,train_loss,train_acc1,train_acc5,"
         "val_loss,val_acc1,val_acc5\n";
}

std::string csv_line(const EpochRow& row) {
  const std::string evaluated = row.evaluation ? fmt::format("{:.9g},{:.9g},{:.9g}",
                                                             row.evaluation->loss,
                                                             row.evaluation->acc1(),
                                                             row.evaluation->acc5())
                                               : ",,";
  return fmt::format("{},{:.3f},{},{},{:.9g},{:.9g},{:.9g},{:.9g},{}\n",
                     utc_text(row.start),
                     row.seconds,
                     row.epoch,
                     row.step,
                     row.lr,
                     row.train_loss,
                     row.train_acc1,
                     row.train_acc5,
                     evaluated);
}

EpochCsv::EpochCsv(const std::filesystem::path& path,
                   std::optional<int64_t> resumed,
                   bool overwrite) {
  const std::optional<std::string> held = overwrite ? "" : contents_of(path, kMostBytes);
  std::error_code unknown;
  if (!held && std::filesystem::exists(path, unknown)) refuse(path, "it cannot be read");
  const std::string before = held.value_or("");
  if (!before.empty() && !before.starts_with(csv_header())) {
    refuse(path, "it does not begin with the columns of this table");
  }
  if (!before.empty() && !resumed) refuse(path, "it holds the epochs of another run");
  write_file_atomically(path, resumed ? rows_before(before, *resumed) : csv_header());
  file_ = AppendedFile(path);
}

void EpochCsv::append(const EpochRow& row) const {
  file_.append(csv_line(row));
}

}  // namespace lockstep::trainers
