// scaletrain bench optimizer: a loss scaler's unscale, clip by the global norm and AdamW over host arrays, in parameters per second, with
// the fraction of a loop with the same memory traffic, and PyTorch for comparison.
#include <cmath>
#include <cstdio>
#include <fstream>
#include <memory>
#include <random>

#include "bench.h"
#include "bench_rows.h"
#include "pytorch_peer.h"
#include "scratch_folder.h"
#include "seconds_now.h"
#include "stream_limit.h"

namespace cli {
namespace {

// The tensors of GPTs, fixed before any tuning. Those of --shapes all go up to GPT-2 small and 8 GB for both sides together.
struct Gpt {
  int64_t layers, width, context, vocabulary;
};
constexpr Gpt kGpts[] = {{4, 256, 256, 4096}, {6, 384, 256, 4096}};
constexpr Gpt kMoreGpts[] = {{12, 512, 256, 4096}, {12, 768, 1024, 50257}};

constexpr int64_t kStepsBefore = 3;  // steps before the first round, which create state and scale
constexpr double kTolerance = 1e-6;  // relative to the sum of all magnitudes: sums in another order change the norm's last digits
constexpr const char* kScript = "tests/bench/optimizer_pytorch.py";

using Dims = std::vector<int64_t>;

std::vector<Dims> tensors_of(const Gpt& gpt) {
  const int64_t w = gpt.width;
  std::vector<Dims> all = {{gpt.vocabulary, w}, {gpt.context, w}, {w}, {w}};
  for (int64_t layer = 0; layer < gpt.layers; ++layer)
    for (const Dims& dims : {Dims{w}, {w}, {w, 3 * w}, {3 * w}, {w, w}, {w}, {w}, {w}, {w, 4 * w}, {4 * w}, {4 * w, w}, {w}})
      all.push_back(dims);
  return all;
}

int64_t elements_of(const Dims& dims) {
  int64_t product = 1;
  for (const int64_t extent : dims) product *= extent;
  return product;
}

std::vector<float> draw(int64_t elements, double magnitude, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<float> values(static_cast<size_t>(elements));
  for (float& value : values) value = static_cast<float>((std::generate_canonical<double, 24>(random) - 0.5) * 2 * magnitude);
  return values;
}

void write(const std::string& path, const std::vector<float>& values) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(values.data()), std::ssize(values) * 4);
  file.close();
  if (!file) throw Failure(kFailed, "bench: cannot write " + path);
}

/// One flat buffer of parameters, one of gradients, and the library's objects over them.
class OwnOptimizer {
 public:
  OwnOptimizer(const Context& context, const std::string& name, const std::vector<Dims>& tensors, std::vector<float> parameters,
               const std::vector<float>& gradients)
      : parameters_(std::move(parameters)), gradients_(gradients), tensors_(tensors) {
    std::vector<st_named_view> named;
    int64_t at = 0;
    for (const Dims& dims : tensors_) {
      named.push_back({nullptr, view(dims, parameters_.data() + at)});
      views_.push_back(view(dims, gradients_.data() + at));
      at += elements_of(dims);
    }
    const std::string json = Json{{"optimizer", name}, {"clip", 1}}.dump();
    optimizer_ = make<Optimizer>(st_optimizer_create, context.get(), json.c_str(), std::ssize(named), named.data());
    scaler_ = make<LossScaler>(st_loss_scaler_create, context.get(), static_cast<const st_loss_scaler_options*>(nullptr));
    double scale = 0;
    ask(st_loss_scaler_scale(scaler_.get(), &scale));
    for (float& gradient : gradients_) gradient *= static_cast<float>(scale);
  }

  /// Seconds of one step on the scaled gradients.
  double step() {
    double scale = 0;
    const double start = seconds_now();
    ask(st_loss_scaler_scale(scaler_.get(), &scale));
    ask(st_optimizer_step_scaled(optimizer_.get(), scaler_.get(), std::ssize(views_), views_.data(), nullptr));
    ask(st_loss_scaler_update(scaler_.get(), nullptr));
    return seconds_now() - start;
  }

  double sum_of_magnitudes() const {
    double sum = 0;
    for (const float parameter : parameters_) sum += std::abs(static_cast<double>(parameter));
    return sum;
  }
  std::string state_bytes() const {
    int64_t n = 0, bytes = 0;
    const st_named_view* views = nullptr;
    ask(st_optimizer_state_views(optimizer_.get(), &n, &views));
    for (int64_t i = 1; i < n; ++i) bytes += views[i].view.bytes;  // views[0] is the step count
    char words[64];
    std::snprintf(words, sizeof words, ", %.3f bytes of state each", static_cast<double>(bytes) / static_cast<double>(parameters_.size()));
    return words;
  }

 private:
  static st_view view(const Dims& dims, float* data) {
    return {ST_F32, static_cast<int32_t>(dims.size()), dims.data(), nullptr, data, elements_of(dims) * 4, 0, 0};
  }

