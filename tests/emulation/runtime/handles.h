// Objects that the program refers to by pointer and returns.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

namespace lockstep::emulation {

template <class T>
class Handles {
 public:
  T* add(T value) {
    owned_.push_back(std::make_unique<T>(std::move(value)));
    return owned_.back().get();
  }
  bool holds(const T* handle) const {
    return std::ranges::any_of(owned_, [&](const auto& one) { return one.get() == handle; });
  }
  template <class Body>
  void for_each(Body&& body) const {
    for (const auto& one : owned_) body(*one);
  }
  bool remove(const T* handle) {
    return std::erase_if(owned_, [&](const auto& one) { return one.get() == handle; }) > 0;
  }
  void clear() { owned_.clear(); }

 private:
  std::vector<std::unique_ptr<T>> owned_;
};

}  // namespace lockstep::emulation
