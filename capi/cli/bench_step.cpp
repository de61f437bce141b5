// scaletrain bench step: tokens a second of whole training steps, the share of this machine's FMA peak, and PyTorch beside it.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>

#include "fma_peak.h"
#include "own_step.h"
#include "progress.h"
#include "quantiles.h"

namespace cli {
namespace {

// Fixed before anything was tuned. The last two, of --shapes all, are GPT-2's vocabulary and a long context.
constexpr Shape kShapes[] = {{4, 128, 4, 64, 16, 256}, {6, 384, 6, 256, 4, 4096}, {12, 768, 12, 256, 4, 8192}};
constexpr Shape kMoreShapes[] = {{12, 768, 12, 256, 4, 50257}, {12, 768, 12, 1024, 1, 8192}};

constexpr int64_t kWarmUp = 3;           // steps before the first round; their losses are compared
constexpr double kLossTolerance = 1e-3;  // relative; sums in another order move a loss by 1e-6, a wrong term by far more

struct BenchOptions {
  std::string kind, rounds = "15", threads = "0", against = "pytorch", shapes;
  bool json = false;
};

/// A folder for weights and tokens that both sides read, gone at the end.
struct Scratch {
  Scratch() {
    std::string pattern = (std::filesystem::temp_directory_path() / "scaletrain-bench-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw Failure(kFailed, "bench: cannot make a folder in " + pattern);
    path = pattern;
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::filesystem::path path;
};

struct Row {
  std::string name;
  std::vector<double> own, fraction, peak;           // tokens/s, of peak, FLOP/s; a round each
  std::map<std::string, std::vector<double>> peers;  // tokens/s
};

class Bench {
 public:
  Bench(const BenchOptions& options, int64_t rounds, int64_t threads)
      : options_(options), rounds_(rounds), threads_(threads), peak_(static_cast<int>(threads)) {
    st_context_options context;
    ask(st_context_options_init(&context, sizeof context));
    context.threads = static_cast<int32_t>(threads);
    context_ = make<Context>(st_context_create, &context);
    if (options.against == "pytorch") start_peer();
  }

  void operator()() {
    if (!options_.json) print_start();
    for (const Shape& shape : kShapes) add(shape);
    if (options_.shapes == "all")
      for (const Shape& shape : kMoreShapes) add(shape);
    if (options_.json)
      std::printf("%s\n", result().dump().c_str());
    else
      print_end();
  }

 private:
  void start_peer() {
    try {
      peer_ = std::make_unique<PytorchPeer>();
    } catch (const std::exception& error) {
      absent_["pytorch"] = error.what();
    }
  }

  void add(const Shape& shape) {
    rows_.push_back(measure(shape));
    if (!options_.json) print(rows_.back());
  }

  Row measure(const Shape& shape) {
    OwnStep own(context_, shape, draw_tokens(shape, kWarmUp + rounds_));
    const std::vector<std::string> modes = peer_ ? open_peer(shape, own) : std::vector<std::string>{};
    for (int64_t i = 0; i < kWarmUp; ++i) {
      const double loss = own.step().loss;
      for (const std::string& mode : modes) compare(mode, i, loss, peer_->step(mode).loss);
    }
    Row row{name_of(shape), {}, {}, {}, {}};
    const double tokens = double(shape.batch * shape.context);
    double before = peak_.measure();
    for (int64_t round = 0; round < rounds_; ++round) {
      const PytorchPeer::Step step = own.step();
      const double after = peak_.measure();
      row.own.push_back(tokens / step.seconds);
      row.peak.push_back((before + after) / 2);
      row.fraction.push_back(flops_a_token(shape) * tokens / step.seconds / row.peak.back());
      for (const std::string& mode : modes) {
        const PytorchPeer::Step theirs = peer_->step(mode);
        compare(mode, kWarmUp + round, step.loss, theirs.loss);
        row.peers["pytorch-" + mode].push_back(tokens / theirs.seconds);
      }
      before = modes.empty() ? after : peak_.measure();
    }
    return row;
  }

  std::vector<std::string> open_peer(const Shape& shape, const OwnStep& own) {
    const std::string weights = scratch_.path / "weights.safetensors", tokens = scratch_.path / "tokens.i32";
    own.write_weights(weights);
    std::ofstream file(tokens, std::ios::binary);
    file.write(reinterpret_cast<const char*>(own.tokens().data()), std::ssize(own.tokens()) * 4);
    file.close();
    if (!file) throw Failure(kFailed, "bench: cannot write " + tokens);
    try {
      return peer_->open({{"layers", shape.layers},
                          {"width", shape.width},
                          {"heads", shape.heads},
                          {"context", shape.context},
                          {"vocabulary", shape.vocabulary},
                          {"batch", shape.batch},
                          {"threads", threads_},
                          {"lr", kBenchRate},
                          {"weights", weights},
                          {"tokens", tokens}},
                         absent_);
    } catch (const std::runtime_error& error) {  // without the peer there is still our speed
      absent_["pytorch"] = name_of(shape) + ": " + error.what();
      peer_.reset();
      return {};
    }
  }

  /// A speed is worth nothing when the two sides compute different things.
  static void compare(const std::string& mode, int64_t step, double own, double theirs) {
    if (std::abs(own - theirs) <= kLossTolerance * std::abs(own)) return;
    throw Failure(kFailed, "bench: at step " + std::to_string(step + 1) + " our loss is " + std::to_string(own) + ", that of PyTorch " +
                               mode + " is " + std::to_string(theirs) + "; the two do not train the same model");
  }

  void print_start() const {
    std::printf("%lld threads, %s FMA loop, %lld rounds%s\n", (long long)threads_, peak_.kind(), (long long)rounds_,
                peer_ ? (", PyTorch " + peer_->version()).c_str() : "");
    for (const auto& [name, reason] : absent_) std::printf("%s is absent: %s\n", name.c_str(), reason.c_str());
    std::fflush(stdout);
  }

  static void print(const Row& row) {
    std::printf("%s\n  own               %9.0f tokens/s  %.3f of peak (%.0f GFLOP/s)\n", row.name.c_str(), quantile(row.own, 0.5),
                quantile(row.fraction, 0.5), quantile(row.peak, 0.5) / 1e9);
    for (const auto& [name, speed] : row.peers) {
      const Ratio ratio = ratio_of(row.own, speed);
      std::printf("  %-17s %9.0f tokens/s  own is %.3f x (%.3f to %.3f)\n", name.c_str(), quantile(speed, 0.5), ratio.median, ratio.p10,
                  ratio.p90);
    }
    std::fflush(stdout);
  }

  void print_end() const {
    const Json all = means();  // named: a temporary would be gone before its items
    for (const auto& [name, mean] : all.items()) std::printf("geometric mean over %s: %.3f x\n", name.c_str(), mean.get<double>());
    for (const auto& [name, reason] : absent_) std::printf("absent: %s: %s\n", name.c_str(), reason.c_str());
  }

  Json result() const {
    Json rows = Json::array();
    for (const Row& row : rows_) {
      Json peers = Json::object(), ratios = Json::object();
      for (const auto& [name, speed] : row.peers) {
        const Ratio ratio = ratio_of(row.own, speed);
        peers[name] = quantile(speed, 0.5);
        ratios[name] = {{"median", ratio.median}, {"p10", ratio.p10}, {"p90", ratio.p90}};
      }
      rows.push_back({{"name", row.name},
                      {"own", quantile(row.own, 0.5)},
                      {"unit", "tokens/s"},
                      {"limit_fraction", quantile(row.fraction, 0.5)},
                      {"peers", peers},
                      {"ratio", ratios}});
    }
    return {{"bench", "step"}, {"rows", rows}, {"geomean", means()}, {"absent", Json(absent_)}};
  }

  /// Over the rows that have the peer; "best" is the fastest peer of each row.
  Json means() const {
    std::map<std::string, std::vector<double>> ratios;
    for (const Row& row : rows_) {
      double best = 0;
      for (const auto& [name, speed] : row.peers) {
        const double ratio = ratio_of(row.own, speed).median;
        ratios[name].push_back(ratio);
        best = best == 0 ? ratio : std::min(best, ratio);
      }
      if (best > 0) ratios["best"].push_back(best);
    }
    Json result = Json::object();
    for (const auto& [name, values] : ratios) result[name] = geometric_mean(values);
    return result;
  }

  const BenchOptions& options_;
  int64_t rounds_, threads_;
  FmaPeak peak_;
  Context context_;
  Scratch scratch_;
  std::unique_ptr<PytorchPeer> peer_;
  std::map<std::string, std::string> absent_;
  std::vector<Row> rows_;
};

int run_bench(const BenchOptions& o) {
  if (o.kind.empty()) refuse("bench: of what? There is: step");
  if (o.kind != "step") {
    const bool later = o.kind == "gemm" || o.kind == "optimizer" || o.kind == "collective" || o.kind == "checkpoint";
    refuse("bench: ", later ? o.kind + " is not in this version yet; there is: step" : "unknown benchmark " + o.kind + "; there is: step");
  }
  if (o.against != "pytorch" && o.against != "none")
    refuse("--against is \"", o.against, "\"; the peer of a training step is pytorch, and none turns it off");
  if (!o.shapes.empty() && o.shapes != "all") refuse("--shapes is \"", o.shapes, "\"; it can only be all");
  const int64_t rounds = whole_number("--rounds", o.rounds), threads = whole_number("--threads", o.threads);
  if (rounds < 1) refuse("--rounds is ", rounds, "; give at least 1");
  if (threads < 0 || threads > 4096) refuse("--threads is ", threads, "; give 1 to 4096, or 0 for this process's cores");
  Bench(o, rounds, threads > 0 ? threads : Json::parse(text(st_features))["cores"].get<int64_t>())();
  return kDone;
}

}  // namespace

Command bench_command(CLI::App& app) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command = app.add_subcommand("bench", "measure: step (whole training steps of a GPT)");
  command->add_option("kind", options->kind, "what to measure: step");
  add_text(*command, "--rounds", options->rounds, "samples of each side, interleaved [15]");
  add_text(*command, "--threads", options->threads, "of each side; 0: this process's cores [0]");
  add_text(*command, "--against", options->against,
           "pytorch (from the .venv, or the python named by SCALETRAIN_PYTHON), or none [pytorch]");
  add_text(*command, "--shapes", options->shapes, "all: also GPT-2's vocabulary and a context of 1024");
  command->add_flag("--json", options->json, "one JSON object");
  return {command, [options] { return run_bench(*options); }};
}

}  // namespace cli
