// Makes a trainer: its ranks agree on the run, give up the weights that others keep, and plan their steps.
#include <algorithm>
#include <functional>
#include <utility>

#include "base/error.h"
#include "comm/rank_texts.h"
#include "recipe/can_offload.h"
#include "recipe/can_shard_masters.h"
#include "recipe/fast_collectives.h"
#include "recipe/kernel_needs_of.h"
#include "recipe/schedule_choice.h"
#include "team/rank_agreement.h"
#include "team/rank_share.h"
#include "team/step_plans.h"
#include "train/input_fields.h"
#include "train/trainer.h"
#include "tuning/product_tuner.h"

namespace st {
namespace {

bool is_in_file(Model& model) { return model.piece_storage().is_in_file(Arena::parameters); }

}  // namespace

Trainer::Trainer(std::shared_ptr<Model> model, Recipe recipe, std::shared_ptr<const Dataset> data, const PlanOptions& options,
                 Communicator* ranks)
    : model_(std::move(model)),
      recipe_(ranks == nullptr ? std::move(recipe) : on_ranks(std::move(recipe), ranks->size())),
      options_(options),
      cancelled_(&model_->context().cancels()),
      schedule_(schedule_choice(recipe_)),
      scaler_(recipe_.loss_scaler()),
      whole_(model_->context().backend()),
      data_(std::move(data)) {
  Context& context = model_->context();
  const std::string& device = context.options().device;
  if (recipe_.device == Recipe().device) recipe_.device = device;
  check(recipe_.device == device, "trainer: the recipe has device ", recipe_.device, ", but the model's context has ", device,
        "; leave the recipe's device out, or make the context with it");
  const Mesh mesh = mesh_of(recipe_);
  if (is_split()) recipe_.ranks = mesh.ranks();
  if (recipe_.ranks > 1) group_ = ranks;
  if (group_ != nullptr) check_mesh(mesh, group_->size());
  check_recipe();
  const int in_process = ranks != nullptr ? ranks_in_process(*ranks) : static_cast<int>(recipe_.ranks);
  const int threads = recipe_.threads > 0 ? static_cast<int>(recipe_.threads) : std::max(1, context.threads() / in_process);
  auto own = std::make_unique<RankStep>(model_, recipe_, threads, cancelled_);
  if (group_ != nullptr) {
    const MeshPosition at = position_of(mesh, group_->rank());
    options_.rank = at.data;
    options_.tensor_rank = at.tensor;
    options_.stage = at.stage;
    options_.may_shard_masters = has_loss() && context.options().late_parameters;
    options_.shards_masters = shards_masters();
    agree_on_sharding();
  }
  BegunPlans begun;
  const auto plan_with = [this, &begun, needs = kernel_needs(context.backend(), threads)](PlanOptions with) {
    if (!with.print) with.begun = &begun;
    return has_loss() ? plan_training(model_->program(), recipe_, needs, with)
                      : plan_host_loss(model_->program(), recipe_, false, nullptr, needs, with);
  };
  const bool keeps_pieces = group_ != nullptr && (recipe_.zero == 3 || options_.shards_masters || is_split());
  const bool moves = moves_parameters(recipe_, !context.backend().is_host_memory());
  if (moves && !model_->is_on_host()) move_back_.model = model_;
  if (keeps_pieces) give_up_weights(plan_with(options_), moves);
  options_.parameters_on_host = model_->is_on_host() || moves;
  const bool have_copies = group_ == nullptr && threads_have_copies(mesh, recipe_.zero, options_.parameters_on_host);
  if (moves) move_model_to_host(plan_with(options_).memory, in_process, have_copies);
  const Storage& parameters = keeps_pieces ? model_->piece_storage() : model_->storage();
  whole_.share(parameters, Arena::parameters);
  if (!have_copies) own->storage().share(parameters, Arena::parameters);
  if (recipe_.arenas_in_file()[static_cast<size_t>(Arena::parameters)] && !is_in_file(*model_)) {
    move_back_.model = model_;
    model_->move_to_file(recipe_.offload_folder);
  }
  if (ranks != nullptr) options_.memory = memory_part(*ranks, context);
  options_.shares_masters = ranks == nullptr && recipe_.ranks > 1 && !have_copies && !options_.parameters_on_host;
  GemmContest contest{.tiles = recipe_.tune};
  if (recipe_.gemm_library == "auto") contest.libraries = context.gemm_libraries();
  if (contest.tiles || !contest.libraries.empty()) options_.tiles = measured_tiles(context, own->workers(), contest);
  if (keeps_pieces && (recipe_.zero == 3 || is_split())) {                  // of steps of both kinds
    const AxisRanks axes{is_split() ? nullptr : group_, nullptr, nullptr};  // groups along other axes are made later
    const StepPlans plans{*model_, recipe_, own->storage(), threads, options_, axes};
    recomputed_ = recomputed_by_all(*group_, recipe_, options_, [&](PlanOptions with) {
      if (!with.print) with.begun = &begun;
      return has_loss() ? plans.within(with) : plan_with(std::move(with));
    });
    if (recomputed_) options_.recompute_scopes = &*recomputed_;
  }
  if (!has_loss()) require_host_loss_fits("trainer");
  make_steps(std::move(own), threads, begun.empty() ? nullptr : &begun);
  if (group_ != nullptr) {
    require_agreement(*group_, run_facts(recipe_, training_state(), plan()));
    if (is_split()) require_agreement_along_data(*group_, mesh, collective_facts(plan()));
  }
  if (is_sharded()) others_ = pieces_of_others(*group_, executor());
  if (recipe_.ema_decay > 0) {
    WeightAverage::Read read;
    if (is_sharded()) read = std::bind_front(&Trainer::read_state, this);
    average_.emplace(*model_, state_tensors(), std::move(read));
  }
  evaluator_ = std::make_unique<Evaluator>(*model_, whole_, workers(), cancelled_, recipe_.batch, average_.has_value());
  if (keeps_pieces) evaluator_->gather_from(*group_, plan().program);
  move_back_.model = nullptr;
}

Trainer::MoveBack::~MoveBack() {
  if (model == nullptr || !(model->is_on_host() || is_in_file(*model))) return;
  const char* const place = model->is_on_host() ? "the host's memory" : "a file";
  try {
    model->move_to_device();  // new memory of the backend: on a cpu, out of the file
  } catch (const std::exception& error) {
    try {
      model->context().options().log.warning("trainer", "the parameters of a model whose trainer was not made stay in ", place,
                                             "; make another model and load the weights into it: ", error.what());
    } catch (const std::exception&) {
      return;  // no memory for a line of the log
    }
  }
}

void Trainer::check_recipe() const {
  const Logger& log = model_->context().options().log;
  check(recipe_.batch > 0, "trainer: the recipe's batch is auto; call with_batch_decided() first");
  check(!recipe_.gradient_noise_scale || recipe_.step_micro_batches() > 1,
        "recipe: gradient_noise_scale needs at least 2 micro-batches per step, got 1 of ", recipe_.batch,
        " rows; use accumulate 2 or more with a smaller batch");
  const Backend& backend = model_->context().backend();
  require_offload(recipe_, !backend.is_host_memory(), backend.name());
  require_fast_collectives(recipe_, !backend.is_host_memory(), group_ == nullptr, backend.name());
  for (const std::string& note : recipe_.notes) log.info("recipe", note);
  if (data_) check_input_fields(model_->program(), data_->fields(), recipe_.batch);
  const int64_t data_ranks = recipe_.data_ranks(), idle = data_ranks - recipe_.step_micro_batches();
  if (idle > 0 && (group_ == nullptr || group_->rank() == 0))
    log.warning("recipe", "a step has ", data_ranks - idle, " micro-batches on ", data_ranks, " ranks, so ", idle,
                idle == 1 ? " computes" : " compute", " none; give more micro_batches, or fewer ranks");
}

/// Whether the masters of 16-bit weights are in shards: where the model's parameters are read late, nobody needs them whole.
bool Trainer::shards_masters() const {
  const bool moves = moves_parameters(recipe_, !model_->context().backend().is_host_memory());
  return options_.may_shard_masters && can_shard_masters(recipe_, model_->is_on_host() || moves);
}

/// On the keys by which the ranks exchange anything from here on.
void Trainer::agree_on_sharding() const {
  std::vector<RankFact> facts;
  for (const char* const key : {"zero", "stages", "tensor", "collectives"}) facts.push_back({key, recipe_.get(key)});
  if (recipe_.zero == 3) facts.push_back({"recompute", recipe_.get("recompute")});
  if (recipe_.zero == 1 || recipe_.zero == 2) {
    facts.push_back({"precision", recipe_.get("precision")});
    facts.push_back({"late_parameters", options_.shards_masters ? "1" : "0"});  // where they tell
  }
  require_agreement(*group_, facts);
}

/// Keeps the parameters that this rank's plan has, once all ranks have agreed that they train the same model.
void Trainer::give_up_weights(const Plan& plan, bool on_host) {
  std::vector<RankFact> facts = run_facts(recipe_, training_state(), plan);
  facts.push_back({"weights", model_->weights_fact()});
  require_agreement(*group_, facts);
  // On all, or on none: what one gives up it would not get back. And before any looks at the memory that there is.
  meeting_once(*group_, "trainer", [&](const auto& meet) { model_->keep_pieces(plan.program, on_host, [&] { meet(nullptr); }); });
  model_->set_sharding(group_->sequence(), sharding_keys());
  has_torn_state_ = model_->has_torn_state();
}

/// `each`: that of a rank. The first rank's parameters are the model's, unless the ranks have copies of their own.
void Trainer::move_model_to_host(const MemoryLayout& each, int ranks, bool have_copies) {
  int64_t copies = 0;
  for (const SlotId parameter : model_->parameters()) copies += have_copies ? align_up(model_->slot(parameter).type.bytes()) : 0;
  const auto move = [&](const std::function<void()>& before_swap) {
    if (model_->is_on_host()) return before_swap();  // an earlier trainer has moved it
    // Other stages have other parameters: what they need is refused later, and the model moved back.
    const int64_t known = recipe_.stages > 1 ? each.host_bytes() : each.host_bytes() * ranks;
    model_->context().require_host_memory("trainer: a training step", each.host_bytes(), known + copies);
    model_->move_to_host(before_swap);
  };
  if (group_ == nullptr) return move([] {});
  meeting_once(*group_, "trainer", [&](const auto& meet) { move([&] { meet(nullptr); }); });  // on all, or on none
}

void Trainer::make_steps(std::unique_ptr<RankStep> own, int threads, BegunPlans* begun) {
  const auto is_cancelled = [this] {
    const bool is_by_host = host_step_ && host_step_->is_open();
    const bool is_being_made = ranks_ == nullptr;
    return cancelled_.is_set() && (is_by_host ? !host_step_->is_updating() : is_being_made || (has_loss() && planned().is_computing()));
  };
  PlanOptions of_ranks = options_;
  of_ranks.begun = begun;
  ranks_ = std::make_unique<Ranks>(std::move(own), Ranks::Parts{recipe_, is_cancelled, data_, threads, group_}, of_ranks, has_loss());
  RankGroups& groups = ranks_->groups();
  const Logger& log = model_->context().options().log;
  require(!has_fast_collectives(recipe_) || groups.is_connected(), Code::unavailable, "trainer: recipe collectives is fast, but ",
          groups.device_exchange(), "; or use collectives ordered");
  if (groups.is_hindered())
    log.warning("exchange", groups.device_exchange());
  else if (!groups.device_exchange().empty())
    log.info("exchange", groups.device_exchange());
  std::optional<HostLoss::OtherAxes> others;
  if (group_ != nullptr && is_split())
    others.emplace(HostLoss::OtherAxes{*group_, groups.stages(0) == nullptr ? nullptr : &groups.stages(0)->stages(), groups.tensor(0),
                                       std::bind_front(&RankGroups::connect, &groups)});
  RankStep& rank = ranks_->own();
  host_step_ = std::make_unique<HostLossStep>(
      HostLossStep::Parts{*model_, recipe_, rank.storage(), rank.workers(), cancelled_, rank.inputs().wanted(), rank.step(),
                          group_ == nullptr ? nullptr : groups.data(0), std::move(others)},
      options_);
}

}  // namespace st
