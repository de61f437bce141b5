#include "train/generate.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "base/philox.h"
#include "model/borrowed_parameters.h"
#include "model/host_bytes.h"

namespace st {
namespace {

/// Draws from softmax(logits / temperature) over the k likeliest; ties go to the lower token.
int32_t draw(std::span<const float> logits, const GenerateOptions& options, uint32_t random) {
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto likelier = [&](int32_t a, int32_t b) {
    const float la = logits[static_cast<size_t>(a)], lb = logits[static_cast<size_t>(b)];
    return la != lb ? la > lb : a < b;
  };
  if (options.temperature == 0) return *std::ranges::min_element(order, likelier);
  const size_t kept = options.top_k > 0 ? std::min<size_t>(static_cast<size_t>(options.top_k), order.size()) : order.size();
  std::partial_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(kept), order.end(), likelier);
  order.resize(kept);

  std::vector<double> weights;
  const double top = logits[static_cast<size_t>(order[0])];
  for (const int32_t token : order) weights.push_back(std::exp((logits[static_cast<size_t>(token)] - top) / options.temperature));
  double left = static_cast<double>(uniform_of(random)) * std::accumulate(weights.begin(), weights.end(), 0.0);
  for (size_t i = 0; i < kept; ++i) {
    left -= weights[i];
    if (left < 0) return order[i];
  }
  return order.back();
}

}  // namespace

Generator::Generator(const std::shared_ptr<Model>& model) : Generator(model, model->storage(), model->context().threads(), nullptr) {}

Generator::Generator(std::shared_ptr<Model> model, Storage& weights, int threads, WeightsGate* gate, ExchangeQueue* ranks)
    : model_(std::move(model)), gate_(gate), pieces_(ranks == nullptr ? nullptr : &weights), cancelled_(&model_->context().cancels()) {
  Context& context = model_->context();
  Plan plan = plan_predictions(*model_, 1, {"logits"}, threads, ranks, weights.pinned(Arena::parameters) != nullptr);
  context.require_memory("generate: a forward pass",
                         plan.memory.total() - plan.memory.of(Arena::parameters) + Executor::input_bytes(plan, context.backend()));
  workers_ = threads == 1 ? std::make_unique<Workers>(1) : context.make_workers(threads);  // one is the caller, not the host's pool
  executor_ = std::make_unique<Executor>(std::move(plan), weights, *workers_, &cancelled_, ranks);
  const Program& program = executor_->plan().program;
  tokens_ = program.slot_named("tokens");
  logits_ = program.slot_named("output.logits");
  about_tensor("tokens", [&] { check(tokens_ >= 0, "generate: the model has no input \"tokens\""); });
  const Type& logits = program.slot(logits_).type;
  about_tensor("logits", [&] {
    check(logits.shape.rank() == 3 && logits.dtype == DType::f32,
          "generate: output \"logits\" must be f32 [batch, context, vocabulary], got ", logits);
  });
  context_ = logits.shape[1];
  vocabulary_ = logits.shape[2];
  const Type& tokens = program.slot(tokens_).type;
  about_tensor("tokens", [&] {
    check(tokens.dtype == DType::i32 && tokens.shape == Shape{1, context_}, "generate: input \"tokens\" must be i32 [batch, ", context_,
          "], got ", tokens);
  });
  for (const Node& node : program.sections[0].graph.nodes) {
    if (node.op != Op::load) continue;
    const Slot& slot = program.slot(node.reads[0]);
    about_tensor(slot.name, [&] {
      check(slot.role != Role::input || slot.name == "tokens", "generate: the logits depend on input \"", slot.name,
            "\"; they may depend only on \"tokens\"");
    });
  }
}

void Generator::forward() {
  std::optional<WeightsGate::TryReader> reader;
  if (gate_ != nullptr) reader.emplace(*gate_);
  if (pieces_ != nullptr) bind_shards(*executor_, *model_, *pieces_);
  executor_->run({});
}

std::vector<int32_t> Generator::run(std::span<const int32_t> prompt, const GenerateOptions& options,
                                    const std::function<bool(int32_t)>& on_token, ShardedModelCall* collective) {
  check(!prompt.empty(), "generate: the prompt is empty; give at least one token");
  check(options.tokens >= 0, "generate: tokens must be at least 0, got ", options.tokens);
  check(options.temperature >= 0 && std::isfinite(options.temperature), "generate: temperature must be at least 0 and finite, got ",
        options.temperature);
  check(options.top_k >= 0, "generate: top_k must be at least 0 (0: all tokens), got ", options.top_k);
  for (const int32_t token : prompt)
    check(token >= 0 && token < vocabulary_, "generate: token ", token, " must be in [0, ", vocabulary_, "), the vocabulary");

  cancelled_.begin();
  std::vector<int32_t> all(prompt.begin(), prompt.end()), made;
  std::vector<int32_t> window(static_cast<size_t>(context_));
  const Operand& logits = executor_->slot(logits_);
  const auto see = [&]() -> int64_t {
    // Attention is causal, so what stands behind the last token does not matter.
    const auto seen = std::min<int64_t>(context_, static_cast<int64_t>(all.size()));
    std::ranges::fill(window, 0);
    std::copy(all.end() - seen, all.end(), window.begin());
    executor_->bind(tokens_, window.data());
    forward();
    return seen;
  };
  const auto run_until = [&](int64_t i, int64_t seen) {
    const int64_t bytes = vocabulary_ * static_cast<int64_t>(sizeof(float));
    const HostBytes last(executor_->backend(), logits.data + (seen - 1) * bytes, bytes);
    const std::span row(last.as<float>(), static_cast<size_t>(vocabulary_));
    require(std::ranges::none_of(row, [](float logit) { return std::isnan(logit); }), Code::not_finite,
            "generate: the logits are NaN after token ", all.size() - 1, "; the model's training has diverged");
    const auto n = static_cast<uint32_t>(i);
    const uint32_t random = philox_of(mix(options.seed, hash_name("generate")))({n, 0, 0, 0})[0];
    const int32_t token = draw(row, options, random);
    all.push_back(token);
    made.push_back(token);
    return !on_token || on_token(token);
  };
  if (collective != nullptr) collective->agree(text("generate of ", options.tokens, " tokens"));
  for (int64_t i = 0; i < options.tokens; ++i) {
    const int64_t seen = see();
    if (collective == nullptr) {
      if (!run_until(i, seen)) break;
      continue;
    }
    std::exception_ptr failed;
    bool goes_on = false;
    try {
      goes_on = run_until(i, seen);
    } catch (...) {
      failed = std::current_exception();
    }
    if (!collective->on_any(!goes_on)) continue;
    collective->require_all_fine(failed);
    break;
  }
  return made;
}

}  // namespace st
