// scaletrain bench gemm: the speed of matrix products, its fraction of this machine's FMA peak, and the speed of other libraries.
#include <sched.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <sstream>

#include "bench.h"
#include "bench_rows.h"
#include "bf16_peak.h"
#include "device_products.h"
#include "fma_peak.h"
#include "gemm_peer.h"
#include "gemm_summary.h"
#include "one_thread.h"
#include "own_gemm.h"
#include "tile_map.h"
#include "tuning_warnings.h"

namespace cli {
namespace {

constexpr std::array kGemmPeers = {"openblas", "blis", "onednn", "mkl"};

/// Parses a list such as "openblas,mkl". OpenBLAS yields two peers: its own choice of a core, and Haswell's. So does oneDNN: the newest
/// build, whose SYCL threads cost microseconds per call, and an older one with OpenMP.
std::vector<std::string> gemm_peers_of(const std::string& against) {
  std::vector<std::string> names;
  if (against == "none") return names;
  std::istringstream list(against == "all" ? "openblas,blis,onednn,mkl" : against + (against.empty() ? "?" : ""));
  for (std::string name; std::getline(list, name, ',');) {
    if (std::ranges::find(kGemmPeers, name) == kGemmPeers.end())
      refuse("--against is \"", against,
             "\"; the peers of a product are openblas, blis, onednn and mkl, joined by commas, and none turns them off");
    if (std::ranges::find(names, name) != names.end()) continue;
    names.push_back(name);
    if (name == "openblas") names.emplace_back("openblas-haswell");
    if (name == "onednn") names.emplace_back("onednn-openmp");
  }
  return names;
}

std::vector<Element> elements_of(const std::string& dtype) {
  if (dtype == "all") return {Element::fp32, Element::bf16, Element::fp16};
  for (const Element element : {Element::fp32, Element::bf16, Element::fp16})
    if (dtype == name_of(element)) return {element};
  refuse("--dtype is \"", dtype, "\"; it can be fp32, bf16, fp16 or all");
}

constexpr int32_t kTuneMs = 3000;

/// Pins this thread, and the processes forked from it, to the current core, so that the peak's loop runs on the core that has just made a
/// product, at its clock frequency.
void stay_on_this_core() {
  cpu_set_t core;
  CPU_ZERO(&core);
  CPU_SET(static_cast<size_t>(sched_getcpu()), &core);
  sched_setaffinity(0, sizeof core, &core);
}

class GemmBench {
 public:
  GemmBench(const BenchOptions& options, int64_t rounds, int64_t threads, const std::vector<std::string>& peers)
      : rounds_(rounds),
        threads_(threads),
        tune_(options.tune),
        libraries_(options.gemm_library == "auto"),
        rows_("gemm", "GFLOP/s", 1, options.json) {
    if (threads == 1) stay_on_this_core();
    for (const std::string& peer : peers) start_peer(peer);  // before any of our threads starts
    const int cores = static_cast<int>(threads);
    peaks_.emplace_back("fma", FmaPeak(cores));
    if (options.dtype == "bf16" || options.dtype == "all")
      for (const PeakLoop& loop : bf16_loops()) peaks_.emplace_back(loop.kind, CorePeak(loop, cores));
    st_context_options context;
    ask(st_context_options_init(&context, sizeof context));
    context.threads = static_cast<int32_t>(threads);
    context.log = warn_of_tuning;
    context_ = make<Context>(st_context_create, &context);
    if (threads > 1) one_thread_ = std::make_unique<OneThread>();
  }

  void operator()(std::span<const GemmShape> shapes) {
    std::string against;
    for (const auto& peer : peers_) against += (against.empty() ? ", against " : " ") + peer->name();
    rows_.start(std::to_string(threads_) + " threads, " + fma_loop().kind + " FMA loop, " + std::to_string(rounds_) + " rounds" + against);
    for (const GemmShape& shape : shapes) measure(shape);
    rows_.finish(summary_.json(), summary_.text());
  }

 private:
  void start_peer(const std::string& name) {
    try {
      peers_.push_back(std::make_unique<GemmPeer>(name, threads_));
    } catch (const GemmPeer::Gone& error) {
      rows_.set_absent(name, error.what());
    }
  }

