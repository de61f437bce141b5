// What the calls that make a step have in common: views in, a report out, a log line, a cancel that is used up.
#pragma once

#include <cstddef>
#include <optional>

#include "background_saves.h"
#include "communicator_object.h"
#include "guard.h"
#include "trainer_object.h"
#include "views.h"

namespace st::capi {

template <>
inline constexpr uint32_t kFirstSize<st_step_report> = offsetof(st_step_report, save_error);

void give_report(const TrainerObject& trainer, st_step_report* theirs, const StepReport& report);
const Logger& logger(const TrainerObject& trainer);

/// The views of a call that a step goes on with; bad ones undo it, as its other errors do.
void take_batch(TrainerObject& trainer, int64_t n, const st_named_view* batch, const char* call);

/// A step is done: what the report page and the logger are told of it.
void note(TrainerObject& trainer, const StepReport& report);
/// After the report was given: the step is done, whatever becomes of its line.
void write_log(TrainerObject& trainer);
/// Writes the line that is due, if any, before something that must come after it: the step's save (killed between the two, a run that
/// resumes from it has its line), or a step that on_step makes. The next write_log throws what went wrong.
void write_log_early(TrainerObject& trainer) noexcept;

/// A cancel ends one call and is then used up. The model is this call's already.
template <class Call>
auto until_cancelled(TrainerObject& t, const Call& call) {
  const FloatMode mode;  // the host's rounding must not reach the learning rate or a mean
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

/// The communicator of a trainer that is one of its ranks is the trainer's while a step is made; what was pending on it is done before.
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

/// The same of other calls that ranks with pieces of the state make together (Trainer::is_in_pieces); else nothing.
class PiecesTurn {
 public:
  explicit PiecesTurn(TrainerObject& trainer) {
    if (trainer.trainer->is_in_pieces()) turn_.emplace(trainer);
  }

 private:
  std::optional<GroupTurn> turn_;
};

/// Such a call, of which all ranks are told what one refuses.
template <class Call>
void make_in_pieces(TrainerObject& trainer, const Call& call) {
  const PiecesTurn turn(trainer);
  JointCall::make(trainer.trainer->group_of_pieces(), std::ref(call));
}

/// The other ranks wait for this one: what it throws ends the group (null: there is none), and tells them why. But what all have found
/// together each knows by itself. Behind the leases of handles: that one is in use, or none, is a slip of the host's that can be made good.
template <class Call>
auto ending_group_on_error(CommunicatorObject* group, const Call& call) {
  try {
    return call();
  } catch (const Error& error) {
    const bool is_told = error.is_on_all_ranks || error.code() == Code::rank_mismatch;
    if (group != nullptr && !is_told) group->ranks->abort(error.message());
    throw;
  } catch (const std::exception& error) {
    if (group != nullptr) group->ranks->abort(error.what());
    throw;
  }
}

/// The same of a call that a step is made of: `take` looks at what the host gave; the errors of `call` tell the attempt that they were met
/// in.
template <class Take, class Call>
auto stepping(TrainerObject& t, const Take& take, const Call& call) {
  write_log_early(t);  // of the step that on_step is shown, from which this one is made
  const GroupTurn group(t);
  const Lease weights(Kind::model, t.model);
  const auto attempt = [&] {
    try {
      return call();
    } catch (Error& error) {
      error.place.step = t.trainer->steps() + 1;
      throw;
    }
  };
  return ending_group_on_error(t.group.get(), [&] {
    take();
    return until_cancelled(t, attempt);
  });
}

}  // namespace st::capi
