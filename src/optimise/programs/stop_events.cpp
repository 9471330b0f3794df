#include "optimise/programs/stop_events.hpp"

#include <ClpEventHandler.hpp>
#include <ClpSimplex.hpp>

namespace monet {

namespace {

/// Clp makes copies, which share what is pointed to.
class StopEvents final : public ClpEventHandler {
public:
  StopEvents(const SearchControl& control, bool& stopped)
      : control_(&control), stopped_(&stopped) {}

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

} // namespace

void stop_with(ClpSimplex& model, const SearchControl& control, bool& stopped) {
  const StopEvents events(control, stopped);
  model.passInEventHandler(&events);
}

} // namespace monet
