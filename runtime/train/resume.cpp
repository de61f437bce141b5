#include "train/resume.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "comm/rank_texts.h"
#include "model/checkpoint_weights.h"
#include "model/device_copy.h"
#include "model/tensor_load.h"
#include "train/state_tensor.h"

namespace st {
namespace {

constexpr std::string_view kAverage = "average.";

/// "moment1.head.weight" of parameter "head.weight": what stands before the name, "moment1.".
std::string_view state_of(std::string_view slot, std::string_view parameter) { return slot.substr(0, slot.size() - parameter.size()); }

[[noreturn]] void refuse_resume(Code code, const std::string& file, const std::string& tensor, std::string message) {
  Error error(code, std::move(message));
  error.place.file = file;
  error.place.tensor = tensor;
  throw error;
}

std::vector<std::string> changes_between(const Recipe& here, const Json& there) {
  std::vector<std::string> changed;
  for (const RecipeKey& key : recipe_keys()) {
    const Json* value = there.find(key.name);
    const std::string mine = parse_json(here.get(key.name), key.name).dump(), theirs = value == nullptr ? key.standard : value->dump();
    if (mine != theirs) changed.push_back(text(key.name, ": ", mine, " here, ", theirs, " in the checkpoint"));
  }
  for (const auto& [name, value] : there.members())
    if (std::ranges::find(recipe_keys(), name, &RecipeKey::name) == recipe_keys().end())
      changed.push_back(text(name, ": unknown here, ", value.dump(), " in the checkpoint"));
  return changed;
}

}  // namespace

class Resume {
 public:
  Resume(Trainer& trainer, const CheckpointReader& reader, const ReadOptions& options, ResumeReport& report)
      : trainer_(trainer), reader_(reader), options_(options), report_(report), tensors_(trainer.state_tensors()) {}

  /// Changes nothing.
  void prepare() {
    trainer_.require_no_open_step("resume");
    if (reader_.manifest().training.members().empty())
      take_hosts();
    else
      compare();
    match();
    compare_graphs();
    choose_scale_and_noise();
  }

  /// Loads this rank's tensors, then takes over the rest of the state. `meet`: see load_tensors().
  void run(const MeetOthers& meet) {
    load(meet);
    take_over();
  }

 private:
  /// A host's own tensors: what is known of its run is the step.
  void take_hosts() {
    state_ = trainer_.training_state();
    has_hosts_tensors_ = true;
    const int64_t step = reader_.manifest().step, rows = trainer_.rows_per_step();
    check(step >= 0 && step <= kCounted / rows, "resume: ", reader_.folder(), " has step ", step, ", out of range for steps of ", rows,
          " rows");
    state_.step = state_.updates = step;
    state_.items = step * rows;
    state_.tokens = 0;
    state_.loss = std::numeric_limits<double>::quiet_NaN();
    state_.loss_scaler = state_.gradient_noise = "";
  }

  void compare() {
    state_ = parse_training_state(reader_.manifest().training, reader_.folder());
    const TrainingState here = trainer_.training_state();
    require_same_run(here, state_);
    const int64_t rows = trainer_.rows_per_step();
    if (state_.items % rows != 0)
      refuse_resume(Code::corrupt, reader_.folder(), "",
                    text("resume: items is ", state_.items, ", must be a multiple of a step's ", rows, " rows"));
    report_.changed = changes_between(trainer_.recipe(), reader_.manifest().recipe);
    if (here.kernels != state_.kernels)
      report_.changed.push_back(
          text("kernels: ", here.kernels, " here, ", state_.kernels, " in the checkpoint; results may differ in the last bits"));
  }

  /// Names and shapes may fit though it is another model: of other heads, or another activation. Another version of the library may print
  /// the same graph in other words.
  void compare_graphs() {
    const TrainingState here = trainer_.training_state();
    if (here.graph.empty() || state_.graph.empty() || here.graph == state_.graph) return;
    const bool same_words = reader_.manifest().library == library_version();
    if (same_words && !options_.partial)
      refuse_resume(Code::invalid_argument, reader_.folder(), "",
                    text("resume: the model's graph differs from the one that ", reader_.folder(),
                         " was saved with (number of heads, an activation or another setting); make the model with the same settings, or "
                         "resume with partial"));
    report_.changed.push_back(text("graph: ", here.graph, " here, ", state_.graph, " in the checkpoint",
                                   same_words ? "" : text(", by ScaleTrain ", reader_.manifest().library)));
  }

