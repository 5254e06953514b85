// The choices of one execution of a protocol: which rank continues, and when a fault happens.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::explore {

// Takes the given choices first; after them the first option of each choice, or random options.
class Choices {
 public:
  Choices(int preemptions, uint64_t seed) : preemptions_(preemptions), is_random_(seed != 0) {
    random_.seed(seed);
  }

  void replay(std::vector<uint32_t> given) { given_ = std::move(given); }
  // Starts another execution.
  void begin();
  // Returns one of the options, counted from 0. `costs`: every option but the first is a
  // preemption. A random choice takes an option other than the first at most once in `rare` times.
  uint32_t choose(uint32_t options, bool costs, uint64_t rare = 1);
  // Moves on to the next order in depth-first search. False: there is none.
  bool next();
  std::string text() const;

 private:
  struct Choice {
    uint32_t taken = 0;
    uint32_t options = 1;
  };

  const int preemptions_;
  const bool is_random_;
  std::mt19937_64 random_;
  std::vector<uint32_t> given_;
  std::vector<Choice> made_;
  int spent_ = 0;
};

// The choices in a text that Choices::text() wrote.
std::vector<uint32_t> choices_of(const std::string& text);

}  // namespace lockstep::explore
