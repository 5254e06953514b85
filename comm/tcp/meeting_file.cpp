#include "comm/tcp/meeting_file.h"

#include <array>
#include <cerrno>
#include <filesystem>
#include <span>
#include <sstream>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/atomic_file.h"
#include "core/errno_text.h"
#include "core/error.h"
#include "core/words.h"

namespace lockstep::comm::tcp {
namespace {

constexpr std::string_view kFirstLine = "lockstep meeting 1";
constexpr size_t kMaxBytes = 8192;

EnvironmentError no_file(const std::string& path, std::string why) {
  return EnvironmentError(fmt::format("ranks cannot meet in the file {}", printable(path)),
                          std::move(why),
                          "name a file in a folder of your own that all ranks see");
}

std::string text_of(const MeetingNotice& notice) {
  std::string text = fmt::format("{}\n{:016x} {:016x}\n", kFirstLine, notice.key, notice.host);
  for (const Address& each : notice.addresses) {
    text += fmt::format("{} {}\n", each.host(), each.port());
  }
  return text;
}

std::optional<MeetingNotice> parse(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  MeetingNotice notice;
  if (!std::getline(lines, line) || line != kFirstLine) return std::nullopt;
  if (!(lines >> std::hex >> notice.key >> notice.host >> std::dec)) return std::nullopt;
  std::string host;
  uint16_t port = 0;
  while (lines >> host >> port) {
    const std::optional<Address> address = Address::of_number(host, port);
    if (!address) return std::nullopt;
    notice.addresses.push_back(*address);
  }
  if (notice.addresses.empty()) return std::nullopt;
  return notice;
}

}  // namespace

MeetingFile::MeetingFile(std::string path, const MeetingNotice& notice)
    : path_(std::move(path)), key_(notice.key) {
  constexpr mode_t kOwnersOnly = 0600;
  const Folder folder = folder_for(path_);
  AtomicFile file(folder, std::filesystem::path(path_).filename(), kOwnersOnly);
  const std::string text = text_of(notice);
  file.append(std::as_bytes(std::span(text)));
  file.flush();
  file.take_place();
}

MeetingFile::~MeetingFile() {
  try {
    std::string problem;
    const std::optional<MeetingNotice> there = read_meeting_file(path_, problem);
    if (there && there->key == key_) ::unlink(path_.c_str());
  } catch (const std::exception&) {
    return;  // no longer ours, or memory has run out
  }
}

std::optional<MeetingNotice> read_meeting_file(const std::string& path, std::string& problem) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) {
    if (errno != ENOENT) throw no_file(path, errno_text());
    problem = "the file is not there";
    return std::nullopt;
  }
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0) throw no_file(path, errno_text());
  if (!S_ISREG(status.st_mode)) throw no_file(path, "it is not a plain file");
  if (status.st_uid != ::geteuid()) throw no_file(path, "it belongs to another user");
  if ((status.st_mode & 077) != 0) throw no_file(path, "other users may read or write it");
  std::array<char, kMaxBytes> buffer{};
  const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
  if (got < 0) throw no_file(path, errno_text());
  std::optional<MeetingNotice> notice = parse(std::string(buffer.data(), static_cast<size_t>(got)));
  if (!notice) problem = "the file is not rank 0's";
  return notice;
}

}  // namespace lockstep::comm::tcp
