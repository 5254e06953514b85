#include "data/torch_file/zip_reader.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include <fmt/core.h>
#include <zlib.h>

#include "core/check.h"
#include "core/words.h"
#include "data/torch_file/refuse.h"
#include "data/torch_file/zip_format.h"

namespace lockstep::data {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr uint64_t kMaxDirectory = uint64_t{16} << 20;
constexpr uint64_t kMaxMembers = 100'000;
constexpr uint64_t kMaxComment = 0xffff;
constexpr uint64_t kMaxInflation = 1032;  // what deflate can make of a byte
constexpr size_t kPiece = size_t{1} << 20;

// Reads numbers from the front of bytes. Requires: there are enough, as short_of() tells.
class ZipCursor {
 public:
  explicit ZipCursor(std::span<const std::byte> bytes) : rest_(bytes) {}

  bool short_of(size_t bytes) const { return rest_.size() < bytes; }
  template <class T>
  T take() {
    T value;
    std::memcpy(&value, rest_.data(), sizeof(T));
    rest_ = rest_.subspan(sizeof(T));
    return value;
  }
  std::span<const std::byte> take_bytes(size_t count) {
    const std::span<const std::byte> taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }
  void skip(size_t count) { rest_ = rest_.subspan(count); }

 private:
  std::span<const std::byte> rest_;
};

std::string zip_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Reads the 64-bit numbers in the extra field, in this order, for the fields that refer to it.
bool take_64(std::span<const std::byte> extra, std::span<uint64_t* const> numbers) {
  ZipCursor fields(extra);
  while (!fields.short_of(4)) {
    const auto id = fields.take<uint16_t>();
    const auto length = fields.take<uint16_t>();
    if (fields.short_of(length)) return false;
    ZipCursor field(fields.take_bytes(length));
    if (id != zip::kExtra64) continue;
    for (uint64_t* number : numbers) {
      if (*number != zip::kIn64) continue;
      if (field.short_of(sizeof(uint64_t))) return false;
      *number = field.take<uint64_t>();
    }
    return true;
  }
  return std::ranges::none_of(numbers, [](const uint64_t* n) { return *n == zip::kIn64; });
}

struct ZipEntry {
  std::string name;
  ZipMember member;
  uint16_t flags = 0;
  uint16_t method = 0;
  bool whole = false;  // all its bytes are there
};

ZipEntry take_zip_entry(ZipCursor& directory) {
  ZipEntry entry;
  if (directory.short_of(zip::kDirectoryEntryBytes)) return entry;
  if (directory.take<uint32_t>() != zip::kDirectoryEntry) return entry;
  directory.skip(4);  // versions
  entry.flags = directory.take<uint16_t>();
  entry.method = directory.take<uint16_t>();
  directory.skip(4);  // time
  ZipMember& member = entry.member;
  member.crc = directory.take<uint32_t>();
  member.stored = directory.take<uint32_t>();
  member.size = directory.take<uint32_t>();
  const size_t name = directory.take<uint16_t>();
  const size_t extra = directory.take<uint16_t>();
  const size_t comment = directory.take<uint16_t>();
  directory.skip(8);  // disk and attributes
  member.header = directory.take<uint32_t>();
  if (directory.short_of(name + extra + comment)) return entry;
  entry.name = zip_text(directory.take_bytes(name));
  uint64_t* const numbers[] = {&member.size, &member.stored, &member.header};
  entry.whole = take_64(directory.take_bytes(extra), numbers);
  directory.skip(comment);
  member.deflated = entry.method == zip::kDeflated;
  return entry;
}

// Empty: it can be read.
std::string zip_problem(const ZipEntry& entry, uint64_t data_end) {
  const ZipMember& member = entry.member;
  if ((entry.flags & 1U) != 0) return "is encrypted";
  if (entry.method != zip::kPlain && entry.method != zip::kDeflated) {
    return fmt::format("is compressed by method {}", entry.method);
  }
  if (member.header > data_end || data_end - member.header < zip::kLocalHeaderBytes ||
      member.stored > data_end - member.header - zip::kLocalHeaderBytes) {
    return "reaches beyond the end";
  }
  if (!member.deflated && member.size != member.stored) return "has two sizes";
  if (member.size / kMaxInflation > member.stored) return "claims more than it can hold";
  return {};
}

}  // namespace

