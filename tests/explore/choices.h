// The choices of one execution of a protocol: which rank goes on, and when a fault happens.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::explore {

// Some choices are given; then it takes the first option of each, or random ones.
class Choices {
 public:
  Choices(int preemptions, uint64_t seed) : preemptions_(preemptions), is_random_(seed != 0) {
    random_.seed(seed);
  }

  void replay(std::vector<uint32_t> given) { given_ = std::move(given); }
  // Another execution begins.
  void begin();
  // One of the options, from 0 on. `costs`: all but the first are preemptions. Random choices take
  // an option other than the first once in `rare` times at most.
  uint32_t choose(uint32_t options, bool costs, uint64_t rare = 1);
  // The next order in depth-first search. False: there is none.
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

// As Choices::text() wrote them.
std::vector<uint32_t> choices_of(const std::string& text);

}  // namespace lockstep::explore
