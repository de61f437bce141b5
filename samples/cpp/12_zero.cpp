// ZeRO between processes: each rank holds only its shards of parameters, gradients and optimizer state; the bits are those of one rank. All
// ranks save one checkpoint together, each its own shards, and read a whole weight; then a single process resumes from the checkpoint.
// Calls that end in _collective are made by all ranks. Prints the numbers of 12_zero.c. Build: c++ -std=c++17 12_zero.cpp -lscaletrain Run:
// scaletrain launch -n 2 -- 12_zero FOLDER
#include <cmath>
#include <cstdio>
#include <memory>
#include <scaletrain.hpp>
#include <string>
#include <vector>

namespace {

constexpr int64_t kRows = 64, kBatch = 8;
constexpr int kSteps = 50;

/// y = sin x by a small built-in model.
scaletrain::Model make_model(const scaletrain::Context& context) {
  return {context, "mlp", R"({"inputs": 1, "hidden": [64, 64], "outputs": 1})", 1};
}

scaletrain::Recipe recipe(int zero) {
  scaletrain::Recipe made(R"({"batch": 8, "micro_batches": 8, "lr": 0.01, "weight_decay": 0})");
  made.set("zero", std::to_string(zero));
  return made;
}

/// Trains on the rows of this rank: every size-th micro-batch of a step.
scaletrain::StepReport train(const scaletrain::Trainer& trainer, int rank, int size) {
  std::vector<float> x, y;
  for (int64_t i = 0; i < kRows; ++i) {
    if (i / kBatch % size != rank) continue;
    x.push_back(-3.0F + 6.0F * static_cast<float>(i) / (kRows - 1));
    y.push_back(std::sin(x.back()));
  }
  const auto count = static_cast<int64_t>(x.size());
  const scaletrain::Views batch{{"x", scaletrain::view(x, {count, 1})}, {"y", scaletrain::view(y, {count, 1})}};
  scaletrain::StepReport report;
  for (int step = 0; step < kSteps; ++step) report = trainer.step(batch);
  return report;
}

/// Resumes from the checkpoint on one rank, which has the whole state.
std::string resume_alone(const scaletrain::Context& context, const scaletrain::Checkpoint& checkpoint) {
  const scaletrain::Model model = make_model(context);
  const scaletrain::Trainer trainer(model, recipe(0));
  trainer.resume(checkpoint);
  const auto report = train(trainer, 0, 1);
  std::printf("1 rank   step %d  loss %.5f\n", static_cast<int>(report.step), report.loss);
  return trainer.digest();
}

}  // namespace

int main(int argc, char** argv) try {
  scaletrain::ContextOptions where;
  if (argc > 1 && std::string(argv[argc - 1]) == "--device")
    return std::fprintf(stderr, "usage: %s [FOLDER] [--device NAME]\n", argv[0]), 2;
  if (argc > 2 && std::string(argv[argc - 2]) == "--device") where.device = argv[argc - 1];  // --device NAME at the end
  const scaletrain::Context context(where);
  const auto ranks = scaletrain::Communicator::env(context);  // as started by scaletrain launch, torchrun, mpirun or srun
  const int rank = ranks.rank(), size = ranks.size();
  scaletrain::CommunicatorOptions single;
  single.allow_single = true;
  const auto own = ranks.duplicate();                            // for this program's calls: `ranks` is the trainer's
  const auto half = ranks.split(2 * rank / size, rank, single);  // the ranks of a stage, if there were two stages
  const scaletrain::Model model = make_model(context);
  const scaletrain::Trainer trainer(model, recipe(3), ranks);

  scaletrain::CheckpointOptions options;
  options.read_only = rank != 0;  // rank 0 owns the folder; the others write into it
  std::unique_ptr<scaletrain::Checkpoint> checkpoint;
  const std::string folder = argc > 1 && argv[1][0] != '-' ? argv[1] : "zero_run";
  if (rank == 0) checkpoint = std::make_unique<scaletrain::Checkpoint>(context, folder, options);
  own.barrier("the folder is there");
  if (rank != 0) checkpoint = std::make_unique<scaletrain::Checkpoint>(context, folder, options);

  train(trainer, rank, size);
  trainer.save_collective(*checkpoint);
  const auto report = train(trainer, rank, size);
  const std::string state = trainer.digest_collective();
  std::vector<float> weight(64);
  model.get_collective("layer.0.weight", scaletrain::view(weight, {1, 64}));  // get() would throw: this rank has only its shard
  if (rank != 0) return 0;

  std::printf("%d ranks  step %d  loss %.5f\n", size, static_cast<int>(report.step), report.loss);
  std::printf("weights  %.4f %.4f .. %.4f\n", weight[0], weight[1], weight[63]);
  const bool alike = resume_alone(context, *checkpoint) == state;
  std::printf("%s\n", alike ? "the same bits" : "they differ");
  return alike ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