  void match() {
    const Model& model = trainer_.model();
    const std::vector<TensorRecord> records = weights_in(reader_.manifest());
    const WeightsMatch weights =
        match_weights(records, model.program(), model.parameters(), options_, reader_.folder(), report_, Code::invalid_argument);
    for (const TensorRecord& record : records) weights_.insert(record.name);
    const bool is_weights_alone = has_hosts_tensors_ && records.size() == reader_.manifest().tensors.size();
    starts_anew_ = is_weights_alone && !options_.partial && std::ranges::any_of(tensors_, is_state);
    if (starts_anew_) start_anew();
    for (size_t i = 0; i < records.size(); ++i)
      if (weights.parameters[i] >= 0) theirs_[model.slot(weights.parameters[i]).name] = records[i].name;
    for (const StateTensor& tensor : tensors_) {
      if (tensor.role != Role::parameter)
        match_state(tensor);
      else if (const auto found = theirs_.find(tensor.name); found != theirs_.end())
        take(tensor, found->second);
    }
    find_unexpected_state();
    if (!options_.partial) require_complete();
  }

  static bool is_state(const StateTensor& tensor) { return tensor.role != Role::parameter; }
  /// All state of the optimizer is zero still, as it was made.
  bool is_fresh() const { return trainer_.updates_ == 0 && !trainer_.has_resumed_; }

  /// Nothing of an update is known: the next one is the optimizer's first, whatever the step.
  void start_anew() {
    state_.updates = 0;
    report_.changed.push_back(text("optimizer state: starts fresh, ", reader_.folder(), " holds only weights"));
  }

  const Slot& parameter_of(const StateTensor& state) const { return trainer_.plan().program.slot(state.of); }

  void match_state(const StateTensor& tensor) {
    const std::string& parameter = parameter_of(tensor).name;
    const auto name = theirs_.find(parameter);
    const std::string_view state = state_of(tensor.name, parameter);
    const bool is_loaded = name != theirs_.end();
    if (is_loaded && take(tensor, text(state, name->second))) return;
    if (starts_anew_) return;
    if (options_.asks_for(parameter)) report_.missing.push_back(tensor.name);
    // With updates behind it an average is not begun by the next one, which would blend the weight with nothing.
    if (state != kAverage || state_.updates == 0) return;
    if (is_loaded)
      take(tensor, name->second);
    else if (trainer_.updates_ == 0)
      own_averages_.push_back(&tensor);
  }

  /// False: the checkpoint has no such tensor.
  bool take(const StateTensor& tensor, const std::string& name) {
    const LogicalTensor* from = reader_.manifest().find(name);
    if (from == nullptr) return false;
    const Type& type = tensor.type;
    if (from->dtype != type.dtype || from->shape != type.shape)
      refuse_resume(Code::invalid_argument, reader_.folder(), name,
                    text("resume: \"", name, "\" is ", from->dtype, " ", from->shape, " in ", reader_.folder(), ", ", type.dtype, " ",
                         type.shape, " here; to convert weights, load them into a model"));
    const bool is_zero = tensor.role == Role::optimizer && is_fresh();
    for (const StateTensor::Piece& piece : tensor.pieces)
      if (piece.data)
        piece.range.each_run([&](int64_t in_whole, int64_t in_range, int64_t elements) {
          targets_.push_back({.from = from,
                              .first = in_whole,
                              .elements = elements,
                              .to = piece.data + in_range * bytes_of(type.dtype),
                              .dtype = type.dtype,
                              .is_zero = is_zero,
                              .may_hold_nan = !has_hosts_tensors_});
        });
    ++report_.read;
    taken_.insert(name);
    return true;
  }

  void find_unexpected_state() {
    for (const LogicalTensor& tensor : reader_.manifest().tensors) {
      if (weights_.contains(tensor.name) || taken_.contains(tensor.name)) continue;
      const std::string parameter = tensor.name.substr(tensor.name.find('.') + 1);
      if (options_.asks_for(options_.renamed(parameter))) report_.unexpected.push_back(tensor.name);
    }
  }

  void require_complete() const {
    const bool is_missing = !report_.missing.empty();
    if (!is_missing && report_.unexpected.empty()) return;
    const std::string& first = is_missing ? report_.missing.front() : report_.unexpected.front();
    std::string differing;
    for (const std::string& change : report_.changed) differing += text(differing.empty() ? "; recipe keys that differ: " : ", ", change);
    refuse_resume(Code::invalid_argument, reader_.folder(), first,
                  text("resume: \"", first, "\" is ", is_missing ? "here but not in " : "not here but in ", reader_.folder(), " (",
                       report_.missing.size(), " missing, ", report_.unexpected.size(), " unexpected)", differing,
                       "; use the checkpoint's recipe, or resume with partial"));
  }