  std::vector<float> parameters_, gradients_;
  std::vector<Dims> tensors_;
  std::vector<st_view> views_;
  Optimizer optimizer_;
  LossScaler scaler_;
};

class OptimizerBench {
 public:
  OptimizerBench(const BenchOptions& options, int64_t rounds, int64_t threads)
      : rounds_(rounds), threads_(threads), rows_("optimizer", "Mparameters/s", 0, options.json, {"the loop", "Mparameters/s", 1e6}) {
    st_context_options context;
    ask(st_context_options_init(&context, sizeof context));
    context.threads = static_cast<int32_t>(threads);
    context_ = make<Context>(st_context_create, &context);
    if (options.against == "none") return;
    try {
      peer_ = std::make_unique<PytorchPeer>(kScript);
    } catch (const std::exception& error) {
      rows_.set_absent("pytorch", error.what());
    }
  }

  void operator()(bool all) {
    rows_.start(std::to_string(threads_) + " threads, unscale + clip + step, a loop of the same traffic, " + std::to_string(rounds_) +
                " rounds" + (peer_ ? ", PyTorch " + peer_->version() : ""));
    for (const Gpt& gpt : kGpts) measure(gpt);
    if (all)
      for (const Gpt& gpt : kMoreGpts) measure(gpt);
    rows_.finish();
  }

 private:
  void measure(const Gpt& gpt) {
    const std::vector<Dims> tensors = tensors_of(gpt);
    int64_t elements = 0;
    for (const Dims& dims : tensors) elements += elements_of(dims);
    const std::vector<float> parameters = draw(elements, 0.1, 1), gradients = draw(elements, 1e-3, 2);
    const std::string of = " gpt " + std::to_string(gpt.width) + "x" + std::to_string(gpt.layers) + ", " + std::to_string(elements / 1000) +
                           "k parameters in " + std::to_string(std::ssize(tensors)) + " tensors";
    StreamLimit limit(elements, static_cast<int>(threads_));
    for (const std::string name : {"adamw", "adamw-8bit"}) {
      OwnOptimizer own(context_, name, tensors, parameters, gradients);
      // PyTorch has no 8-bit states: both of our rows compare with its fp32 AdamW.
      const std::vector<std::string> modes = open_peer(tensors, parameters, gradients);
      std::map<std::string, double> sums;
      for (int64_t i = 0; i < kStepsBefore; ++i) {
        own.step();
        for (const std::string& mode : modes) sums[mode] = peer_->step(mode).check;
      }
      if (name == "adamw")
        for (const auto& [mode, sum] : sums) compare(mode, own.sum_of_magnitudes(), sum);
      BenchRow row;
      row.name = name + of + own.state_bytes();
      const double millions = static_cast<double>(elements) * 1e-6;
      for (int64_t round = 0; round < rounds_; ++round) {
        row.own.push_back(millions / own.step());
        row.peak.push_back(limit.measure());
        row.fraction.push_back(row.own.back() * 1e6 / row.peak.back());
        for (const std::string& mode : modes) row.peers["pytorch-" + mode].push_back(millions / peer_->step(mode).seconds);
      }
      rows_.add(row);
    }
  }

  std::vector<std::string> open_peer(const std::vector<Dims>& tensors, const std::vector<float>& parameters,
                                     const std::vector<float>& gradients) {
    if (!peer_) return {};
    const std::string weights = scratch_.path / "parameters.f32", given = scratch_.path / "gradients.f32";
    write(weights, parameters);
    write(given, gradients);
    try {
      return peer_->open({{"tensors", tensors}, {"threads", threads_}, {"parameters", weights}, {"gradients", given}}, rows_.absent());
    } catch (const std::runtime_error& error) {  // our own speed remains valid without the peer
      rows_.set_absent("pytorch", error.what());
      peer_.reset();
      return {};
    }
  }

  /// A speed is meaningless if the two sides compute different things.
  static void compare(const std::string& mode, double own, double theirs) {
    if (std::abs(own - theirs) <= kTolerance * own) return;
    throw Failure(kFailed, "bench: after " + std::to_string(kStepsBefore) + " steps the magnitudes of our parameters sum to " +
                               std::to_string(own) + ", those of PyTorch " + mode + " to " + std::to_string(theirs) +
                               "; the two sides take different steps");
  }

  int64_t rounds_, threads_;
  Context context_;
  ScratchFolder scratch_;
  std::unique_ptr<PytorchPeer> peer_;
  BenchRows rows_;
};

}  // namespace

void bench_optimizer(const BenchOptions& options, int64_t rounds, int64_t threads) {
  if (options.against != "all" && options.against != "pytorch" && options.against != "none")
    refuse("--against is \"", options.against, "\"; the peer of an optimizer is pytorch, and none turns it off");
  if (!options.shape.empty() || options.tiles || options.memory || !options.report.empty() || options.dtype != "fp32")
    refuse("bench optimizer: --shape, --tiles, --memory, --report and --dtype are options of other benchmarks");
  OptimizerBench(options, rounds, threads)(options.shapes == "all");
}

}  // namespace cli
