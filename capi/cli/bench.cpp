// scaletrain bench: checks the kind of benchmark, the rounds and the threads.
#include "bench.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "options.h"

namespace cli {
namespace {

/// `only_cpu`: a given option that has no meaning for devices of their own memory; "": none.
int run_bench(const BenchOptions& o, const std::string& only_cpu) {
  using Kind = std::pair<const char*, void (*)(const BenchOptions& options, int64_t rounds, int64_t threads)>;
  constexpr Kind kKinds[] = {{"step", bench_step},
                             {"gemm", bench_gemm},
                             {"optimizer", bench_optimizer},
                             {"collective", bench_collective},
                             {"checkpoint", bench_checkpoint}};
  const std::string choices = "; use step, gemm, optimizer, collective or checkpoint";
  const bool calibrates = !o.calibrate.empty();
  if (calibrates && !o.kind.empty()) refuse("--calibrate measures the whole machine; leave out ", o.kind);
  if (!calibrates && (o.quick || !o.seconds.empty())) refuse(o.quick ? "--quick" : "--seconds", " is an option of bench --calibrate FILE");
  if (!calibrates && o.kind.empty()) refuse("bench: no benchmark given", choices);
  const auto* kind = std::ranges::find(kKinds, o.kind, &Kind::first);
  if (!calibrates && kind == std::end(kKinds)) refuse("bench: unknown benchmark ", o.kind, choices);
  if (calibrates && o.device != "cpu")
    refuse("--device is ", o.device,
           ", but --calibrate measures the cpu alone: no GPU has been measured yet; leave --device out, or plan with the numbers of a data "
           "sheet, such as plan --machine a100-80g");
  if (o.device != "cpu" && (o.kind != "gemm" || o.tiles == o.tune))
    refuse("--device is an option of bench gemm --tiles and bench gemm --tune; other benchmarks are the cpu's");
  if (o.device != "cpu" && !only_cpu.empty())
    refuse(only_cpu, " is an option of products of the cpu; leave it out with --device ", o.device);
  if (o.tune && (o.kind != "gemm" || o.tiles)) refuse("--tune is an option of bench gemm, without --tiles");
  if (o.gemm_library != "own" && o.gemm_library != "auto") refuse("--gemm-library is \"", o.gemm_library, "\"; it can be own or auto");
  if (o.gemm_library == "auto" && (o.kind != "gemm" || o.tiles))
    refuse("--gemm-library auto is an option of bench gemm, without --tiles; for a training step it is a recipe key");
  if (!o.shapes.empty() && o.shapes != "all") refuse("--shapes is \"", o.shapes, "\"; it can only be all");
  const int64_t rounds = whole_number("--rounds", o.rounds), threads = whole_number("--threads", o.threads);
  if (rounds < 1) refuse("--rounds is ", rounds, "; give at least 1");
  if (threads < 0 || threads > 4096) refuse("--threads is ", threads, "; give 1 to 4096, or 0 for this process's cores");
  const int64_t used = threads > 0 ? threads : Json::parse(text(st_features))["cores"].get<int64_t>();
  calibrates ? bench_calibrate(o, threads) : kind->second(o, rounds, used);
  return kDone;
}

}  // namespace

Command bench_command(CLI::App& app) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command =
      app.add_subcommand("bench",
                         "measure: step (whole training steps of a GPT), gemm (matrix products), optimizer (unscale, clip and AdamW), "
                         "collective (all_reduce and others between ranks), checkpoint (saving and loading)");
  command->add_option("kind", options->kind, "what to measure: step, gemm, optimizer, collective, checkpoint");
  add_text(*command, "--rounds", options->rounds, "samples per side; sides alternate [15]");
  const CLI::Option* const threads = add_text(*command, "--threads", options->threads, "threads per side; 0: this process's cores [0]");
  const CLI::Option* const against = add_text(
      *command, "--against", options->against,
      "step, optimizer, checkpoint: pytorch (from the .venv, or the python named by SCALETRAIN_PYTHON); gemm: any of "
      "openblas,blis,onednn,mkl, "
      "each from the system, the .venv or the file named by SCALETRAIN_OPENBLAS and so on; collective: gloo,openmpi; or none [all]");
  add_text(*command, "--shapes", options->shapes, "all: also measure the longer list of shapes or sizes");
  add_text(*command, "--shape", options->shape, "measure only this: gemm: MxNxK[,MxNxK..]; collective: bytes; checkpoint: MiB");
  add_text(*command, "--dtype", options->dtype, "gemm: operands are fp32, bf16, fp16 or all; step: precision, fp32 or bf16 [fp32]");
  add_text(*command, "--device", options->device,
           "gemm --tiles, --tune: the device, NAME or NAME:INDEX; --tune then writes a table for SCALETRAIN_CUDA_PRODUCTS [cpu]");
  add_text(*command, "--ranks", options->ranks, "collective: number of threads, and of processes [2]");
  add_text(*command, "--serve", options->serve, "")->group("");
  add_text(*command, "--rank", options->rank, "")->group("");
  command->add_flag("--tiles", options->tiles, "gemm: measure every tile size for one shape instead [1024x1024x1024]");
  command->add_flag("--memory", options->memory, "step: measure its memory at contexts 512 to 4096 instead");
  command->add_flag("--tune", options->tune,
                    "gemm: also measure our product with tuned tiles (at most 3 s per shape, kept in the tuning cache)");
  const CLI::Option* const library =
      add_text(*command, "--gemm-library", options->gemm_library,
               "gemm: auto: also measure the fastest of our kernels, OpenBLAS, MKL and oneDNN, as the peer own-auto [own]");
  add_text(*command, "--report", options->report,
           "gemm --tiles: file for the HTML page with the map [bench_tiles.html]; --tune --device: for the table [products.jsonl]");
  add_text(
      *command, "--calibrate", options->calibrate,
      "measure how long the instructions of training steps take on this machine's processor (no GPU's yet), and write their rates to this "
      "file, for plan --machine");
  add_text(*command, "--seconds", options->seconds,
           std::string("--calibrate: time to measure, 0 to 600 [") + kCalibrateSeconds + "; with --quick " + kQuickSeconds + "]");
  command->add_flag("--quick", options->quick, "--calibrate: only the smallest models, on one rank; predicts large models badly");
  command->add_flag("--json", options->json, "one JSON object");
  return {command, [options, only_cpu = std::vector{threads, against, library}] {
            const auto given = std::ranges::find_if(only_cpu, [](const CLI::Option* option) { return option->count() > 0; });
            return run_bench(*options, given == only_cpu.end() ? "" : (*given)->get_name());
          }};
}

}  // namespace cli
