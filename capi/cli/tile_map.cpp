#include "tile_map.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "fma_peak.h"
#include "heat_map.h"
#include "options.h"
#include "own_gemm.h"
#include "quantiles.h"

namespace cli {
namespace {

constexpr int64_t kTiles[] = {16, 32, 64, 128, 256, 512, 1024};
constexpr int64_t kDepths[] = {32, 128, 512, 0};  // tile_k; 0: the library's choice

/// Tiles larger than the size are all one tile; only the first of them is measured.
bool covers_less(int64_t tile, int64_t size) { return tile / 2 < size; }

struct Tile {
  int64_t m, n, k;
  std::vector<double> speeds, fractions;  // GFLOP/s and fraction of the peak, per round
  std::string became;                     // the tile actually used
};

class TileSweep {
 public:
  TileSweep(const GemmShape& shape, int64_t threads) : operands_(shape), peak_(static_cast<int>(threads)) {
    st_context_options context;
    ask(st_context_options_init(&context, sizeof context));
    context.threads = static_cast<int32_t>(threads);
    context_ = make<Context>(st_context_create, &context);
    for (const int64_t k : kDepths)
      for (const int64_t m : kTiles)
        for (const int64_t n : kTiles)
          if (covers_less(m, shape.m) && covers_less(n, shape.n) && covers_less(k, shape.k)) tiles_.push_back({m, n, k, {}, {}, ""});
    tiles_.push_back({0, 0, 0, {}, {}, ""});
  }

  void run(int64_t rounds) {
    for (int64_t round = 0; round < rounds; ++round)
      for (Tile& tile : tiles_) sample(tile, static_cast<uint64_t>(round + 1));
  }

  const std::vector<Tile>& tiles() const { return tiles_; }
  const char* loop() const { return peak_.kind(); }

 private:
  // Plans are created for each sample: the scratch memory of hundreds of plans would take gigabytes.
  void sample(Tile& tile, uint64_t seed) {
    OwnGemm own(context_, tile.m, tile.n, tile.k);
    GemmSampler sampler(own, operands_);
    const double speed = flops_of(operands_.shape()) / sampler.seconds(seed, false), peak = peak_.measure_now();
    sampler.check(seed, false);
    tile.speeds.push_back(speed / 1e9), tile.fractions.push_back(speed / peak);
    const st_gemm_info info = own.info();
    tile.became = std::to_string(info.tile_m) + "x" + std::to_string(info.tile_n) + "x" + std::to_string(info.tile_k);
  }

  GemmOperands operands_;
  FmaPeak peak_;
  Context context_;
  std::vector<Tile> tiles_;
};

std::string gflops(const Tile& tile) {
  char text[96];
  std::snprintf(text, sizeof text, "%.1f GFLOP/s, %.3f of peak", quantile(tile.speeds, 0.5), quantile(tile.fractions, 0.5));
  return text;
}

std::vector<HeatMap> maps_of(const GemmShape& shape, const std::vector<Tile>& tiles) {
  std::vector<int64_t> ms, ns;
  for (const int64_t size : kTiles) {
    if (covers_less(size, shape.m)) ms.push_back(size);
    if (covers_less(size, shape.n)) ns.push_back(size);
  }
  std::vector<HeatMap> maps;
  for (const int64_t k : kDepths) {
    if (!covers_less(k, shape.k)) continue;
    HeatMap map{k == 0 ? "tile_k chosen by the library" : "tile_k " + std::to_string(k), "tile_m", "tile_n", {}, {}, {}, {}};
    for (const int64_t m : ms) map.rows.push_back(std::to_string(m));
    for (const int64_t n : ns) map.columns.push_back(std::to_string(n));
    map.values.assign(ms.size(), std::vector<double>(ns.size(), -1));
    map.notes.assign(ms.size(), std::vector<std::string>(ns.size()));
    for (const Tile& tile : tiles) {
      if (tile.k != k || tile.m == 0) continue;
      const auto i = static_cast<size_t>(std::ranges::find(ms, tile.m) - ms.begin());
      const auto j = static_cast<size_t>(std::ranges::find(ns, tile.n) - ns.begin());
      map.values[i][j] = quantile(tile.fractions, 0.5);
      map.notes[i][j] = tile.became + ": " + gflops(tile);
    }
    maps.push_back(std::move(map));
  }
  return maps;
}

const Tile& best_of(const std::vector<Tile>& tiles) {
  return *std::ranges::max_element(tiles, {}, [](const Tile& tile) { return quantile(tile.fractions, 0.5); });
}

Json json_of(const GemmShape& shape, const std::vector<Tile>& tiles) {
  Json rows = Json::array();
  for (const Tile& tile : tiles)
    rows.push_back({{"name", name_of(shape, false) + (tile.m == 0 ? " chosen"
                                                                  : " tile " + std::to_string(tile.m) + "x" + std::to_string(tile.n) + "x" +
                                                                        std::to_string(tile.k))},
                    {"tile", tile.became},
                    {"own", quantile(tile.speeds, 0.5)},
                    {"unit", "GFLOP/s"},
                    {"limit_fraction", quantile(tile.fractions, 0.5)},
                    {"peers", Json::object()},
                    {"ratio", Json::object()}});
  return {{"bench", "gemm"}, {"rows", rows}, {"geomean", Json::object()}, {"absent", Json::object()}};
}

void write_file(const std::filesystem::path& path, const std::string& content) {
  std::ofstream file(path, std::ios::binary);
  file << content;
  file.close();
  if (!file) throw Failure(kFailed, "bench: cannot write " + path.string());
}

}  // namespace

void map_tiles(const GemmShape& shape, const BenchOptions& options, int64_t rounds, int64_t threads) {
  const std::filesystem::path page = options.report.empty() ? "bench_tiles.html" : options.report;
  const std::filesystem::path image = std::filesystem::path(page).replace_extension(".png");
  if (image == page) refuse("--report is \"", page.string(), "\"; the PNG uses that name, give the page another one");
  write_file(page, "");  // fail before minutes of measuring, not after

  TileSweep sweep(shape, threads);
  sweep.run(rounds);
  const std::vector<Tile>& tiles = sweep.tiles();
  const Tile &best = best_of(tiles), &chosen = tiles.back();
  const std::string text = name_of(shape, false) + ", " + std::to_string(threads) + " threads, median of " + std::to_string(rounds) +
                           " rounds, as a fraction of the peak of an " + sweep.loop() +
                           " FMA loop measured with each sample. Chosen by the library: " + chosen.became + ", " + gflops(chosen) +
                           ". Fastest: " + best.became + ", " + gflops(best) +
                           ". Point at a cell for the tile actually used and its speed.";
  const std::vector<HeatMap> maps = maps_of(shape, tiles);
  write_file(page, html_of("Tiles of a matrix product", text, maps));
  write_file(image, png_of(maps));
  if (options.json)
    std::printf("%s\n", json_of(shape, tiles).dump().c_str());
  else
    std::printf("%s\nchosen  %s: %s\nfastest %s: %s\nthe map is in %s and %s\n", name_of(shape, false).c_str(), chosen.became.c_str(),
                gflops(chosen).c_str(), best.became.c_str(), gflops(best).c_str(), page.c_str(), image.c_str());
}

}  // namespace cli
