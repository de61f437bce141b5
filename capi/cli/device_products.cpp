#include "device_products.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <vector>

#include "gemm_operands.h"
#include "heat_map.h"
#include "new_file.h"
#include "options.h"
#include "quantiles.h"

namespace cli {
namespace {

constexpr int64_t kTileSizes[] = {16, 32, 64, 128, 256};
constexpr int32_t kTileMs = 40;
constexpr int64_t kRoundMs = 100, kMostMs = 60'000;  // of --tune, for a problem

Context context_on(const std::string& device) {
  st_context_options options;
  ask(st_context_options_init(&options, sizeof options));
  options.device = device.c_str();
  return make<Context>(st_context_create, &options);
}

st_dtype c_dtype_of(Element element) { return element == Element::fp32 ? ST_F32 : element == Element::bf16 ? ST_BF16 : ST_F16; }

/// Transposed operands are stored as their transposes.
st_gemm_problem problem_of(const GemmShape& shape, st_dtype result) {
  st_gemm_problem problem;
  ask(st_gemm_problem_init(&problem, sizeof problem));
  problem.a_dtype = problem.b_dtype = c_dtype_of(shape.element);
  problem.c_dtype = result;
  problem.m = shape.m, problem.n = shape.n, problem.k = shape.k;
  problem.a_row = shape.transposed_a ? 1 : shape.k, problem.a_column = shape.transposed_a ? shape.m : 1;
  problem.b_row = shape.transposed_b ? 1 : shape.n, problem.b_column = shape.transposed_b ? shape.k : 1;
  return problem;
}

st_gemm_schedule schedule_of(int64_t tile_m, int64_t tile_n, int32_t library, int32_t ms) {
  st_gemm_schedule schedule;
  ask(st_gemm_schedule_init(&schedule, sizeof schedule));
  schedule.tile_m = tile_m, schedule.tile_n = tile_n;
  schedule.library = library, schedule.tune_ms = ms;
  return schedule;
}

st_gemm_info info_of(const Gemm& gemm) {
  st_gemm_info info;
  ask(st_gemm_info_init(&info, sizeof info));
  ask(st_gemm_plan_info(gemm.get(), &info));
  return info;
}

const char* name_of(st_dtype dtype) { return dtype == ST_F32 ? "f32" : dtype == ST_BF16 ? "bf16" : "f16"; }

bool is_simulated(const std::string& kernels) { return kernels.starts_with("simulated"); }
const char* what_times_are(const std::string& kernels) {
  return is_simulated(kernels) ? ". This device is simulated: its times say nothing about any GPU" : "";
}

struct DeviceTile {
  int64_t m, n;
  std::vector<double> speeds = {};  // GFLOP/s; empty: the device lacks it
  std::string why = {};
  double speed() const { return speeds.empty() ? -1 : quantile(speeds, 0.5); }
};

class DeviceSweep {
 public:
  DeviceSweep(const GemmShape& shape, const std::string& device) : operands_(shape), context_(context_on(device)) {
    for (const int64_t m : kTileSizes)
      for (const int64_t n : kTileSizes) tiles_.push_back({m, n});
    tiles_.push_back({0, 0});
  }

  void run(int64_t rounds) {
    for (int64_t round = 0; round < rounds; ++round)
      for (DeviceTile& tile : tiles_)
        if (tile.why.empty()) sample(tile, static_cast<uint64_t>(round + 1));
  }
  const std::vector<DeviceTile>& tiles() const { return tiles_; }
  const std::string& kernels() const { return kernels_; }

 private:
  void sample(DeviceTile& tile, uint64_t seed) {
    const st_gemm_problem problem = problem_of(operands_.shape(), ST_F32);
    const st_gemm_schedule schedule = schedule_of(tile.m, tile.n, ST_GEMM_LIBRARY_OWN, kTileMs);
    st_gemm* made = nullptr;
    const st_status status = st_gemm_plan_create(context_.get(), &problem, &schedule, &made);
    if (status == ST_UNSUPPORTED && tile.m > 0) {
      tile.why = st_last_error();
      return;
    }
    ask(status);
    const Gemm gemm(made);
    const st_gemm_info info = info_of(gemm);
    kernels_ = info.instruction_set;
    operands_.draw(seed);
    multiply(gemm, problem);
    if (const std::string wrong = operands_.difference(seed); !wrong.empty()) throw Failure(kFailed, "bench: the device computes " + wrong);
    tile.speeds.push_back(info.flops_per_second / 1e9);
  }
  void multiply(const Gemm& gemm, const st_gemm_problem& p) {
    const auto view = [](int64_t rows, int64_t columns, int64_t row, int64_t column, void* data, st_dtype dtype, int64_t(&numbers)[4]) {
      numbers[0] = rows, numbers[1] = columns, numbers[2] = row, numbers[3] = column;
      return st_view{dtype, 2, numbers, numbers + 2, data, rows * columns * (dtype == ST_F32 ? 4 : 2), 0, 0};
    };
    int64_t of_a[4], of_b[4], of_c[4];
    const st_view a = view(p.m, p.k, p.a_row, p.a_column, operands_.a(), p.a_dtype, of_a);
    const st_view b = view(p.k, p.n, p.b_row, p.b_column, operands_.b(), p.b_dtype, of_b);
    const st_view c = view(p.m, p.n, p.n, 1, operands_.c(), ST_F32, of_c);
    cli::run(st_gemm_run(gemm.get(), 1, &a, &b, 0, &c, nullptr));
  }

