#include "race_identity.h"

#include <link.h>

namespace st {
namespace {

// The program and each library that it is linked to has a block of thread-locals of this thread.
int share_block(dl_phdr_info* object, size_t, void*) {
  if (object->dlpi_tls_data == nullptr) return 0;
  for (const ElfW(Phdr)* header = object->dlpi_phdr; header != object->dlpi_phdr + object->dlpi_phnum; ++header)
    if (header->p_type == PT_TLS)
      AnnotateBenignRaceSized(__FILE__, __LINE__, object->dlpi_tls_data, header->p_memsz, "thread-locals of identities of one thread");
  return 0;
}

}  // namespace

void RaceIdentity::share_thread_locals() {
  thread_local bool is_shared = false;
  if (!is_shared) dl_iterate_phdr(share_block, nullptr);
  is_shared = true;
}

void RaceIdentity::become(void (*run)(void* of), void* of) {
  if (fiber_ == nullptr) return run(of);
  share_thread_locals();
  run_ = run;
  of_ = of;
  host_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(fiber_, kNoOrder);
  swapcontext(&outside_, &inside_);
}

void RaceIdentity::begin(unsigned high, unsigned low) {
  RaceIdentity& self = *reinterpret_cast<RaceIdentity*>(uintptr_t{high} << 32 | low);
  for (;;) {
    self.run_(self.of_);
    __tsan_switch_to_fiber(self.host_, kNoOrder);
    swapcontext(&self.inside_, &self.outside_);
  }
}

}  // namespace st
