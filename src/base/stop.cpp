// Stop requests by flag or deadline, kept per thread; long loops of every stage check them.
#include "monet/base/stop.hpp"

namespace monet {

namespace {

thread_local const StopScope* innermost = nullptr;

} // namespace

StopScope::StopScope(const StopRequest& request)
    : own_(request), request_(&own_), outer_(innermost) {
  innermost = this;
}

StopScope::StopScope(const StopRequest* request) : request_(request), outer_(innermost) {
  innermost = this;
}

StopScope::~StopScope() {
  innermost = outer_;
}

const StopScope* StopScope::current() {
  return innermost;
}

StopScope::Adopt::Adopt(const StopScope* of_starter) : before_(innermost) {
  innermost = of_starter;
}

StopScope::Adopt::~Adopt() {
  innermost = before_;
}

void StopScope::check(std::optional<Time>& now) const {
  const StopRequest& request = *request_;
  const bool is_set = request.flag != nullptr && request.flag->load(std::memory_order_relaxed);
  if (!is_set && request.deadline == Time::max())
    return;
  if (!now)
    now = StopRequest::Clock::now();
  if (request.is_late(*now))
    throw Stopped("stopped by the time limit", !is_set);
  if (!is_set)
    return;
  const Time::rep moment = now->time_since_epoch().count();
  Time::rep seen = 0;
  if (seen_.compare_exchange_strong(seen, moment))
    seen = moment;
  if (Time::duration(moment - seen) >= request.grace)
    throw Stopped("stopped");
}

void check_stop() {
  std::optional<StopScope::Time> now;
  for (const StopScope* scope = innermost; scope != nullptr; scope = scope->outer_)
    scope->check(now);
}

bool is_stop_flag_set() {
  for (const StopScope* scope = innermost; scope != nullptr; scope = scope->outer_) {
    const std::atomic<bool>* flag = scope->request_->flag;
    if (flag != nullptr && flag->load(std::memory_order_relaxed))
      return true;
  }
  return false;
}

} // namespace monet
