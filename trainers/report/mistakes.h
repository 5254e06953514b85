// The mistakes of an evaluation: which classes were taken for which, and the images that were most
// wrong. mistakes.json in the run directory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::trainers {

struct Mistake {
  int64_t index = -1;  // of the image in the test set; -1: none
  int32_t label = 0;
  int32_t predicted = 0;
  float loss = 0;  // nats
};

struct Mistakes {
  int64_t classes = 0;
  std::vector<int64_t> confusion{};     // images by (label, predicted), row by row
  std::vector<Mistake> worst{};         // by falling loss, at most kWorst
  std::vector<std::string> pictures{};  // of `worst`: PNG files in base64, "" where there is none
  std::string digest{};                 // of the weights that made them, as run.json has it

  static constexpr size_t kWorst = 10;
};

// One line, ends in a newline.
std::string to_json(const Mistakes& mistakes);
// Returns nothing for text that to_json() did not write.
std::optional<Mistakes> mistakes_of(const std::string& json);

std::string base64(std::string_view bytes);

}  // namespace lockstep::trainers
