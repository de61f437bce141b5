// Shared by the calls that make a step: views in, a report out, a log line, a cancel that is consumed.
#pragma once

#include <cstddef>
#include <optional>

#include "background_saves.h"
#include "communicator_object.h"
#include "guard.h"
#include "local_call.h"
#include "trainer_object.h"
#include "views.h"

namespace st::capi {

template <>
inline constexpr uint32_t kFirstSize<st_step_report> = offsetof(st_step_report, save_error);

void give_report(const TrainerObject& trainer, st_step_report* theirs, const StepReport& report);
const Logger& logger(const TrainerObject& trainer);

/// Takes the views of a call that continues a step. Invalid ones undo the step, as its other errors do.
void take_batch(TrainerObject& trainer, int64_t n, const st_named_view* batch, const char* call);
/// The same for arrays that the call fills.
void take_outputs(TrainerObject& trainer, int64_t m, const st_named_view* outputs, const char* call);

/// After a step: informs the report page and the logger.
void note(TrainerObject& trainer, const StepReport& report);
/// After the report was given. The step is done, even if writing its line fails.
void write_log(TrainerObject& trainer);
/// Writes a pending line early, before something that must follow it: the step's save (if the process is killed between the two, a resumed
/// run has the line), or a step made in on_step. The next write_log throws any error.
void write_log_early(TrainerObject& trainer) noexcept;

/// A cancel ends one call and is consumed by it. The caller holds the model.
template <class Call>
auto until_cancelled(TrainerObject& t, const Call& call) {
  const FloatMode mode;  // the host's rounding must not affect the learning rate or a mean
  try {
    return call();
  } catch (const Error& error) {
    if (error.code() == Code::cancelled) t.trainer->take_cancel();
    throw;
  }
}

template <class Call>
auto cancellable(TrainerObject& t, const Call& call) {
  const Lease weights(Kind::model, t.model);
  return until_cancelled(t, call);
}

/// Reserves the communicator for a trainer that is one of its ranks while a step runs; first waits for pending work.
class GroupTurn {
 public:
  explicit GroupTurn(TrainerObject& trainer);
  ~GroupTurn() {
    if (trainer_.group) trainer_.group->at_step = nullptr;
  }
  GroupTurn(const GroupTurn&) = delete;
  GroupTurn& operator=(const GroupTurn&) = delete;

 private:
  TrainerObject& trainer_;
  std::optional<Lease<CommunicatorObject>> turn_;
};

/// The same for other collective calls of ranks with sharded state (Trainer::is_sharded); otherwise does nothing.
class ShardedCall {
 public:
  explicit ShardedCall(TrainerObject& trainer) {
    if (trainer.trainer->is_sharded()) turn_.emplace(trainer);
  }

 private:
  std::optional<GroupTurn> turn_;
};

/// Such a call. If one rank refuses it, all ranks get the reason.
template <class Call>
void make_sharded(TrainerObject& trainer, const Call& call) {
  const ShardedCall turn(trainer);
  ShardedModelCall::make(trainer.trainer->sharding_group_of(), std::ref(call));
}
/// The same for calls that come in pairs; the local one is made by this rank alone.
template <class Call>
void make_sharded(TrainerObject& trainer, Reach reach, const Call& call) {
  if (reach == Reach::collective) return make_sharded(trainer, call);
  call(nullptr);
}

/// Ends the group (if not null) with an error as the reason, unless all ranks have found it together.
void end_group(CommunicatorObject* group, const Error& error);

/// The other ranks wait for this one: an exception ends the group (if not null) and gives them the reason, unless all ranks have found the
/// error together. Acquire the leases of handles before this: a busy or invalid handle is a mistake that the host can correct, and must not
/// end the group.
template <class Call>
auto ending_group_on_error(CommunicatorObject* group, const Call& call) {
  try {
    return call();
  } catch (const Error& error) {
    end_group(group, error);
    throw;
  } catch (const std::exception& error) {
    if (group != nullptr) group->ranks->abort(error.what());
    throw;
  }
}

/// A call of a step: reserves the group and the weights while it exists. The call's body is in a try block whose catch (...) calls fail().
class StepCall {
 public:
  explicit StepCall(TrainerObject& trainer);
  StepCall(const StepCall&) = delete;
  StepCall& operator=(const StepCall&) = delete;

  /// After the host's arguments were checked: errors from here on are the step's.
  void begin() { has_begun_ = true; }
  /// For the exception being handled: ends the group (ending_group_on_error) and throws it again; an error of the step carries the step's
  /// number, and a cancel is consumed.
  [[noreturn]] void fail();

 private:
  TrainerObject& trainer_;
  const GroupTurn group_;
  const Lease<ModelObject> weights_;
  bool has_begun_ = false;
};

}  // namespace st::capi
