#include "data/idx.h"

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/ranges.h>
#include <zlib.h>

#include "core/digest.h"
#include "core/error.h"
#include "core/memory_limit.h"
#include "data/files.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

struct IdxFile {
  std::vector<int64_t> extents;  // images: count, rows, columns; labels: count
  std::vector<uint8_t> bytes;
};

constexpr const char* kSameDownload = "the four files of one download";
constexpr int64_t kMaxCount = int64_t{1} << 31;
constexpr int64_t kMaxSide = 16384;  // so the product of all extents stays below 2^60

[[noreturn]] void refuse_idx(const std::string& what, const std::string& why) {
  throw DataError(what, why, "fetch the file again", Remedy::kDigits);
}

// The bytes of a file, decompressed if it is gzipped.
class ByteSource {
 public:
  explicit ByteSource(const fs::path& path) : path_(path), file_(gzopen(path.c_str(), "rbe")) {
    if (!file_) refuse_by_errno("open", path);
    gzbuffer(file_.get(), 1U << 17);
  }

  // True when the file is not compressed. Valid after the first read.
  bool is_plain() const { return gzdirect(file_.get()) == 1; }

  // Reads until `out` is full or the file ends. Returns the number of bytes.
  size_t read(std::span<uint8_t> out) {
    const int count = gzread(file_.get(), out.data(), static_cast<unsigned>(out.size()));
    int status = Z_OK;
    const char* const message = gzerror(file_.get(), &status);
    if (status == Z_BUF_ERROR) {
      refuse_idx(fmt::format("{} is truncated", path_.string()),
                 "the file ends in the middle of its gzip data");
    }
    if (status == Z_ERRNO) refuse_by_errno("read", path_);
    if (count < 0 || status != Z_OK) {
      refuse_idx(fmt::format("{} is damaged", path_.string()), fmt::format("gzip: {}", message));
    }
    return static_cast<size_t>(count);
  }

 private:
  struct Close {
    void operator()(gzFile file) const { gzclose(file); }
  };
  fs::path path_;
  std::unique_ptr<gzFile_s, Close> file_;
};

int64_t big_endian32(std::span<const uint8_t> bytes) {
  return int64_t{bytes[0]} << 24 | int64_t{bytes[1]} << 16 | int64_t{bytes[2]} << 8 | bytes[3];
}

[[noreturn]] void throw_truncated(const fs::path& path, int64_t found, int64_t want) {
  refuse_idx(fmt::format("{} is truncated", path.string()),
             fmt::format("it holds {} bytes, expected {}", found, want));
}

std::vector<int64_t> read_header(ByteSource& source, const fs::path& path, int rank) {
  std::array<uint8_t, 16> header{};
  const std::span<uint8_t> bytes = std::span(header).first(4 * static_cast<size_t>(rank + 1));
  const size_t found = source.read(bytes);
  const int64_t magic = big_endian32(bytes);
  const int64_t expected = 0x800 + rank;
  if (found >= 4 && magic != expected) {
    refuse_idx(
        fmt::format("{} is not an IDX file of {}", path.string(), rank == 3 ? "images" : "labels"),
        fmt::format("its magic number is 0x{:08x}, expected 0x{:08x}", magic, expected));
  }
  if (found < bytes.size()) {
    throw_truncated(path, static_cast<int64_t>(found), static_cast<int64_t>(bytes.size()));
  }
  std::vector<int64_t> extents;
  for (int axis = 0; axis < rank; ++axis) {
    const int64_t extent = big_endian32(bytes.subspan(4 * static_cast<size_t>(axis + 1)));
    const int64_t most = axis == 0 ? kMaxCount : kMaxSide;
    if (extent < 1 || extent > most) {
      refuse_idx(fmt::format("{} has a header that makes no sense", path.string()),
                 fmt::format("dimension {} is {}, expected 1 to {}", axis, extent, most));
    }
    extents.push_back(extent);
  }
  return extents;
}

[[noreturn]] void throw_too_long(const fs::path& path, int64_t expected) {
  refuse_idx(fmt::format("{} is too long", path.string()),
             fmt::format("it goes on after the {} bytes of its header and data", expected));
}

// Checks, before memory is allocated, that the file can hold the bytes that its header claims.
void check_claim(const ByteSource& source, const fs::path& path, int64_t claimed) {
  constexpr int64_t kMaxInflation = 1032;  // deflate's greatest compression ratio
  std::error_code unknown;
  const uintmax_t size = fs::file_size(path, unknown);
  if (unknown) return;  // reading will tell
  const auto bytes = static_cast<int64_t>(size);
  if (source.is_plain()) {
    if (bytes < claimed) throw_truncated(path, bytes, claimed);
    if (bytes > claimed) throw_too_long(path, claimed);
  } else if (claimed / kMaxInflation > bytes) {
    refuse_idx(
        fmt::format("{} has a header that makes no sense", path.string()),
        fmt::format(
            "it claims {} bytes, which a gzip file of {} bytes cannot hold", claimed, bytes));
  }
}

// Reads unsigned bytes in `rank` dimensions. Errors: DataError, as IdxDataset says.
IdxFile read_idx(const fs::path& path, int rank) {
  constexpr int64_t kChunk =
      1 << 20;  // memory grows with the bytes found, not with the header's claim
  ByteSource source(path);
  IdxFile file{.extents = read_header(source, path, rank), .bytes = {}};
  int64_t payload = 1;
  for (const int64_t extent : file.extents) payload *= extent;

  const int64_t header = int64_t{4} * (rank + 1);
  check_claim(source, path, header + payload);
  require_memory(static_cast<uint64_t>(payload), path.string());
  int64_t found = 0;
  while (found < payload) {
    const int64_t wanted = std::min(kChunk, payload - found);
    file.bytes.resize(static_cast<size_t>(found + wanted));
    const auto got =
        static_cast<int64_t>(source.read(std::span(file.bytes).last(static_cast<size_t>(wanted))));
    found += got;
    if (got < wanted) throw_truncated(path, header + found, header + payload);
  }
  uint8_t beyond = 0;
  if (source.read(std::span(&beyond, 1)) != 0) throw_too_long(path, header + payload);
  return file;
}

