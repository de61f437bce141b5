#include "background_saves.h"

#include <exception>
#include <new>

#include "base/os/machine.h"
#include "comm/rank_texts.h"
#include "step_calls.h"
#include "train/trainer_state.h"

namespace st::capi {
namespace {

/// If ranks save together, rank 0's clock decides.
bool is_due(const TrainerObject& t, Communicator* group, int64_t step) {
  const BackgroundSaves& saves = t.saves;
  if (saves.steps > 0 && step % saves.steps == 0) return true;
  if (saves.minutes <= 0) return false;
  int32_t is_time = os::seconds() - saves.last >= saves.minutes * 60 ? 1 : 0;
  if (group != nullptr) group->broadcast(&is_time, 1, DType::i32, 0, "time to save");
  return is_time != 0;
}

/// False if one of the ranks that save together has no memory for the copy. A failure that the other ranks do not know of is not retried.
bool save_a_copy(const TrainerObject& t, Communicator* group, CheckpointManager& manager) {
  const bool is_alone = group == nullptr;
  try {
    save_in_background(t, group, manager, {}, {});
    return true;
  } catch (const Error& error) {
    if (error.code() != Code::out_of_memory || !(is_alone || error.is_on_all_ranks)) throw;
  } catch (const std::bad_alloc&) {
    if (!is_alone) throw;
  }
  return false;
}

CheckpointContent content_for_all(const TrainerObject& t, Communicator* group, Metadata metadata) {
  CheckpointContent content;
  before_save(group, [&] { content = content_of(*t.trainer, std::move(metadata), group); });
  if (t.trainer->exchanges_ranges()) exchange_ranges(*t.trainer, content);
  return content;
}

/// Without memory for a copy, the step waits until the checkpoint is on disk.
void save(TrainerObject& t, Communicator* group) {
  t.saves.last = os::seconds();
  CheckpointManager& manager = t.saves.checkpoint->saves();
  if (!save_a_copy(t, group, manager)) save_now(t, group, manager, {});
}

void save_if_due(TrainerObject& t, const StepReport& report) noexcept {
  BackgroundSaves& saves = t.saves;
  try {
    try {
      Communicator* const group = saving_group_of(t, saves.is_collective ? Reach::collective : Reach::local);
      if (is_due(t, group, report.step)) {
        write_log_early(t);
        save(t, group);
      }
    } catch (const Error& error) {
      saves.error = error.message();
    }
    if (!saves.error.empty()) return;
    if (const auto earlier = saves.checkpoint->saves().take_error()) saves.error = earlier->message();
  } catch (...) {
    saves.error.assign("out of memory");  // short enough for the string's inline buffer
  }
}

}  // namespace

Communicator* saving_group_of(const TrainerObject& t, Reach reach) { return reach == Reach::collective ? t.trainer->group_of() : nullptr; }

void before_save(Communicator* group, const std::function<void()>& call) {
  try {
    call();
  } catch (...) {
    if (group != nullptr) require_all_fine(*group, std::current_exception(), "save");
    throw;
  }
}

std::shared_ptr<Pending> save_in_background(const TrainerObject& t, Communicator* group, CheckpointManager& manager, Metadata metadata,
                                            const std::function<bool()>& is_cancelled) {
  return manager.save(content_for_all(t, group, std::move(metadata)), t.trainer->workers(), is_cancelled);
}

void save_now(const TrainerObject& t, Communicator* group, CheckpointManager& manager, Metadata metadata,
              const std::function<bool()>& is_cancelled) {
  manager.save_now(content_for_all(t, group, std::move(metadata)), t.trainer->workers(), is_cancelled);
}

void prepare_saves(const TrainerObject& t, Communicator* group, CheckpointManager& manager) noexcept {
  try {
    const Lease weights(Kind::model, t.model);
    manager.prepare(content_of(*t.trainer, {}, group), t.trainer->workers());
  } catch (const std::exception&) {  // no memory, or an update is running: the first save allocates, or needs no copy
    return;
  }
}

StepReport saved(TrainerObject& t, const StepReport& report) noexcept {
  t.saves.error.clear();
  t.to_log = report;
  t.is_logged = false;
  if (t.saves.checkpoint) save_if_due(t, report);
  return report;
}

std::optional<StepReport> saved(TrainerObject& t, const std::optional<StepReport>& report) noexcept {
  if (report) saved(t, *report);
  return report;
}

}  // namespace st::capi
