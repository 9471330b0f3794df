// A reference to a function that a walk calls: walks are compiled once, whatever they call.
#pragma once

#include <type_traits>

namespace monet {

/// Refers to a function of these arguments, which must outlive the call that it is passed to.
template <class... Arguments>
class FunctionRef {
public:
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef>) FunctionRef(
      F&& function) // NOLINT(google-explicit-constructor): lambdas are passed as they are
      : object_(const_cast<void*>(static_cast<const void*>(&function))),
        call_([](void* object, Arguments... arguments) {
          (*static_cast<std::remove_reference_t<F>*>(object))(arguments...);
        }) {}

  void operator()(Arguments... arguments) const { call_(object_, arguments...); }

private:
  void* object_;
  void (*call_)(void*, Arguments...);
};

} // namespace monet
