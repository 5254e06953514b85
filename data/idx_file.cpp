#include "data/idx_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <span>
#include <string>

#include <fmt/core.h>
#include <zlib.h>

#include "core/error.h"

namespace lockstep::data {
namespace {

constexpr int64_t kMaxCount = int64_t{1} << 31;
constexpr int64_t kMaxSide = 16384;  // so the product of all extents stays below 2^60
constexpr const char* kCheckHint = "check that you may read it, and the disk";

[[noreturn]] void refuse_idx(const std::string& what, const std::string& why) {
  throw DataError(what, why, "fetch the file again", Remedy::kDigits);
}

// Bytes of a file, inflated when it is gzipped.
class ByteSource {
 public:
  explicit ByteSource(const std::filesystem::path& path)
      : path_(path), file_(gzopen(path.c_str(), "rbe")) {
    if (!file_) {
      throw DataError(
          fmt::format("cannot open {}", path.string()), std::strerror(errno), kCheckHint);
    }
    gzbuffer(file_.get(), 1U << 17);
  }

  // Fills `out` as far as the file goes. Returns the number of bytes.
  size_t read(std::span<uint8_t> out) {
    const int count = gzread(file_.get(), out.data(), static_cast<unsigned>(out.size()));
    int status = Z_OK;
    const char* const message = gzerror(file_.get(), &status);
    if (status == Z_BUF_ERROR) {
      refuse_idx(fmt::format("{} is truncated", path_.string()),
                 "the file ends in the middle of its gzip data");
    }
    if (status == Z_ERRNO) {
      throw DataError(
          fmt::format("cannot read {}", path_.string()), std::strerror(errno), kCheckHint);
    }
    if (count < 0 || status != Z_OK) {
      refuse_idx(fmt::format("{} is damaged", path_.string()), fmt::format("gzip: {}", message));
    }
    return static_cast<size_t>(count);
  }

 private:
  struct Close {
    void operator()(gzFile file) const { gzclose(file); }
  };
  std::filesystem::path path_;
  std::unique_ptr<gzFile_s, Close> file_;
};

int64_t big_endian32(std::span<const uint8_t> bytes) {
  return int64_t{bytes[0]} << 24 | int64_t{bytes[1]} << 16 | int64_t{bytes[2]} << 8 | bytes[3];
}

[[noreturn]] void throw_truncated(const std::filesystem::path& path, int64_t found, int64_t want) {
  refuse_idx(fmt::format("{} is truncated", path.string()),
             fmt::format("it holds {} bytes, expected {}", found, want));
}

std::vector<int64_t> read_header(ByteSource& source, const std::filesystem::path& path, int rank) {
  std::array<uint8_t, 16> header{};
  const std::span<uint8_t> bytes = std::span(header).first(4 * static_cast<size_t>(rank + 1));
  const size_t found = source.read(bytes);
  const int64_t magic = big_endian32(bytes);
  const int64_t expected = 0x800 + rank;
  if (found >= 4 && magic != expected) {
    refuse_idx(
        fmt::format("{} is no IDX file of {}", path.string(), rank == 3 ? "images" : "labels"),
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

}  // namespace

IdxFile read_idx(const std::filesystem::path& path, int rank) {
  constexpr int64_t kChunk = 1 << 20;  // memory grows with bytes found, not with bytes promised
  ByteSource source(path);
  IdxFile file{.extents = read_header(source, path, rank), .bytes = {}};
  int64_t payload = 1;
  for (const int64_t extent : file.extents) payload *= extent;

  const int64_t header = int64_t{4} * (rank + 1);
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
  if (source.read(std::span(&beyond, 1)) != 0) {
    refuse_idx(
        fmt::format("{} is too long", path.string()),
        fmt::format("it goes on after the {} bytes of its header and data", header + payload));
  }
  return file;
}

}  // namespace lockstep::data
