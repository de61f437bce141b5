// A trainer's checkpoints, and a model's weights from one.
#include "train/resume.h"

#include <scaletrain/checkpoint.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "background_saves.h"
#include "base/os/machine.h"
#include "checkpoint_choice.h"
#include "comm/rank_texts.h"
#include "host_metadata.h"
#include "pending_object.h"
#include "read_options.h"
#include "step_calls.h"

using namespace st;
using namespace st::capi;

namespace {

/// Removes the steps after the resumed one from the report page and the next report.
void forget_after(TrainerObject& t, int64_t step) {
  t.history.forget_after(step);
  std::erase_if(t.evaluations, [&](const auto& evaluation) { return evaluation.step > step; });
  if (t.average_loss.first > step) t.average_loss = {-1, 0};
  if (t.to_log && t.to_log->step > step) t.to_log.reset();
}

/// Checks the arguments of ranks that resume together. If one rank's host gave a wrong one, or a name that differs from the others', all
/// ranks get the error before they wait for each other.
void take_together(Communicator& ranks, const char* name, const std::optional<Lease<CheckpointObject>>& from,
                   const std::function<void()>& take_all) {
  std::exception_ptr wrong;
  std::string own;
  try {
    take_all();
    own = requested_name(**from, name);
  } catch (...) {
    wrong = std::current_exception();
  }
  require_all_fine(ranks, wrong, "resume");
  const std::vector<std::string> names = gather_texts(ranks, own, "name of the checkpoint");
  const auto other = std::ranges::find_if(names, [&](const std::string& said) { return said != names.front(); });
  if (other == names.end()) return;
  const auto rank = static_cast<int32_t>(other - names.begin());
  Error error(Code::rank_mismatch, text("st_trainer_resume: ", text_of_rank(ranks, rank), " names ", *other, ", ", text_of_rank(ranks, 0),
                                        " ", names.front(), "; give all ranks the same name"));
  error.place.rank = rank;
  error.is_on_all_ranks = true;
  throw error;
}

// The calls that come in pairs; `call` is the function that the host has called.

st_status save(st_trainer* trainer, st_checkpoint* checkpoint, const char* metadata, st_pending** pending, Reach reach,
               const char* call = __builtin_FUNCTION()) {
  const auto body = [&] {
    const auto t = find(trainer);
    if (reach == Reach::local) require_local(*t, call, "the state");
    std::optional<GroupTurn> turn;
    if (reach == Reach::collective) turn.emplace(*t);
    Communicator* const group = saving_group_of(*t, reach);
    std::optional<Use<CheckpointObject>> target;
    std::optional<Lease<ModelObject>> weights;
    CheckpointManager* manager = nullptr;
    Metadata own;
    std::shared_ptr<PendingObject> made;
    before_save(group, [&] {
      if (pending != nullptr) made = std::make_shared<PendingObject>();
      target.emplace(peek(checkpoint));
      manager = &(*target)->to_save(call, group != nullptr);
      own = metadata_of(metadata, call);
      weights.emplace(Kind::model, t->model);
      t->trainer->require_whole_step(call);
    });
    const std::function<bool()> is_cancelled = cancelled_from_now(t->model->model->context());
    if (pending == nullptr) return save_now(*t, group, *manager, std::move(own), is_cancelled);
    made->work = save_in_background(*t, group, *manager, std::move(own), is_cancelled);
    hand_out(pending, std::move(made));
  };
  return guard(body, call);
}

st_status save_every(st_trainer* trainer, st_checkpoint* checkpoint, int64_t steps, double minutes, Reach reach,
                     const char* call = __builtin_FUNCTION()) {
  const auto body = [&] {
    BackgroundSaves before;  // released when the trainer is free again, since that waits for its saves
    const auto t = find(trainer);
    if (reach == Reach::local) require_local(*t, call, "the state");
    std::optional<GroupTurn> turn;
    if (reach == Reach::collective) turn.emplace(*t);
    Communicator* const group = saving_group_of(*t, reach);
    ShardedModelCall::make(group, [&](ShardedModelCall* collective) {
      check(steps >= 0, call, ": steps is ", steps, "; give 0 or more");
      check(std::isfinite(minutes) && minutes >= 0, call, ": minutes is ", minutes, "; give a finite number, 0 or more");
      BackgroundSaves saves;
      if (checkpoint == nullptr) {
        check(steps == 0 && minutes == 0, call, ": checkpoint is NULL; give one, or set steps and minutes to 0 to stop saving");
      } else {
        saves = {.checkpoint = peek(checkpoint),
                 .is_collective = group != nullptr,
                 .steps = steps,
                 .minutes = minutes,
                 .last = os::seconds(),
                 .error = {}};
        check(steps > 0 || minutes > 0, call, ": steps and minutes are 0; give one of them, or a NULL checkpoint to stop saving");
        prepare_saves(*t, group, saves.checkpoint->to_save(call, group != nullptr));
      }
      if (collective != nullptr) collective->agree(text("saves every ", steps, " steps and ", minutes, " minutes"));
      std::swap(t->saves, before);
      t->saves = std::move(saves);
    });
  };
  return guard(body, call);
}

}  // namespace