  GemmOperands operands_;
  Context context_;
  std::vector<DeviceTile> tiles_;
  std::string kernels_;
};

HeatMap map_of_tiles(const std::vector<DeviceTile>& tiles, double best) {
  HeatMap map{"fraction of the fastest", "tile_m", "tile_n", {}, {}, {}, {}};
  for (const int64_t size : kTileSizes) {
    map.rows.push_back(std::to_string(size));
    map.columns.push_back(std::to_string(size));
  }
  constexpr size_t kTilesOfASide = std::size(kTileSizes);
  map.values.assign(kTilesOfASide, std::vector<double>(kTilesOfASide, -1));
  map.notes.assign(kTilesOfASide, std::vector<std::string>(kTilesOfASide));
  for (size_t i = 0; i < kTilesOfASide * kTilesOfASide; ++i) {
    const DeviceTile& tile = tiles[i];
    char speed[48];
    std::snprintf(speed, sizeof speed, "%.1f GFLOP/s", tile.speed());
    if (!tile.speeds.empty()) map.values[i / kTilesOfASide][i % kTilesOfASide] = tile.speed() / best;
    map.notes[i / kTilesOfASide][i % kTilesOfASide] = tile.speeds.empty() ? tile.why : speed;
  }
  return map;
}

Json json_of_rows(const std::string& kernels, const Json& rows) {
  return {{"bench", "gemm"}, {"kernels", kernels}, {"simulated", is_simulated(kernels)}, {"rows", rows}};
}

Json json_of_tiles(const GemmShape& shape, const std::vector<DeviceTile>& tiles, const std::string& kernels) {
  Json rows = Json::array();
  for (const DeviceTile& tile : tiles) {
    Json row = {
        {"name", name_of(shape, false) + (tile.m == 0 ? " chosen" : " tile " + std::to_string(tile.m) + "x" + std::to_string(tile.n))}};
    if (tile.speeds.empty())
      row["why"] = tile.why;
    else
      row["own"] = tile.speed(), row["unit"] = "GFLOP/s";
    rows.push_back(row);
  }
  return json_of_rows(kernels, rows);
}

/// The word after `key` in a kernel class; "" if there is none.
std::string word_after(const std::string& kernels, const std::string& key) {
  const size_t at = kernels.find(key);
  if (at == std::string::npos) return "";
  const size_t begin = at + key.size();
  return kernels.substr(begin, kernels.find_first_of(" ,", begin) - begin);
}

/// The first line of the table: what it is measured on, as the kernel class has it.
std::string header_of(const std::string& kernels) {
  const std::string version = word_after(kernels, "cublasLt=");
  if (version.empty() && !is_simulated(kernels))
    refuse("bench gemm --tune --device: this device has no table of products; its kernels are ", kernels);
  const std::string device = is_simulated(kernels) ? "simulated" : word_after(kernels, "cuda ");
  return Json{{"products", 1}, {"device", device}, {"cublasLt", version.empty() || version == "none" ? 0 : std::stoll(version)}}.dump() +
         "\n";
}

struct TimedProduct {
  st_gemm_info info;
  double us;
};

/// Nothing: the device has no such kernels.
std::optional<TimedProduct> timed_product(const Context& context, const GemmShape& shape, st_dtype result, int32_t library,
                                          int64_t rounds) {
  const st_gemm_problem problem = problem_of(shape, result);
  const st_gemm_schedule schedule = schedule_of(0, 0, library, static_cast<int32_t>(std::min(rounds * kRoundMs, kMostMs)));
  const Gemm gemm = make<Gemm>(st_gemm_plan_create, context.get(), &problem, &schedule);
  const st_gemm_info info = info_of(gemm);
  if (info.flops_per_second == 0) return std::nullopt;
  return TimedProduct{info, flops_of(shape) / info.flops_per_second * 1e6};
}

/// Rows of the table, with a bias and without. Plans measure without one: a row with a bias has the choice and the times of the product
/// alone, where cuBLASLt may number its algorithms in another order.
std::string table_rows_of(const GemmShape& shape, st_dtype result, const TimedProduct& best, double other_us) {
  const std::string library = best.info.library;
  std::string all;
  for (const bool bias : {false, true}) {
    if (bias && shape.transposed_a) continue;  // a gradient of weights has none
    Json row = {
        {"m", shape.m}, {"n", shape.n}, {"k", shape.k}, {"a", shape.transposed_a ? "t" : "n"}, {"b", shape.transposed_b ? "t" : "n"}};
    row["in"] = name_of(c_dtype_of(shape.element)), row["out"] = name_of(result);
    row["bias"] = bias, row["adds"] = false;
    if (library == "own") {
      row["by"] = "own", row["tile"] = std::to_string(best.info.tile_m) + "x" + std::to_string(best.info.tile_n);
    } else {
      row["by"] = "cublasLt", row["algorithm"] = std::stoll(library.substr(library.find('-') + 1));
    }
    row["us"] = best.us, row["other_us"] = other_us;
    all += row.dump() + "\n";
  }
  return all;
}

/// The product and, of a layer's output, those of the gradients of its input and weight; the lists of shapes have gradients too.
std::vector<GemmShape> layer_products_of(const GemmShape& shape) {
  if (shape.transposed_a || shape.transposed_b) return {shape};
  GemmShape input = shape, weight = shape;
  input.n = shape.k, input.k = shape.n, input.transposed_b = true;
  weight.m = shape.k, weight.k = shape.m, weight.transposed_a = true;
  return {shape, input, weight};
}

}  // namespace

void map_device_tiles(const GemmShape& shape, const BenchOptions& options, int64_t rounds) {
  const std::filesystem::path page = options.report.empty() ? "bench_tiles.html" : options.report;
  const std::filesystem::path image = std::filesystem::path(page).replace_extension(".png");
  if (image == page) refuse("--report is \"", page.string(), "\"; the PNG uses that name, give the page another one");
  NewFile to_page(page.string());

  DeviceSweep sweep(shape, options.device);
  sweep.run(rounds);
  const std::vector<DeviceTile>& tiles = sweep.tiles();
  const DeviceTile& chosen = tiles.back();
  const DeviceTile& best = *std::ranges::max_element(tiles, {}, &DeviceTile::speed);
  const std::string text =
      name_of(shape, false) + " on " + options.device + " (" + sweep.kernels() + "), median of " + std::to_string(rounds) +
      " rounds, as a fraction of the fastest tile. Point at a cell for its speed, or for what a tile that the device lacks "
      "would take" +
      what_times_are(sweep.kernels()) + ".";
  const std::vector<HeatMap> maps = {map_of_tiles(tiles, best.speed())};
  to_page.add(html_of("Tiles of a matrix product", text, maps));
  to_page.finish();
  NewFile to_image(image.string());
  to_image.add(png_of(maps));
  to_image.finish();
  if (options.json)
    std::printf("%s\n", json_of_tiles(shape, tiles, sweep.kernels()).dump().c_str());
  else
    std::printf("%s on %s\nchosen  %.1f GFLOP/s\nfastest %lldx%lld: %.1f GFLOP/s%s\nthe map is in %s and %s\n",
                name_of(shape, false).c_str(), options.device.c_str(), chosen.speed(), static_cast<long long>(best.m),
                static_cast<long long>(best.n), best.speed(), what_times_are(sweep.kernels()), page.c_str(), image.c_str());
}

void tune_device_products(const std::vector<GemmShape>& shapes, const BenchOptions& options, int64_t rounds) {
  const std::string file = options.report.empty() ? "products.jsonl" : options.report;
  const Context context = context_on(options.device);
  NewFile to_table(file);
  std::string table, kernels;
  Json rows = Json::array();
  std::vector<std::string> done;
  for (const GemmShape& listed : shapes)
    for (const GemmShape& shape : layer_products_of(listed))
      for (const st_dtype result : {c_dtype_of(shape.element), st_dtype{ST_F32}}) {
        const std::string name = name_of(shape, false) + " to " + name_of(result);
        if (std::ranges::find(done, name) != done.end()) continue;
        done.push_back(name);
        const auto own = timed_product(context, shape, result, ST_GEMM_LIBRARY_OWN, rounds),
                   any = timed_product(context, shape, result, ST_GEMM_LIBRARY_AUTO, rounds);
        if (!own || !any) continue;
        kernels = any->info.instruction_set;
        const bool is_own = std::string(any->info.library) == "own" || own->us <= any->us;
        table += is_own ? table_rows_of(shape, result, *own, any->us) : table_rows_of(shape, result, *any, own->us);
        rows.push_back({{"name", name}, {"own", own->us}, {"fastest", any->us}, {"library", any->info.library}, {"unit", "us"}});
        if (!options.json) std::printf("%-40s %s %.1f us, ours %.1f us\n", name.c_str(), any->info.library, any->us, own->us);
      }
  if (table.empty()) throw Failure(kFailed, "bench gemm --tune: the device " + options.device + " measured nothing");
  to_table.add(header_of(kernels) + table);
  to_table.finish();
  Json result = json_of_rows(kernels, rows);
  result["table"] = file;
  if (options.json)
    std::printf("%s\n", result.dump().c_str());
  else
    std::printf("the table is in %s; use it with SCALETRAIN_CUDA_PRODUCTS=%s%s\n", file.c_str(), file.c_str(), what_times_are(kernels));
}

}  // namespace cli
