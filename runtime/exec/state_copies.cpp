#include "exec/state_copies.h"

#include "base/error.h"

namespace st {

using Kind = Instruction::Kind;

StateCopies::StateCopies(const Plan& plan, const PlannedCalls& calls, const Storage& storage, Stream& computing)
    : computing_(computing), is_issued_(storage.backend().make_event()), copying_(storage.backend().make_stream()) {
  for (const StateWindow& window : plan.memory.windows) {
    Window& made = windows_.emplace_back();
    made.is_copied = storage.backend().make_event();
    for (const StagedBytes& of : window.copies) {
      std::byte* const home = storage.pinned(of.home.arena);
      require(home != nullptr, Code::internal, "executor: ", name_of(of.home.arena), " is not in the host's memory");
      made.copies.push_back({calls.address(of.staged), home + of.home.offset, of.bytes, of.is_written});
    }
  }
}

void StateCopies::run(const Instruction& at) {
  const Window& window = windows_[static_cast<size_t>(at.window)];
  if (at.kind == Kind::await_copy) return computing_.wait(*window.is_copied);
  computing_.record(*is_issued_);
  copying_->wait(*is_issued_);
  for (const OneCopy& of : window.copies) {
    if (at.kind == Kind::fetch)
      copying_->copy_to_device(of.staged, of.home, of.bytes);
    else if (of.is_written)
      copying_->copy_to_host(of.home, of.staged, of.bytes);
  }
  copying_->record(*window.is_copied);
}

}  // namespace st