ZipReader::ZipReader(const std::filesystem::path& path) : file_(path) {
  read_directory(find_directory());
}

void ZipReader::refuse(const std::string& why) const {
  refuse_torch_file(file(), why, kAnotherCopy);
}

std::vector<std::byte> ZipReader::bytes(uint64_t offset, uint64_t count) const {
  std::vector<std::byte> content(count);
  file_.read(offset, content);
  return content;
}

// It ends the file; only a comment may follow.
ZipReader::Directory ZipReader::find_directory() const {
  const uint64_t count = std::min(file_.size(), zip::kEndBytes + kMaxComment);
  const std::vector<std::byte> tail = bytes(file_.size() - count, count);
  for (uint64_t at = count; at-- > 0;) {
    if (count - at < zip::kEndBytes) continue;
    ZipCursor end(std::span<const std::byte>(tail).subspan(at));
    if (end.take<uint32_t>() != zip::kEnd) continue;
    const auto disks = end.take<uint32_t>();
    const auto members_on_disk = end.take<uint16_t>();
    Directory directory;
    directory.members = end.take<uint16_t>();
    directory.bytes = end.take<uint32_t>();
    directory.offset = end.take<uint32_t>();
    const auto comment = end.take<uint16_t>();
    if (at + zip::kEndBytes + comment != count) continue;
    if (disks != 0 || members_on_disk != directory.members)
      refuse("it is part of a zip file on several disks");
    const bool in_64 = directory.members == zip::kMembersIn64 || directory.bytes == zip::kIn64 ||
                       directory.offset == zip::kIn64;
    return in_64 ? read_end64(file_.size() - count + at) : directory;
  }
  refuse("it is cut short: the directory at the end of a zip file is missing");
}

ZipReader::Directory ZipReader::read_end64(uint64_t end) const {
  constexpr const char* kMissing = "its directory of 64-bit sizes is missing";
  if (end < zip::kEnd64LocatorBytes + zip::kEnd64Bytes) refuse(kMissing);
  const auto locator_bytes = bytes(end - zip::kEnd64LocatorBytes, zip::kEnd64LocatorBytes);
  ZipCursor locator(locator_bytes);
  if (locator.take<uint32_t>() != zip::kEnd64Locator) refuse(kMissing);
  locator.skip(4);
  const auto offset = locator.take<uint64_t>();
  if (offset > end - zip::kEnd64LocatorBytes - zip::kEnd64Bytes) refuse(kMissing);
  const auto end64_bytes = bytes(offset, zip::kEnd64Bytes);
  ZipCursor end64(end64_bytes);
  if (end64.take<uint32_t>() != zip::kEnd64) refuse(kMissing);
  end64.skip(28);  // its own size, versions, disks, members on this disk
  Directory directory;
  directory.members = end64.take<uint64_t>();
  directory.bytes = end64.take<uint64_t>();
  directory.offset = end64.take<uint64_t>();
  return directory;
}

void ZipReader::read_directory(const Directory& at) {
  if (at.offset > file_.size() || at.bytes > file_.size() - at.offset) {
    refuse(fmt::format(
        "its directory of {} bytes at byte {} reaches beyond the end", at.bytes, at.offset));
  }
  if (at.bytes > kMaxDirectory || at.members > kMaxMembers) {
    refuse(fmt::format("its directory claims {} members in {} bytes", at.members, at.bytes));
  }
  data_end_ = at.offset;
  const std::vector<std::byte> content = bytes(at.offset, at.bytes);
  ZipCursor directory(content);
  uint64_t stored = 0;
  for (uint64_t i = 0; i < at.members; ++i) {
    ZipEntry entry = take_zip_entry(directory);
    if (!entry.whole) refuse(fmt::format("its directory is damaged at member {}", i + 1));
    const std::string problem = zip_problem(entry, data_end_);
    if (!problem.empty()) refuse(fmt::format("its '{}' {}", printable(entry.name), problem));
    stored += entry.member.stored;
    const std::string name = entry.name;
    if (!members_.emplace(std::move(entry.name), entry.member).second) {
      refuse(fmt::format("it has '{}' twice", printable(name)));
    }
  }
  if (stored > data_end_) refuse("its members overlap");
}

