// scaletrain bench step: tokens per second of whole training steps, the fraction of this machine's FMA peak, and PyTorch for comparison.
#include <cmath>
#include <fstream>
#include <memory>
#include <optional>

#include "bench.h"
#include "bench_rows.h"
#include "fma_peak.h"
#include "own_step.h"
#include "scratch_folder.h"
#include "step_memory.h"

namespace cli {
namespace {

// Fixed before any tuning. The last two, of --shapes all, have GPT-2's vocabulary and a long context.
constexpr Shape kShapes[] = {{4, 128, 4, 64, 16, 256}, {6, 384, 6, 256, 4, 4096}, {12, 768, 12, 256, 4, 8192}};
constexpr Shape kMoreShapes[] = {{12, 768, 12, 256, 4, 50257}, {12, 768, 12, 1024, 1, 8192}};

constexpr int64_t kWarmUp = 3;  // steps before the first round; their losses are compared
// Relative: sums in another order change a loss by 1e-6, rounding to 8 bits in other places by 1e-3, a wrong term by far more.
double loss_tolerance(const Shape& shape) { return shape.precision == "fp32" ? 1e-3 : 1e-2; }

class StepBench {
 public:
  StepBench(const BenchOptions& options, int64_t rounds, int64_t threads)
      : precision_(options.dtype),
        rounds_(rounds),
        threads_(threads),
        peak_(static_cast<int>(threads)),
        rows_("step", "tokens/s", 0, options.json) {
    st_context_options context;
    ask(st_context_options_init(&context, sizeof context));
    context.threads = static_cast<int32_t>(threads);
    context_ = make<Context>(st_context_create, &context);
    if (options.against != "none") start_peer();
  }

  void operator()(bool all) {
    rows_.start(std::to_string(threads_) + " threads, " + peak_.kind() + " FMA loop, " + std::to_string(rounds_) + " rounds" +
                (peer_ ? ", PyTorch " + peer_->version() : ""));
    for (const Shape& shape : kShapes) rows_.add(measure(in_precision(shape)));
    if (all)
      for (const Shape& shape : kMoreShapes) rows_.add(measure(in_precision(shape)));
    rows_.finish();
  }

 private:
  void start_peer() {
    try {
      peer_ = std::make_unique<PytorchPeer>();
    } catch (const std::exception& error) {
      rows_.set_absent("pytorch", error.what());
    }
  }

  Shape in_precision(Shape shape) const {
    shape.precision = precision_;
    return shape;
  }

  BenchRow measure(const Shape& shape) {
    OwnStep own(context_, shape, draw_tokens(shape, kWarmUp + rounds_));
    const std::vector<std::string> modes = peer_ ? open_peer(shape, own) : std::vector<std::string>{};
    for (int64_t i = 0; i < kWarmUp; ++i) {
      const double loss = own.step().check;
      for (const std::string& mode : modes) compare(shape, mode, i, loss, peer_->step(mode).check);
    }
    BenchRow row;
    row.name = name_of(shape);
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
        compare(shape, mode, kWarmUp + round, step.check, theirs.check);
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
                          {"precision", std::string(shape.precision)},
                          {"lr", kBenchRate},
                          {"weights", weights},
                          {"tokens", tokens}},
                         rows_.absent());
    } catch (const std::runtime_error& error) {  // our own speed remains valid without the peer
      rows_.set_absent("pytorch", name_of(shape) + ": " + error.what());
      peer_.reset();
      return {};
    }
  }

  /// A speed is meaningless if the two sides compute different things.
  static void compare(const Shape& shape, const std::string& mode, int64_t step, double own, double theirs) {
    if (std::abs(own - theirs) <= loss_tolerance(shape) * std::abs(own)) return;
    throw Failure(kFailed, "bench: at step " + std::to_string(step + 1) + " our loss is " + std::to_string(own) + ", that of PyTorch " +
                               mode + " is " + std::to_string(theirs) + "; the two sides do not train the same model");
  }

  std::string precision_;
  int64_t rounds_, threads_;
  FmaPeak peak_;
  Context context_;
  ScratchFolder scratch_;
  std::unique_ptr<PytorchPeer> peer_;
  BenchRows rows_;
};

}  // namespace

void bench_step(const BenchOptions& options, int64_t rounds, int64_t threads) {
  if (options.against != "all" && options.against != "pytorch" && options.against != "none")
    refuse("--against is \"", options.against, "\"; the peer of a training step is pytorch, and none turns it off");
  if (!options.shape.empty() || options.tiles || !options.report.empty())
    refuse("bench step: --shape, --tiles and --report are options of bench gemm");
  if (options.dtype != "fp32" && options.dtype != "bf16") refuse("bench step: --dtype is \"", options.dtype, "\"; it must be fp32 or bf16");
  if (options.memory) {
    if (!options.shapes.empty() || options.dtype != "fp32")
      refuse("bench step: --memory measures its own shapes in fp32; leave out --shapes and --dtype");
    measure_step_memory(threads, options.json);
    return;
  }
  StepBench(options, rounds, threads)(options.shapes == "all");
}

}  // namespace cli