  void choose_scale_and_noise() {
    scaler_ = trainer_.recipe().loss_scaler();
    const auto is_of_scale = [](const std::string& change) { return change.starts_with("loss_scale") || change.starts_with("precision"); };
    try {
      if (scaler_ && !state_.loss_scaler.empty() && std::ranges::none_of(report_.changed, is_of_scale))
        scaler_->restore(state_.loss_scaler);
      if (trainer_.recipe().gradient_noise_scale && !state_.gradient_noise.empty()) noise_.restore(state_.gradient_noise);
    } catch (const Error& error) {
      refuse_resume(Code::corrupt, reader_.folder(), "", text("resume: ", reader_.folder(), ": ", error.message()));
    }
  }

  void load(const MeetOthers& meet) {
    Context& context = trainer_.model().context();
    const WeightsGate::Writer writer(trainer_.model().gate());
    try {
      load_tensors(reader_, targets_, context, trainer_.workers(), &trainer_.cancelled_, trainer_.has_torn_state_, meet);
    } catch (const Error& error) {
      if (error.code() == Code::cancelled) trainer_.take_cancel();
      if (trainer_.has_torn_state_ && trainer_.model().is_sharded()) trainer_.model().set_mixed(true);
      throw;
    }
    if (starts_anew_ && !is_fresh()) clear_state();
    for (const StateTensor* average : own_averages_) {
      for (const StateTensor::Piece& part : average->pieces)
        if (part.data) begin_average(average->of, part);
    }
  }

  /// As what this rank's model has of the weight.
  void begin_average(SlotId parameter, const StateTensor::Piece& average) {
    const Model& model = trainer_.model();
    Backend& backend = model.context().backend();
    const PieceRange weight = model.piece(parameter);
    const int64_t width = bytes_of(model.slot(parameter).type.dtype);
    average.range.each_run([&](int64_t in_whole, int64_t in_average, int64_t elements) {
      weight.each_run_between(in_whole, in_whole + elements, [&](int64_t begin, int64_t in_weight, int64_t count) {
        copy_bytes(backend, model.data(parameter) + in_weight * width, backend, average.data + (in_average + begin - in_whole) * width,
                   count * width);
      });
    });
  }

  void clear_state() {
    for (const StateTensor& tensor : tensors_) {
      if (!is_state(tensor)) continue;
      for (const StateTensor::Piece& part : tensor.pieces)
        if (part.data) trainer_.model().context().backend().zero(part.data, part.range.elements * bytes_of(tensor.type.dtype));
    }
  }

  /// Nothing of it can fail: the tensors are the checkpoint's already.
  void take_over() {
    Trainer& t = trainer_;
    t.attempts_ = state_.step;
    t.updates_ = state_.updates;
    t.tokens_ = state_.tokens;
    t.items_taken_ = state_.items;
    t.last_loss_ = state_.loss;
    t.scaler_ = scaler_;
    t.noise_ = noise_;
    t.gradients_.executor = nullptr;
    t.has_resumed_ = true;
    t.has_torn_state_ = false;
    t.model_->set_mixed(false);
    if (t.average_) t.average_->follow(state_.updates > 0);
    t.ranks_->rewind(state_.items);
    t.ranks_->forget_state();
  }

  static constexpr int64_t kCounted = int64_t{1} << 53;  // as training_state.cpp has it

  Trainer& trainer_;
  const CheckpointReader& reader_;
  const ReadOptions& options_;
  ResumeReport& report_;
  std::vector<StateTensor> tensors_;
  TrainingState state_;
  std::map<std::string, std::string> theirs_;             // the checkpoint's name of each parameter that is loaded
  std::set<std::string> weights_, taken_;                 // of the checkpoint's tensors
  bool has_hosts_tensors_ = false, starts_anew_ = false;  // saved by a host, without a training state; and weights alone
  std::vector<TensorTarget> targets_;
  std::vector<const StateTensor*> own_averages_;  // those that begin as a weight that stays
  std::optional<LossScaler> scaler_;
  GradientNoise noise_;
};

void resume(Trainer& trainer, const CheckpointReader& reader, const ReadOptions& options, ResumeReport& report) {
  resume(
      trainer, [&]() -> const CheckpointReader& { return reader; }, options, report);
}

void resume(Trainer& trainer, const OpenCheckpoint& open, const ReadOptions& options, ResumeReport& report) {
  report = {};
  trainer.others_change_too();
  const auto go = [&](const MeetOthers& meet) {
    Resume resume(trainer, open(), options, report);
    resume.prepare();
    resume.run(meet);
  };
  if (Communicator* const group = trainer.sharding_group_of()) return meeting_once(*group, "resume", go);
  go({});
}

}  // namespace st
