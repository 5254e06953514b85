#include "data/cifar10.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "core/digest.h"
#include "core/error.h"
#include "core/unique_fd.h"
#include "data/files.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kRecords = 10000;  // in a file
constexpr size_t kPlane = 1024;
constexpr size_t kPixels = 3 * kPlane;
constexpr size_t kRecord = 1 + kPixels;
static_assert(kRecords * kRecord == Cifar10::kFileBytes);

constexpr const char* kFolder = "cifar-10-batches-bin";
constexpr const char* kPickleFolder = "cifar-10-batches-py";
constexpr std::array<const char*, 6> kFiles = {"data_batch_1.bin",
                                               "data_batch_2.bin",
                                               "data_batch_3.bin",
                                               "data_batch_4.bin",
                                               "data_batch_5.bin",
                                               "test_batch.bin"};

[[noreturn]] void refuse_cifar10(const std::string& what, const std::string& why) {
  throw DataError(what, why, "unpack cifar-10-binary.tar.gz again", Remedy::kShapes);
}

[[noreturn]] void throw_nothing_found(const fs::path& dir) {
  if (has_cifar10_pickles(dir)) {
    throw DataError(
        fmt::format("the cifar10 in {} is Python's pickle form", dir.string()),
        fmt::format("{} holds pickles, which can run code and are never read", kPickleFolder),
        fmt::format("fetch the binary form, cifar-10-binary.tar.gz, and unpack it to {}",
                    (dir / kFolder).string()));
  }
  throw DataError(fmt::format("no cifar10 in {}", dir.string()),
                  fmt::format("looked for {} in {}, {}",
                              fmt::join(kFiles, ", "),
                              (dir / kFolder).string(),
                              dir.string()),
                  "name the folder of the unpacked cifar-10-binary.tar.gz",
                  Remedy::kShapes);
}

}  // namespace

class Cifar10::File {
 public:
  explicit File(const fs::path& path)
      : path_(path), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (!descriptor_.valid()) refuse_by_errno("open", path_);
  }

  const fs::path& path() const { return path_; }

  // Reads from `offset` until `out` is full or the file ends. Returns the number of bytes.
  size_t read(int64_t offset, std::span<uint8_t> out) const {
    const std::optional<size_t> count =
        read_at(descriptor_, static_cast<uint64_t>(offset), std::as_writable_bytes(out));
    if (!count) refuse_by_errno("read", path_);
    return *count;
  }

  // Reads the whole file. Errors: DataError unless it has kFileBytes bytes.
  std::vector<uint8_t> read_all() const {
    std::vector<uint8_t> bytes(static_cast<size_t>(kFileBytes) + 1);
    const size_t found = read(0, bytes);
    if (found < kFileBytes) throw_truncated(static_cast<int64_t>(found));
    if (found > kFileBytes) {
      refuse_cifar10(fmt::format("{} is too long", path_.string()),
                     fmt::format("it holds {} bytes, expected {}", size(), kFileBytes));
    }
    bytes.pop_back();
    return bytes;
  }

  [[noreturn]] void throw_truncated(int64_t found) const {
    refuse_cifar10(fmt::format("{} is truncated", path_.string()),
                   fmt::format("it holds {} bytes, expected {}", found, kFileBytes));
  }
  int64_t size() const { return ::lseek(descriptor_.get(), 0, SEEK_END); }

 private:
  fs::path path_;
  UniqueFd descriptor_;
};

Cifar10::Cifar10(std::string name, const std::vector<fs::path>& files) : name_(std::move(name)) {
  Digest digest;
  for (const fs::path& path : files) {
    const File& file = files_.emplace_back(path);
    const std::vector<uint8_t> bytes = file.read_all();
    for (size_t record = 0; record < kRecords; ++record) {
      const uint8_t label = bytes[record * kRecord];
      if (label > 9) {
        refuse_cifar10(fmt::format("{} holds a label out of range", path.string()),
                       fmt::format("record {} has label {}, expected 0 to 9", record, label));
      }
      labels_.push_back(label);
    }
    digest.update(std::as_bytes(std::span(bytes)));
  }
  digest_ = to_hex(digest.value());
}

Cifar10::~Cifar10() = default;

void Cifar10::read(int64_t i, std::span<uint8_t> pixels) const {
  const File& file = files_[static_cast<size_t>(i / kRecords)];
  std::array<uint8_t, kPixels> planes{};
  if (file.read((i % kRecords) * static_cast<int64_t>(kRecord) + 1, planes) < kPixels) {
    file.throw_truncated(file.size());
  }
  for (size_t p = 0; p < kPlane; ++p) {
    pixels[3 * p] = planes[p];
    pixels[3 * p + 1] = planes[kPlane + p];
    pixels[3 * p + 2] = planes[2 * kPlane + p];
  }
}

fs::path find_cifar10_folder(const fs::path& dir) {
  if (is_folder(dir / kFolder)) return dir / kFolder;
  const bool inside =
      std::ranges::any_of(kFiles, [&](const char* file) { return is_file(dir / file); });
  return inside ? dir : fs::path();
}

bool has_cifar10_pickles(const fs::path& dir) {
  return is_folder(dir / kPickleFolder) || is_file(dir / "data_batch_1");
}

DatasetPair open_cifar10(const fs::path& dir, Splits splits) {
  const fs::path folder = find_cifar10_folder(dir);
  if (folder.empty()) throw_nothing_found(dir);
  std::vector<fs::path> paths;
  std::vector<const char*> missing;
  for (const char* file : kFiles) {
    if (splits == Splits::kTest && file != kFiles.back()) continue;
    paths.push_back(folder / file);
    if (!is_file(paths.back())) missing.push_back(file);
  }
  if (!missing.empty()) {
    refuse_cifar10(fmt::format("cifar10 in {} is not complete", folder.string()),
                   fmt::format("missing: {}", fmt::join(missing, ", ")));
  }
  const std::vector<fs::path> test = {paths.back()};
  paths.pop_back();
  DatasetPair pair;
  if (splits == Splits::kBoth) pair.train = std::make_shared<Cifar10>("cifar10/train", paths);
  pair.test = std::make_shared<Cifar10>("cifar10/test", test);
  return pair;
}

}  // namespace lockstep::data