  /// Measures a shape plain and packed, as it asks. Peers that cannot pack appear only in the plain row.
  void measure(const GemmShape& shape) {
    GemmOperands operands(shape);
    OwnGemm own(context_), measured(context_), automatic(context_);
    GemmSampler sampler(own, operands);
    std::optional<GemmSampler> tuned, fastest;
    if (tune_) {
      measured.set_tune_ms(kTuneMs);
      tuned.emplace(measured, operands);
    }
    if (libraries_) {
      automatic.let_libraries_compete();
      fastest.emplace(automatic, operands);
    }
    const bool scales = one_thread_ && OneThread::measures(shape);
    if (scales) one_thread_->open(operands);
    std::vector<GemmPeer*> plain, packing;
    open_peers(shape, plain, packing);
    BenchRow rows[2];
    for (int64_t round = 0; round < rounds_; ++round)
      for (const bool packed : {false, true}) {
        if (!(packed ? shape.packed : shape.plain)) continue;
        sample(sampler, packed ? packing : plain, shape, packed, rows[packed ? 1 : 0]);
        if (tuned) sample_also(kOwnTuned, *tuned, shape, packed, rows[packed ? 1 : 0]);
        if (fastest) sample_also(kOwnAuto, *fastest, shape, packed, rows[packed ? 1 : 0]);
        if (scales && !packed) compare_with_one(rows[0]);
      }
    for (const bool packed : {false, true}) {
      BenchRow& row = rows[packed ? 1 : 0];
      if (row.own.empty()) continue;
      if (fastest) row.library = automatic.info().library;
      summary_.add(shape, packed, row);
      rows_.add(std::move(row));
    }
    std::erase_if(peers_, [&](const auto& peer) { return rows_.absent().contains(peer->name()); });
  }

  void open_peers(const GemmShape& shape, std::vector<GemmPeer*>& plain, std::vector<GemmPeer*>& packing) {
    for (const auto& peer : peers_)
      lost(*peer, shape, [&] {
        const GemmPeer::Can can = peer->open(shape);
        if (can.multiply) plain.push_back(peer.get());
        if (can.pack) packing.push_back(peer.get());
        if (!can.multiply) rows_.set_absent(peer->name() + " " + name_of(shape.element), "it does not multiply such operands here");
      });
  }

  void sample(GemmSampler& own, std::vector<GemmPeer*>& peers, const GemmShape& shape, bool packed, BenchRow& row) {
    row.name = name_of(shape, packed);
    const uint64_t seed = ++seed_;
    const Sample ours = sample_of(own.seconds(seed, packed), shape);
    check_own(own, seed, packed);
    row.own.push_back(ours.speed), row.fraction.push_back(ours.fraction), row.peak.push_back(ours.peak);
    if (ours.fractions.size() > 1)
      for (size_t i = 0; i < ours.fractions.size(); ++i) row.fractions[peaks_[i].first].push_back(ours.fractions[i]);
    fma_ = ours.speed * 1e9 / ours.fractions[0];
    std::erase_if(peers, [&](GemmPeer* peer) {
      const bool gone = rows_.absent().contains(peer->name()) || lost(*peer, shape, [&] {
                          const Sample theirs = sample_of(peer->seconds(seed, packed), shape);
                          peer->check(seed, packed);
                          row.peers[peer->name()].push_back(theirs.speed), row.peer_fractions[peer->name()].push_back(theirs.fraction);
                        });
      if (gone) row.peers.erase(peer->name()), row.peer_fractions.erase(peer->name());
      return gone;
    });
  }

  /// With the operands of our own sample.
  void sample_also(const char* name, GemmSampler& also, const GemmShape& shape, bool packed, BenchRow& row) {
    const Sample sample = sample_of(also.seconds(seed_, packed), shape);
    check_own(also, seed_, packed);
    row.peers[name].push_back(sample.speed), row.peer_fractions[name].push_back(sample.fraction);
  }

