// Cuts blocks of a text into lines.
#pragma once

#include <string>
#include <string_view>

#include "core/function_ref.h"

namespace lockstep {

// A line may begin in one block and end in a later one. Of a line that is too long, only its
// beginning is kept.
class LineSplitter {
 public:
  static constexpr size_t kMaxLine = size_t{1} << 20;

  // Adds the text's next block. Calls `take` with each line that ends in it, without its newline.
  // Errors: those of `take`, after which the splitter must not be used.
  void add(std::string_view block, FunctionRef<void(const std::string& line)> take) {
    for (size_t end = block.find('\n'); end != block.npos; end = block.find('\n')) {
      extend(block.substr(0, end));
      take(line_);
      line_.clear();
      block.remove_prefix(end + 1);
    }
    extend(block);
  }

  // The beginning of a line whose end has not come yet.
  const std::string& rest() const { return line_; }

 private:
  void extend(std::string_view more) { line_ += more.substr(0, kMaxLine - line_.size()); }

  std::string line_;
};

}  // namespace lockstep
