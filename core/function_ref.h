// A borrowed callable: two words, no allocation.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#pragma GCC visibility push(default)
namespace lockstep {

template <class Signature>
class FunctionRef;

// Requires: the callable outlives the reference.
template <class Result, class... Args>
class FunctionRef<Result(Args...)> {
 public:
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef> &&
             std::is_invocable_r_v<Result, F&, Args...>)
  // NOLINTNEXTLINE(google-explicit-constructor): a parameter type, made to convert
  FunctionRef(F&& callable)
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(callable)))),
        call_([](void* object, Args... args) -> Result {
          return (*static_cast<std::remove_reference_t<F>*>(object))(std::forward<Args>(args)...);
        }) {}

  Result operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

 private:
  void* object_;
  Result (*call_)(void*, Args...);
};

}  // namespace lockstep
#pragma GCC visibility pop