  void compare_with_one(BenchRow& row) {
    const OneThread::Sample one = one_thread_->sample(++seed_);
    row.scaling.push_back(row.own.back() * 1e9 / one.speed), row.loop_scaling.push_back(fma_ / one.peak);
  }

  struct Sample {
    double speed, fraction, peak;   // GFLOP/s; fraction of the highest peak; FLOP/s
    std::vector<double> fractions;  // of each peak
  };

  /// Samples the peaks right after a product that took `seconds`, at the same clock frequency.
  Sample sample_of(double seconds, const GemmShape& shape) const {
    const size_t count = shape.element == Element::bf16 ? peaks_.size() : 1;
    const double speed = flops_of(shape) / seconds;
    Sample sample{speed / 1e9, 0, 0, {}};
    for (size_t i = 0; i < count; ++i) {
      const double peak = peaks_[i].second.measure_now();
      sample.fractions.push_back(speed / peak), sample.peak = std::max(sample.peak, peak);
    }
    sample.fraction = speed / sample.peak;
    return sample;
  }

  static void check_own(const GemmSampler& own, uint64_t seed, bool packed) {
    try {
      own.check(seed, packed);
    } catch (const WrongProduct& error) {
      throw Failure(kFailed, std::string("bench: own ") + error.what());
    }
  }

  /// Runs `what` and returns whether the peer was lost in it; our own speed remains valid.
  template <class Do>
  bool lost(const GemmPeer& peer, const GemmShape& shape, Do what) {
    try {
      what();
      return false;
    } catch (const GemmPeer::Gone& error) {
      rows_.set_absent(peer.name(), name_of(shape, false) + ": " + error.what());
      return true;
    }
  }

  int64_t rounds_, threads_;
  bool tune_, libraries_;
  uint64_t seed_ = 0;
  double fma_ = 0;  // FLOP/s right after our last sample
  BenchRows rows_;
  GemmSummary summary_;
  std::vector<std::unique_ptr<GemmPeer>> peers_;
  std::vector<std::pair<std::string, CorePeak>> peaks_;  // the FMA peak first
  Context context_;
  std::unique_ptr<OneThread> one_thread_;  // only if there are several threads
};

}  // namespace

void bench_gemm(const BenchOptions& options, int64_t rounds, int64_t threads) {
  const std::vector<std::string> peers = gemm_peers_of(options.against);
  if (!options.shape.empty() && !options.shapes.empty()) refuse("--shape names products, --shapes all is all of them; give one of the two");
  if (options.memory) refuse("bench gemm: --memory is an option of bench step");
  const bool is_on_device = options.device != "cpu";
  if (!options.report.empty() && !options.tiles && !is_on_device) refuse("bench gemm: --report needs --tiles");
  const std::vector<Element> elements = elements_of(options.dtype);
  const std::vector<GemmShape> named = options.shape.empty() ? std::vector<GemmShape>{{1024, 1024, 1024}} : gemm_shapes_of(options.shape);
  if (options.tiles) {
    if (!options.shapes.empty()) refuse("--tiles measures one shape; give --shape MxNxK instead of --shapes");
    if (named.size() > 1) refuse("--tiles measures one shape, got ", named.size(), " in --shape ", options.shape, "; give MxNxK");
    if (elements.size() > 1) refuse("--tiles measures one element type; give --dtype fp32, bf16 or fp16");
    GemmShape one = named[0];
    one.element = elements[0];
    is_on_device ? map_device_tiles(one, options, rounds) : map_tiles(one, options, rounds, threads);
    return;
  }
  std::vector<GemmShape> shapes;
  for (const Element element : elements) {
    const auto take = [&](std::span<const GemmShape> more) {
      for (const GemmShape& shape : more) shapes.push_back(shape), shapes.back().element = element;
    };
    if (!options.shape.empty()) {
      take(named);
      continue;
    }
    take(usual_gemm_shapes(element));
    if (options.shapes == "all") take(more_gemm_shapes(element));
  }
  if (is_on_device) return tune_device_products(shapes, options, rounds);
  GemmBench(options, rounds, threads, peers)(shapes);
}

}  // namespace cli