// The local header has lengths of its own. Its CRC stands in for one that the directory lacks.
ZipReader::Data ZipReader::data_of(const std::string& name, const ZipMember& member) const {
  std::array<std::byte, zip::kLocalHeaderBytes> content{};
  file_.read(member.header, content);
  ZipCursor header(content);
  const bool is_header = header.take<uint32_t>() == zip::kLocalHeader;
  header.skip(10);
  const auto crc = header.take<uint32_t>();
  header.skip(8);
  const uint64_t name_bytes = header.take<uint16_t>();
  const uint64_t extra_bytes = header.take<uint16_t>();
  const uint64_t at = member.header + zip::kLocalHeaderBytes;
  const uint64_t data = at + name_bytes + extra_bytes;
  if (!is_header || name_bytes != name.size() || data > data_end_ ||
      member.stored > data_end_ - data || zip_text(bytes(at, name_bytes)) != name) {
    refuse(fmt::format("its '{}' is not where the directory says", printable(name)));
  }
  return {.offset = data, .crc = member.crc != 0 ? member.crc : crc};
}

void ZipReader::inflate(uint64_t offset, const ZipMember& member, std::span<std::byte> out) const {
  z_stream stream{};
  LS_CHECK(inflateInit2(&stream, -MAX_WBITS) == Z_OK, "[zip] inflateInit2: {}", out.size());
  const std::unique_ptr<z_stream, decltype(&inflateEnd)> end(&stream, inflateEnd);
  std::vector<std::byte> piece(std::min<uint64_t>(kPiece, member.stored));
  std::byte nothing{};  // zlib wants a place even where it has nothing to put there
  uint64_t left = member.stored;
  int result = Z_OK;
  while (result == Z_OK) {
    if (stream.avail_in == 0 && left > 0) {
      const uint64_t count = std::min<uint64_t>(piece.size(), left);
      file_.read(offset, std::span(piece).first(count));
      stream.next_in = reinterpret_cast<Bytef*>(piece.data());
      stream.avail_in = static_cast<uInt>(count);
      offset += count;
      left -= count;
    }
    const size_t space = std::min<size_t>(out.size() - stream.total_out, kPiece);
    std::byte* place = space == 0 ? &nothing : out.data() + stream.total_out;
    stream.next_out = reinterpret_cast<Bytef*>(place);
    stream.avail_out = static_cast<uInt>(space);
    result = ::inflate(&stream, Z_NO_FLUSH);  // without progress it ends the loop
  }
  const bool whole = result == Z_STREAM_END && stream.total_out == out.size();
  if (!whole) refuse("a deflated member does not give as many bytes as it claims");
}

void ZipReader::read(const std::string& name, std::span<std::byte> out) const {
  const ZipMember& member = members_.at(name);
  LS_CHECK(out.size() == member.size, "[zip] {}: {} bytes", name, out.size());
  const auto [offset, crc] = data_of(name, member);
  if (member.deflated) {
    inflate(offset, member, out);
  } else {
    file_.read(offset, out);
  }
  // PyTorch writes 0 where it computes none: torch.utils.serialization.config.save.compute_crc32.
  if (crc != 0 && zip::crc_of(out) != crc) {
    refuse(fmt::format("its '{}' is damaged: the CRC differs", printable(name)));
  }
}

}  // namespace lockstep::data
