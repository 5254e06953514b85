#include "trainers/report/mistakes.h"

#include <algorithm>
#include <cstddef>

#include "trainers/config/file_json.h"

namespace lockstep::trainers {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

bool is_base64(const std::string& text) {
  return text.find_first_not_of(std::string(kDigits) + "=") == std::string::npos;
}

}  // namespace

std::string base64(std::string_view bytes) {
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t bits = 0;
    for (size_t k = 0; k < 3; ++k) {
      bits = bits << 8 | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    }
    for (size_t k = 0; k < 4; ++k) {
      text += k <= count ? kDigits[bits >> (18 - 6 * k) & 63] : '=';
    }
  }
  return text;
}

std::string to_json(const Mistakes& mistakes) {
  OrderedFileJson json;
  json["schema_version"] = 1;
  json["digest"] = mistakes.digest;
  json["classes"] = mistakes.classes;
  json["confusion"] = mistakes.confusion;
  json["worst"] = OrderedFileJson::array();
  for (size_t i = 0; i < mistakes.worst.size(); ++i) {
    const Mistake& mistake = mistakes.worst[i];
    json["worst"].push_back({{"index", mistake.index},
                             {"label", mistake.label},
                             {"predicted", mistake.predicted},
                             {"loss", mistake.loss},
                             {"png", mistakes.pictures.at(i)}});
  }
  return json.dump() + "\n";
}

std::optional<Mistakes> mistakes_of(const std::string& text) {
  try {
    const auto json = parse_file<FileJson>(text);
    if (json.at("schema_version") != 1) return std::nullopt;
    Mistakes mistakes{.classes = json.at("classes"),
                      .confusion = json.at("confusion"),
                      .digest = json.at("digest")};
    for (const FileJson& mistake : json.at("worst")) {
      mistakes.worst.push_back({.index = mistake.at("index"),
                                .label = mistake.at("label"),
                                .predicted = mistake.at("predicted"),
                                .loss = mistake.at("loss")});
      const std::string png = mistake.at("png");
      if (!is_base64(png)) return std::nullopt;
      mistakes.pictures.push_back(png);
    }
    constexpr int64_t kMaxClasses = int64_t{1} << 31;  // their square is an int64_t
    if (mistakes.classes < 0 || mistakes.classes > kMaxClasses) return std::nullopt;
    const auto cells = mistakes.classes * mistakes.classes;
    if (!mistakes.confusion.empty() && std::ssize(mistakes.confusion) != cells) return std::nullopt;
    return mistakes;
  } catch (const FileJson::exception&) {
    return std::nullopt;
  }
}

}  // namespace lockstep::trainers
