// scaletrain bench checkpoint: how long a save blocks, how fast it writes and loads, and how much it slows a training step. Each is
// compared with a loop that does the minimum, and with torch.save and safetensors if Python has them.
#include <memory>

#include "bench.h"
#include "bench_rows.h"
#include "own_step.h"
#include "quantiles.h"
#include "saved_state.h"
#include "scratch_folder.h"
#include "seconds_now.h"

namespace cli {
namespace {

constexpr const char* kCheckpointScript = "tests/bench/checkpoint_pytorch.py";
constexpr int64_t kMebibyte = 1 << 20;
constexpr int64_t kSizes[] = {256 * kMebibyte}, kMoreSizes[] = {1024 * kMebibyte};
constexpr Shape kFlushShape = {4, 128, 4, 64, 16, 256};  // steps of about ten milliseconds: many per flush
constexpr int64_t kMostFlushSteps = 400;                 // per side and round

class CheckpointBench {
 public:
  CheckpointBench(const BenchOptions& options, int64_t rounds, int64_t threads)
      : rounds_(rounds), threads_(threads), rows_("checkpoint", "MB/s", 0, options.json, {"limit", "MB/s", 1}) {
    st_context_options context;
    ask(st_context_options_init(&context, sizeof context));
    context.threads = static_cast<int32_t>(threads);
    context_ = make<Context>(st_context_create, &context);
    if (options.against != "none") start_peer();
  }

  /// `mebibytes` 0: the usual sizes.
  void operator()(int64_t mebibytes, bool all) {
    rows_.start(std::to_string(threads_) + " threads, " + std::to_string(rounds_) + " rounds, files in " + scratch_.path.string() +
                (peer_ ? ", PyTorch " + peer_->version() : ""));
    if (mebibytes > 0) {
      measure(mebibytes * kMebibyte);
    } else {
      for (const int64_t bytes : kSizes) measure(bytes);
      if (all)
        for (const int64_t bytes : kMoreSizes) measure(bytes);
    }
    rows_.finish();
  }

 private:
  void start_peer() {
    try {
      peer_ = std::make_unique<PytorchPeer>(kCheckpointScript);
    } catch (const std::exception& error) {
      rows_.set_absent("pytorch", error.what());
    }
  }

  std::vector<std::string> open_peer(int64_t bytes) {
    if (!peer_) return {};
    try {
      return peer_->open({{"bytes", bytes}, {"folder", scratch_.path.string()}, {"threads", threads_}}, rows_.absent());
    } catch (const std::runtime_error& error) {
      rows_.set_absent("pytorch", error.what());
      peer_.reset();
      return {};
    }
  }

  /// The rows of one size. Their samples come from the same rounds.
  void measure(int64_t bytes) {
    SavedState state(context_, bytes, scratch_.path);
    const std::vector<std::string> modes = open_peer(bytes);
    state.block();  // allocates its memory, which is kept from here on
    state.copy();
    const std::string size = " " + std::to_string(bytes / kMebibyte) + " MiB";
    BenchRow snapshot = row_of("snapshot" + size), write = row_of("write" + size), load = row_of("load" + size),
             proved = row_of("load, proved first," + size);
    const double megabytes = static_cast<double>(bytes) / 1e6;
    for (int64_t round = 0; round < rounds_; ++round) {
      add(snapshot, megabytes / state.copy(), megabytes / state.block());
      add(write, megabytes / state.write_plain(), megabytes / state.save());
      state.load(true);  // not counted: right after a save the system is still busy with it, which a resume would not see
      add(load, megabytes / state.read_files(), megabytes / state.load(true));
      add(proved, load.peak.back(), megabytes / state.load(false));
      for (const std::string& mode : modes) {
        const double speed = megabytes / peer_->step(mode).seconds;
        (mode.ends_with("save") ? write : load).peers[mode].push_back(speed);
      }
    }
    const double disk = quantile(write.peak, 0.5) * 1e6;
    for (BenchRow* row : {&snapshot, &write, &load, &proved}) rows_.add(std::move(*row));
    rows_.add(flush(state, disk / 2, size));
  }

  static BenchRow row_of(const std::string& name) {
    BenchRow row;
    row.name = name;
    return row;
  }

  static void add(BenchRow& row, double limit, double own) {
    row.peak.push_back(limit);
    row.own.push_back(own);
    row.fraction.push_back(own / limit);
  }

  /// Training steps during a save at half the disk's rate, against the same number of steps without: how much of its speed a step keeps.
  BenchRow flush(SavedState& state, double bytes_per_second, const std::string& size) {
    OwnStep step(context_, kFlushShape, draw_tokens(kFlushShape, 3 + 2 * kMostFlushSteps * rounds_));
    for (int i = 0; i < 3; ++i) step.step();
    BenchRow row = row_of("step during a flush of" + size);
    row.unit = "steps/s";
    for (int64_t round = 0; round < rounds_; ++round) {
      const Pending pending = state.flush(bytes_per_second);
      double during = 0, without = 0;
      int64_t steps = 0;
      for (int32_t is_done = 0; is_done == 0 && steps < kMostFlushSteps;) {
        const double seconds = step.step().seconds;
        cli::run(st_pending_poll(pending.get(), &is_done));
        if (is_done != 0 && steps > 0) break;  // a step during which the flush ended counts for neither side, unless it is the only one
        during += seconds;
        ++steps;
      }
      cli::run(st_pending_wait(pending.get(), -1));
      for (int64_t i = 0; i < steps; ++i) without += step.step().seconds;
      add(row, static_cast<double>(steps) / without, static_cast<double>(steps) / during);
    }
    return row;
  }

  int64_t rounds_, threads_;
  Context context_;
  ScratchFolder scratch_;
  std::unique_ptr<PytorchPeer> peer_;
  BenchRows rows_;
};

}  // namespace

void bench_checkpoint(const BenchOptions& options, int64_t rounds, int64_t threads) {
  if (options.against != "all" && options.against != "pytorch" && options.against != "none")
    refuse("--against is \"", options.against, "\"; the peer of a checkpoint is pytorch, and none turns it off");
  if (options.memory || options.tiles || !options.report.empty() || options.dtype != "fp32")
    refuse("bench checkpoint: --memory, --tiles, --report and --dtype are options of other benchmarks");
  const int64_t mebibytes = options.shape.empty() ? 0 : whole_number("--shape", options.shape);
  if (!options.shape.empty() && (mebibytes < 1 || mebibytes > 1 << 20)) refuse("--shape is ", mebibytes, "; give 1 to 1048576 MiB");
  CheckpointBench(options, rounds, threads)(mebibytes, options.shapes == "all");
}

}  // namespace cli