st_status st_trainer_save(st_trainer* trainer, st_checkpoint* checkpoint, const char* metadata, st_pending** pending) {
  return save(trainer, checkpoint, metadata, pending, Reach::local);
}
st_status st_trainer_save_collective(st_trainer* trainer, st_checkpoint* checkpoint, const char* metadata, st_pending** pending) {
  return save(trainer, checkpoint, metadata, pending, Reach::collective);
}

st_status st_trainer_save_every(st_trainer* trainer, st_checkpoint* checkpoint, int64_t steps, double minutes) {
  return save_every(trainer, checkpoint, steps, minutes, Reach::local);
}
st_status st_trainer_save_every_collective(st_trainer* trainer, st_checkpoint* checkpoint, int64_t steps, double minutes) {
  return save_every(trainer, checkpoint, steps, minutes, Reach::collective);
}

st_status st_trainer_resume(st_trainer* trainer, st_checkpoint* checkpoint, const char* name, const st_read_options* options,
                            st_load_report* report) {
  return guard([&] {
    constexpr const char* kCall = "st_trainer_resume";
    const auto t = find(trainer);
    write_log_early(*t);
    const ShardedCall turn(*t);
    std::optional<Lease<CheckpointObject>> from;
    ReadOptions ours;
    const auto take_all = [&] {
      if (report != nullptr) take(report, "st_trainer_resume: report");
      from.emplace(find(checkpoint));
      ours = read_options(options, kCall);
      t->trainer->require_whole_step(kCall);
    };
    Communicator* const group = t->trainer->sharding_group_of();
    if (group == nullptr)
      take_all();
    else
      take_together(*group, name, from, take_all);
    const auto load = [&](const OpenCheckpoint& open, LoadReport& made) {
      ResumeReport resumed;
      const auto keep = [&] {
        made.read = resumed.read;
        made.missing = std::move(resumed.missing);
        made.unexpected = std::move(resumed.unexpected);
        made.changed = std::move(resumed.changed);
      };
      try {
        cancellable(*t, [&] { resume(*t->trainer, open, ours, resumed); });
      } catch (...) {
        keep();
        throw;
      }
      keep();
    };
    if (group != nullptr)
      load_together(**from, *group, name, report, load);
    else
      load_from(**from, name, report,
                [&](const CheckpointReader& reader, LoadReport& made) { load([&]() -> const CheckpointReader& { return reader; }, made); });
    (*from)->continue_run();
    forget_after(*t, t->trainer->steps());
  });
}

st_status st_model_load(st_model* model, st_checkpoint* checkpoint, const char* name, const st_read_options* options,
                        st_load_report* report) {
  return guard([&] {
    if (report != nullptr) take(report, "st_model_load: report");
    const auto object = find(model);
    const auto from = find(checkpoint);
    const ReadOptions ours = read_options(options, "st_model_load");
    load_from(*from, name, report, [&](const CheckpointReader& reader, LoadReport& made) {
      ReadReport read;
      const auto keep = [&] {
        made.read = read.read;
        made.missing = std::move(read.missing);
        made.unexpected = std::move(read.unexpected);
      };
      try {
        object->model->load(reader, ours, read);
      } catch (...) {
        keep();
        throw;
      }
      keep();
    });
  });
}
