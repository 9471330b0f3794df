// A simplex method that looks at the control as it goes. Only for the files that know Clp.
#pragma once

#include "monet/optimise/search.hpp"

#include <ClpEventHandler.hpp>

namespace monet {

class StopEvents final : public ClpEventHandler {
public:
  /// Both are the caller's, and copies that Clp makes share them.
  StopEvents(const SearchControl& control, bool& stopped)
      : control_(&control), stopped_(&stopped) {}
  StopEvents(const StopEvents&) = default;
  StopEvents& operator=(const StopEvents&) = default;

  int event(Event which) override {
    if (which != endOfIteration && which != endOfFactorization)
      return -1;
    if (!*stopped_)
      *stopped_ = control_->interrupted();
    return *stopped_ ? 5 : -1;
  }
  ClpEventHandler* clone() const override { return new StopEvents(*this); }

private:
  const SearchControl* control_;
  bool* stopped_;
};

} // namespace monet