constexpr std::array<const char*, 4> kFiles = {"train-images-idx3-ubyte",
                                               "train-labels-idx1-ubyte",
                                               "t10k-images-idx3-ubyte",
                                               "t10k-labels-idx1-ubyte"};

// folder/file or folder/file.gz; an empty path when neither exists.
fs::path find_file(const fs::path& folder, const char* file) {
  for (const char* ending : {"", ".gz"}) {
    fs::path path = folder / (std::string(file) + ending);
    if (is_file(path)) return path;
  }
  return {};
}

std::array<fs::path, 3> folders_of(const fs::path& dir, const std::string& name) {
  return {dir / (name == "mnist" ? "MNIST" : "FashionMNIST") / "raw", dir / "raw", dir};
}

[[noreturn]] void throw_nothing_found(const fs::path& dir, const std::string& name) {
  std::string looked;
  for (const fs::path& folder : folders_of(dir, name)) {
    looked += fmt::format("{}{}", looked.empty() ? "" : ", ", folder.string());
  }
  throw DataError(fmt::format("no {} in {}", name, dir.string()),
                  fmt::format("looked for {} (or .gz) in {}", fmt::join(kFiles, ", "), looked),
                  "name the folder that holds the files",
                  Remedy::kDigits);
}

// The files of `splits`; the paths of other files are empty.
std::array<fs::path, 4> find_files(const fs::path& dir, const std::string& name, Splits splits) {
  const fs::path folder = find_idx_folder(dir, name);
  if (folder.empty()) throw_nothing_found(dir, name);
  std::array<fs::path, 4> paths;
  std::string missing;
  for (size_t i = splits == Splits::kTest ? 2 : 0; i < kFiles.size(); ++i) {
    paths[i] = find_file(folder, kFiles[i]);
    if (!paths[i].empty()) continue;
    missing += fmt::format("{}{}[.gz]", missing.empty() ? "" : ", ", kFiles[i]);
  }
  if (!missing.empty()) {
    throw DataError(fmt::format("{} in {} is not complete", name, folder.string()),
                    fmt::format("missing: {}", missing),
                    "fetch the missing files",
                    Remedy::kDigits);
  }
  return paths;
}

}  // namespace

IdxDataset::IdxDataset(std::string name, const fs::path& images, const fs::path& labels)
    : name_(std::move(name)) {
  IdxFile image_file = read_idx(images, 3);
  IdxFile label_file = read_idx(labels, 1);
  if (image_file.extents[0] != label_file.extents[0]) {
    throw DataError(
        fmt::format("{} and {} do not belong together", images.string(), labels.string()),
        fmt::format(
            "they hold {} images and {} labels", image_file.extents[0], label_file.extents[0]),
        kSameDownload);
  }
  const auto bad = std::ranges::find_if(label_file.bytes, [](uint8_t label) { return label > 9; });
  if (bad != label_file.bytes.end()) {
    throw DataError(
        fmt::format("{} holds a label out of range", labels.string()),
        fmt::format("label {} is {}, expected 0 to 9", bad - label_file.bytes.begin(), *bad),
        kSameDownload);
  }
  shape_ = {1, image_file.extents[1], image_file.extents[2]};
  pixels_ = std::move(image_file.bytes);
  labels_ = std::move(label_file.bytes);
}

void IdxDataset::read(int64_t i, std::span<uint8_t> pixels) const {
  const auto bytes = static_cast<size_t>(shape_.numel());
  std::copy_n(pixels_.data() + static_cast<size_t>(i) * bytes, bytes, pixels.data());
}

std::string IdxDataset::digest() const {
  Digest digest;
  digest.update(static_cast<uint64_t>(size()));
  digest.update(static_cast<uint64_t>(shape_.height));
  digest.update(static_cast<uint64_t>(shape_.width));
  digest.update(std::as_bytes(std::span(labels_)));
  digest.update(std::as_bytes(std::span(pixels_)));
  return to_hex(digest.value());
}

fs::path find_idx_folder(const fs::path& dir, const std::string& name) {
  for (const fs::path& folder : folders_of(dir, name)) {
    for (const char* file : kFiles) {
      if (!find_file(folder, file).empty()) return folder;
    }
  }
  return {};
}

DatasetPair open_idx_pair(const fs::path& dir, const std::string& name, Splits splits) {
  const std::array<fs::path, 4> files = find_files(dir, name, splits);
  DatasetPair pair;
  if (splits == Splits::kBoth) {
    pair.train = std::make_shared<IdxDataset>(name + "/train", files[0], files[1]);
  }
  pair.test = std::make_shared<IdxDataset>(name + "/test", files[2], files[3]);
  if (!pair.train) return pair;
  const ImageShape train = pair.train->image_shape();
  const ImageShape test = pair.test->image_shape();
  if (train != test) {
    throw DataError(
        fmt::format("{} and {} do not belong together", files[0].string(), files[2].string()),
        fmt::format("their images are {} x {} and {} x {}",
                    train.height,
                    train.width,
                    test.height,
                    test.width),
        kSameDownload);
  }
  return pair;
}

}  // namespace lockstep::data
