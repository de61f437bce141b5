#include "race_identity.h"

namespace st {
namespace {

thread_local RaceIdentity* beginning = nullptr;

}  // namespace

void RaceIdentity::become(void (*run)(void* of), void* of) {
  if (fiber_ == nullptr) return run(of);
  run_ = run;
  of_ = of;
  host_ = __tsan_get_current_fiber();
  beginning = this;
  __tsan_switch_to_fiber(fiber_, kNoOrder);
  swapcontext(&outside_, &inside_);
}

void RaceIdentity::begin() {
  RaceIdentity& self = *beginning;
  for (;;) {
    self.run_(self.of_);
    __tsan_switch_to_fiber(self.host_, kNoOrder);
    swapcontext(&self.inside_, &self.outside_);
  }
}

}  // namespace st
