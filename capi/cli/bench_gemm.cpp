// scaletrain bench gemm: the speed of matrix products, the share of this machine's FMA peak, and the libraries beside it.
#include <algorithm>
#include <array>
#include <memory>
#include <sstream>

#include "bench.h"
#include "bench_rows.h"
#include "fma_peak.h"
#include "gemm_peer.h"
#include "own_gemm.h"
#include "tile_map.h"

namespace cli {
namespace {

constexpr std::array kGemmPeers = {"openblas", "blis", "onednn", "mkl"};

/// A list as "openblas,mkl". OpenBLAS is two: its own choice of a core, and Haswell's. So is oneDNN: the newest build, whose threads are
/// SYCL's and cost microseconds a call, and an older one with OpenMP's.
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

class GemmBench {
 public:
  GemmBench(const BenchOptions& options, int64_t rounds, int64_t threads, const std::vector<std::string>& peers)
      : rounds_(rounds), threads_(threads), rows_("gemm", "GFLOP/s", 1, options.json) {
    for (const std::string& peer : peers) start_peer(peer);  // before any thread of ours runs
    peak_ = std::make_unique<FmaPeak>(static_cast<int>(threads));
    st_context_options context;
    ask(st_context_options_init(&context, sizeof context));
    context.threads = static_cast<int32_t>(threads);
    context_ = make<Context>(st_context_create, &context);
  }

  void operator()(std::span<const GemmShape> shapes, std::span<const GemmShape> more) {
    std::string beside;
    for (const auto& peer : peers_) beside += (beside.empty() ? ", beside " : " ") + peer->name();
    rows_.start(std::to_string(threads_) + " threads, " + peak_->kind() + " FMA loop, " + std::to_string(rounds_) + " rounds" + beside);
    for (const GemmShape& shape : shapes) measure(shape);
    for (const GemmShape& shape : more) measure(shape);
    rows_.finish();
  }

 private:
  void start_peer(const std::string& name) {
    try {
      peers_.push_back(std::make_unique<GemmPeer>(name, threads_));
    } catch (const GemmPeer::Gone& error) {
      rows_.set_absent(name, error.what());
    }
  }

  /// Plain, and packed where the shape is. Peers that do not pack are only in the plain row.
  void measure(const GemmShape& shape) {
    GemmOperands operands(shape);
    OwnGemm own(context_);
    GemmSampler sampler(own, operands);
    std::vector<GemmPeer*> plain, packing;
    for (const auto& peer : peers_) plain.push_back(peer.get());
    std::erase_if(plain, [&](GemmPeer* peer) {
      return lost(*peer, shape, [&] {
        if (peer->open(shape)) packing.push_back(peer);
      });
    });
    BenchRow rows[2];
    const int kinds = shape.packed ? 2 : 1;
    for (int64_t round = 0; round < rounds_; ++round)
      for (int packed = 0; packed < kinds; ++packed) sample(sampler, packed == 1 ? packing : plain, shape, packed == 1, rows[packed]);
    for (int packed = 0; packed < kinds; ++packed) rows_.add(std::move(rows[packed]));
    std::erase_if(peers_, [&](const auto& peer) { return rows_.absent().contains(peer->name()); });
  }

  void sample(GemmSampler& own, std::vector<GemmPeer*>& peers, const GemmShape& shape, bool packed, BenchRow& row) {
    row.name = name_of(shape, packed);
    const uint64_t seed = ++seed_;
    const Sample ours = between([&] { return own_seconds(own, seed, packed); }, shape);
    row.own.push_back(ours.speed), row.fraction.push_back(ours.fraction), row.peak.push_back(ours.peak);
    std::erase_if(peers, [&](GemmPeer* peer) {
      const bool gone = rows_.absent().contains(peer->name()) || lost(*peer, shape, [&] {
                          const Sample theirs = between([&] { return peer->seconds(seed, packed); }, shape);
                          row.peers[peer->name()].push_back(theirs.speed), row.peer_fractions[peer->name()].push_back(theirs.fraction);
                        });
      if (gone) row.peers.erase(peer->name()), row.peer_fractions.erase(peer->name());
      return gone;
    });
  }

  struct Sample {
    double speed, fraction, peak;  // GFLOP/s; of the peak; FLOP/s
  };

  /// Between two samples of the peak, the second of which is the first of the next: the clock moves.
  template <class Seconds>
  Sample between(Seconds seconds, const GemmShape& shape) {
    if (last_peak_ == 0) last_peak_ = peak_->measure();
    const double before = last_peak_, speed = flops_of(shape) / seconds(), peak = (before + (last_peak_ = peak_->measure())) / 2;
    return {speed / 1e9, speed / peak, peak};
  }

  static double own_seconds(GemmSampler& own, uint64_t seed, bool packed) {
    try {
      return own.seconds(seed, packed);
    } catch (const WrongProduct& error) {
      throw Failure(kFailed, std::string("bench: own ") + error.what());
    }
  }

  /// Whether the peer was lost while it did that; without it there is still our speed.
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
  uint64_t seed_ = 0;
  double last_peak_ = 0;
  BenchRows rows_;
  std::vector<std::unique_ptr<GemmPeer>> peers_;
  std::unique_ptr<FmaPeak> peak_;
  Context context_;
};

}  // namespace

void bench_gemm(const BenchOptions& options, int64_t rounds, int64_t threads) {
  const std::vector<std::string> peers = gemm_peers_of(options.against);
  if (!options.shape.empty() && !options.shapes.empty()) refuse("--shape is one product, --shapes all is all of them; give one of the two");
  if (!options.report.empty() && !options.tiles) refuse("bench gemm: --report is of --tiles");
  const GemmShape one = options.shape.empty() ? GemmShape{1024, 1024, 1024} : gemm_shape_of(options.shape);
  if (options.tiles) {
    if (!options.shapes.empty()) refuse("--tiles is of one shape; give --shape MxNxK instead of --shapes");
    map_tiles(one, options, rounds, threads);
    return;
  }
  GemmBench bench(options, rounds, threads, peers);
  if (!options.shape.empty())
    bench({&one, 1}, {});
  else
    bench(usual_gemm_shapes(), options.shapes == "all" ? more_gemm_shapes() : std::span<const GemmShape>{});
}

}  // namespace cli
