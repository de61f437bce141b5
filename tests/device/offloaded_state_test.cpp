// Optimizer state, gradients and parameters in the host's memory while a device trains: the bits of what is resident, the bytes that are
// planned.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dataset_rows.h"
#include "delayed_backend.h"
#include "device_ranks.h"
#include "plan/exchange_memory.h"
#include "refusal.h"
#include "saved_trainer.h"
#include "train/predictor.h"
#include "training.h"

namespace st {
namespace {

using OffloadKeys = std::vector<std::pair<const char*, const char*>>;

/// A context of the delayed device, and the device.
struct OffloadDevice {
  explicit OffloadDevice(Order order, Planted planted = Planted::nothing, bool records = true) {
    context = std::make_shared<Context>(
        ContextOptions{.threads = 1, .log = {}, .parallel = {}, .memory = {}, .make_backend = [=, this](const auto& source) {
                         auto made = std::make_unique<DelayedBackend>(make_cpu_backend(source), source, order, planted, records);
                         device = made.get();
                         return made;
                       }});
  }
  std::unique_ptr<Trainer> trainer(const Training& training) const {
    return training.trainer_of(std::make_shared<Model>(context, build_gpt(training.options), 1), training.data());
  }
  MemoryAccount::Uses uses() const { return context->memory()->account().uses(); }

  DelayedBackend* device = nullptr;
  std::shared_ptr<Context> context;
};

Training offload_training(const OffloadKeys& keys, const char* offload = "\"optimizer\"") {
  Training training{.device = "cpu", .recipe = {.batch = 2}, .ignored = true};
  training.options.heads = 2;  // of two tensor ranks, too
  training.options.vocabulary = 18;
  for (const auto& [key, value] : keys) training.recipe.set(key, value);
  training.recipe.set("offload", offload);
  return training;
}

/// Losses, an evaluation, one of the average if there is any, and the state.
std::string told_of(Trainer& trainer, const Training& training, int steps = 3) {
  std::string all;
  for (const double loss : losses_of(trainer, steps)) all += text(loss, " ");
  all += text(trainer.evaluate(training.data()).loss, " ");
  if (training.recipe.ema_decay > 0) all += text(trainer.evaluate_average(training.data()).loss, " ");
  return all + trainer.state_digest();
}

std::string told_by_cpu(const Training& training) {
  const auto trainer = training.trainer();
  return told_of(*trainer, training);
}

TEST(OffloadedState, HasTheBitsOfWhatIsResident) {
  for (const OffloadKeys& keys :
       {OffloadKeys{{"accumulate", "2"}}, OffloadKeys{{"precision", "\"bf16\""}, {"optimizer", "\"adamw-8bit\""}},
        OffloadKeys{{"precision", "\"fp16\""}, {"loss_scale_initial", "1e9"}, {"ema_decay", "0.9"}},  // skips
        OffloadKeys{{"optimizer", "\"muon\""}, {"recompute", "\"blocks\""}}, OffloadKeys{{"optimizer", "\"adafactor\""}}}) {
    const Training training = offload_training(keys);
    const std::string wanted = told_by_cpu(training);
    for (const Order order : kOrders)
      for (const bool records : {true, false}) {
        const auto trainer = OffloadDevice(order, Planted::nothing, records).trainer(training);
        EXPECT_GT(trainer->plan().memory.windows.size(), 1U);
        EXPECT_EQ(told_of(*trainer, training), wanted) << static_cast<int>(order) << ' ' << training.recipe.json();
      }
  }
}

TEST(OffloadedState, HasTheSameBitsOnRanksThatShareADevice) {
  const OffloadKeys whole = {{"micro_batches", "4"}};
  const std::string of_one = told_by_cpu(offload_training(whole, "\"none\""));
  for (const OffloadKeys& split :
       {OffloadKeys{{"ranks", "2"}}, OffloadKeys{{"ranks", "2"}, {"zero", "1"}},
        OffloadKeys{{"ranks", "2"}, {"zero", "2"}, {"overlap", "\"on\""}}, OffloadKeys{{"ranks", "3"}, {"zero", "3"}},
        OffloadKeys{{"ranks", "2"}, {"stages", "2"}}, OffloadKeys{{"ranks", "4"}, {"stages", "2"}, {"zero", "1"}},
        OffloadKeys{{"ranks", "2"}, {"tensor", "2"}}}) {
    OffloadKeys keys = whole;
    keys.insert(keys.end(), split.begin(), split.end());
    const Training training = offload_training(keys);
    const std::string wanted = training.recipe.tensor > 1 ? told_by_cpu(offload_training(keys, "\"none\"")) : of_one;
    for (const Order order : kOrders) {
      const auto trainer = OffloadDevice(order).trainer(training);
      EXPECT_EQ(told_of(*trainer, training), wanted) << static_cast<int>(order) << ' ' << training.recipe.json();
    }
  }
}

/// Parameters are fetched for forward and backward too, and gradients for each micro-batch.
TEST(OffloadedState, HasTheBitsOfResidentParametersAndGradients) {
  for (const OffloadKeys& keys :
       {OffloadKeys{{"accumulate", "3"}, {"gradient_noise_scale", "true"}},
        OffloadKeys{{"precision", "\"bf16\""}, {"optimizer", "\"adamw-8bit\""}},
        OffloadKeys{{"precision", "\"fp16\""}, {"loss_scale_initial", "1e9"}, {"ema_decay", "0.9"}, {"recompute", "\"blocks\""}}}) {
    const std::string wanted = told_by_cpu(offload_training(keys, "\"none\""));
    for (const char* what : {"\"parameters\"", "\"gradients\""})
      for (const Order order : kOrders) {
        const Training training = offload_training(keys, what);
        const auto trainer = OffloadDevice(order).trainer(training);
        EXPECT_GT(trainer->plan().memory.windows.size(), 1U);
        EXPECT_EQ(told_of(*trainer, training), wanted) << static_cast<int>(order) << ' ' << training.recipe.json();
      }
  }
}

TEST(OffloadedState, HasTheBitsOfResidentParametersAndGradientsOnRanks) {
  const char *const parameters = "\"parameters\"", *const gradients = "\"gradients\"";
  for (const auto& [split, what] :
       {std::pair{OffloadKeys{{"ranks", "2"}}, gradients},
        {OffloadKeys{{"ranks", "2"}, {"zero", "1"}, {"precision", "\"bf16\""}}, parameters},
        {OffloadKeys{{"ranks", "2"}, {"zero", "1"}, {"reduce", "\"step\""}}, gradients},
        {OffloadKeys{{"ranks", "3"}, {"zero", "2"}, {"overlap", "\"on\""}, {"bucket", "4000"}}, gradients},
        {OffloadKeys{{"ranks", "3"}, {"zero", "3"}}, parameters},
        {OffloadKeys{{"ranks", "2"}, {"zero", "3"}, {"precision", "\"bf16\""}, {"gradient_dtype", "\"bf16\""}}, gradients}}) {
    OffloadKeys keys = {{"micro_batches", "4"}};
    keys.insert(keys.end(), split.begin(), split.end());
    const std::string wanted = told_by_cpu(offload_training(keys, "\"none\""));
    for (const Order order : {Order::late, Order::random}) {
      const Training training = offload_training(keys, what);
      const auto trainer = OffloadDevice(order).trainer(training);
      for (const Plan* plan : trainer->plans()) EXPECT_GT(plan->memory.host_bytes(), 0);
      EXPECT_EQ(told_of(*trainer, training), wanted) << static_cast<int>(order) << ' ' << training.recipe.json();
    }
  }
}

/// Tied weights are messages; a stage has its own parameters, of which one rank has what all of the others have.
TEST(OffloadedState, HasTheBitsOfResidentParametersAndGradientsOnStagesAndTensorRanks) {
  const OffloadKeys whole = {{"micro_batches", "4"}, {"ema_decay", "0.9"}};
  const std::string of_one = told_by_cpu(offload_training(whole, "\"none\""));
  for (const OffloadKeys& split : {OffloadKeys{{"ranks", "2"}, {"stages", "2"}, {"schedule", "\"gpipe\""}},
                                   OffloadKeys{{"ranks", "2"}, {"stages", "2"}, {"schedule", "\"interleaved\""}},
                                   OffloadKeys{{"ranks", "2"}, {"stages", "2"}, {"schedule", "\"zb-h1\""}},
                                   OffloadKeys{{"ranks", "4"}, {"stages", "2"}, {"zero", "1"}},
                                   OffloadKeys{{"ranks", "2"}, {"stages", "2"}, {"precision", "\"bf16\""}, {"recompute", "\"blocks\""}},
                                   OffloadKeys{{"ranks", "2"}, {"tensor", "2"}, {"optimizer", "\"muon\""}},
                                   OffloadKeys{{"ranks", "4"}, {"stages", "2"}, {"tensor", "2"}}}) {
    OffloadKeys keys = whole;
    keys.insert(keys.end(), split.begin(), split.end());
    const Training training = offload_training(keys, "\"gradients\"");
    const bool is_of_one = training.recipe.tensor == 1 && training.recipe.precision == "fp32";
    const std::string wanted = is_of_one ? of_one : told_by_cpu(offload_training(keys, "\"none\""));
    for (const Order order : {Order::late, Order::random}) {
      const auto trainer = OffloadDevice(order).trainer(training);
      for (const Plan* plan : trainer->plans()) EXPECT_EQ(plan->memory.on_device(Arena::parameters), 0);
      EXPECT_EQ(told_of(*trainer, training), wanted) << static_cast<int>(order) << ' ' << training.recipe.json();
    }
  }
}

/// Each rank has a model of its own, of which it keeps its shards under zero 3, or its stage's parameters.
TEST(OffloadedState, HasTheBitsOfResidentParametersAndGradientsInAHostsGroup) {
  const auto run = [](const std::shared_ptr<Context>& context, const Training& training) {
    std::array<std::string, 2> told;
    expect_none(on_ranks(2, [&](DirectExchange& group) {
      const auto model = std::make_shared<Model>(context, build_gpt(training.options), 1);
      Recipe recipe = training.recipe;
      recipe.device = "cpu";
      Trainer trainer(model, recipe, training.data(), PlanOptions(), &group);
      EXPECT_EQ(trainer.plan().memory.host_bytes() > 0, recipe.offload != "none");
      std::string& all = told[static_cast<size_t>(group.rank())];
      all = told_of(trainer, training);
      if (!model->is_sharded()) return;
      std::optional<Predictor> predictor;
      ShardedModelCall::make(&group, [&](ShardedModelCall* call) { predictor.emplace(model, PredictorOptions{}, call); });
      ShardedModelCall::make(&group, [&](ShardedModelCall* call) {
        for (const int32_t token : predictor->generate(std::vector<int32_t>{1, 2}, {.tokens = 3}, {}, call)) all += text(" ", token);
      });
    }));
    EXPECT_EQ(told[0], told[1]);
    return told[0];
  };
  for (const OffloadKeys& split : {OffloadKeys{{"zero", "2"}, {"precision", "\"bf16\""}},
                                   OffloadKeys{{"zero", "3"}, {"ema_decay", "0.9"}, {"recompute", "\"blocks\""}},
                                   OffloadKeys{{"stages", "2"}, {"ema_decay", "0.9"}}, OffloadKeys{{"tensor", "2"}}}) {
    OffloadKeys keys = {{"micro_batches", "3"}, {"ranks", "2"}};
    keys.insert(keys.end(), split.begin(), split.end());
    const auto cpu = std::make_shared<Context>(ContextOptions{.threads = 1, .log = {}, .parallel = {}, .memory = {}, .make_backend = {}});
    const std::string wanted = run(cpu, offload_training(keys, "\"none\""));
    for (const Order order : {Order::late, Order::random})
      EXPECT_EQ(run(OffloadDevice(order).context, offload_training(keys, "\"gradients\"")), wanted) << static_cast<int>(order);
  }
}

TEST(OffloadedState, TrainsInSlicesAndOnShortMicroBatches) {
  for (const char* what : {"\"optimizer\"", "\"gradients\""}) {
    const Training training = offload_training({{"accumulate", "2"}}, what), resident = offload_training({{"accumulate", "2"}}, "\"none\"");
    const auto own = training.data();
    const Rows batch(*own, {1, 2, 3});  // the second micro-batch is short
    const auto run = [&](Trainer& trainer) {
      trainer.step(batch.views);
      while (!trainer.advance(batch.views, 0)) {
      }
      return trainer.state_digest();
    };
    const auto of_cpu = resident.trainer(false);
    const std::string wanted = run(*of_cpu);
    for (const Order order : kOrders) {
      const OffloadDevice device(order);
      const auto trainer = training.trainer_of(std::make_shared<Model>(device.context, build_gpt(training.options), 1), nullptr);
      EXPECT_EQ(run(*trainer), wanted) << static_cast<int>(order);
    }
  }
}

TEST(OffloadedState, TrainsOnShortMicroBatchesOnStages) {
  const OffloadKeys keys = {{"ranks", "4"}, {"stages", "2"}, {"zero", "2"}, {"micro_batches", "4"}};
  const Training training = offload_training(keys, "\"gradients\""), resident = offload_training(keys, "\"none\"");
  const auto own = training.data();
  const Rows most(*own, {1, 2, 3, 4, 5, 6, 7}), one(*own, {1});  // of which one data rank has none
  const auto run = [&](Trainer& trainer) {
    for (const Rows* batch : {&most, &one, &most}) trainer.step(batch->views);
    return trainer.state_digest();
  };
  const std::string wanted = run(*resident.trainer(false));
  for (const Order order : {Order::late, Order::random}) {
    const OffloadDevice device(order);
    const auto trainer = training.trainer_of(std::make_shared<Model>(device.context, build_gpt(training.options), 1), nullptr);
    EXPECT_EQ(run(*trainer), wanted) << static_cast<int>(order);
  }
}

/// By gradients that are the outputs themselves.
TEST(OffloadedState, TrainsByAHostsOwnLoss) {
  const auto run = [](Trainer& trainer, const Training& training) {
    const auto own = training.data();
    const Rows batch(*own, {1, 2});
    for (int step = 0; step < 2; ++step) {
      std::vector<std::vector<float>> values;
      std::vector<HostView> gradients;
      for (const HostView& output : trainer.forward(batch.views)) {
        if (output.dtype != DType::f32) continue;
        const auto* from = static_cast<const float*>(output.data);
        std::vector<float>& to = values.emplace_back(from, from + output.shape.elements());
        gradients.push_back(plain_view(output.name, DType::f32, output.shape, to.data()));
      }
      trainer.backward(gradients);
      trainer.apply();
    }
    return trainer.state_digest();
  };
  const Training resident = offload_training({{"precision", "\"bf16\""}}, "\"none\"");
  const auto of_cpu = resident.trainer(false);
  const std::string wanted = run(*of_cpu, resident);
  for (const auto& [order, what] : {std::pair{Order::eager, "\"optimizer\""},
                                    {Order::late, "\"optimizer\""},
                                    {Order::random, "\"optimizer\""},
                                    {Order::late, "\"gradients\""}}) {
    const Training training = offload_training({{"precision", "\"bf16\""}}, what);
    const OffloadDevice device(order);
    const auto trainer = training.trainer_of(std::make_shared<Model>(device.context, build_gpt(training.options), 1), nullptr);
    EXPECT_EQ(run(*trainer, training), wanted) << static_cast<int>(order);
    EXPECT_EQ(device.uses().of[static_cast<size_t>(MemoryRole::optimizer)].peak, 0);
  }
}

TEST(OffloadedState, IsCountedAsPlannedInTheHostsMemoryAlone) {
  for (const OffloadKeys& keys : {OffloadKeys{{"precision", "\"bf16\""}}, OffloadKeys{{"ranks", "3"}, {"zero", "1"}}}) {
    const OffloadDevice device(Order::late), other(Order::late);
    const auto trainer = device.trainer(offload_training(keys)), resident = other.trainer(offload_training(keys, "\"none\""));
    const MemoryAccount::Uses made = device.uses();
    trainer->step();
    resident->step();
    int64_t on_host = 0, moments = 0, room = 0;
    for (const Plan* plan : trainer->plans()) {
      on_host += plan->memory.host_bytes();
      room += plan->memory.of(Arena::buckets);
    }
    for (const Plan* plan : resident->plans()) {
      moments += plan->memory.of(Arena::optimizer);
      room -= plan->memory.of(Arena::buckets);
    }
    const auto of = [&](MemoryRole role) { return device.uses().of[static_cast<size_t>(role)]; };
    EXPECT_GT(on_host, 0);
    EXPECT_EQ(on_host, moments);
    EXPECT_EQ(of(MemoryRole::host).now, on_host);
    EXPECT_EQ(of(MemoryRole::optimizer).peak, 0) << "it was never in the device's memory";
    EXPECT_EQ(device.uses().all.peak, made.all.now) << "a step allocates nothing";
    EXPECT_EQ(trainer->memory_bytes(), device.uses().all.now);
    EXPECT_EQ(device.uses().all.now, other.uses().all.now - moments + room);
    EXPECT_LT(room, moments);
  }
}

TEST(OffloadedState, GoesOnWithACheckpointOfWhatIsResidentAndTheOtherWayRound) {
  const ScratchFolder folder("offloaded_state");
  const OffloadKeys all = {{"micro_batches", "4"}, {"precision", "\"bf16\""}, {"ema_decay", "0.9"}};
  const auto split = [&](OffloadKeys keys, const char* what) {
    keys.insert(keys.end(), all.begin(), all.end());
    return offload_training(keys, what);
  };
  const Training resident = split({{"ranks", "2"}, {"zero", "1"}}, "\"none\"");
  const auto whole = resident.trainer();
  losses_of(*whole, 4);
  for (const OffloadKeys& keys : {OffloadKeys{{"ranks", "2"}, {"zero", "1"}}, OffloadKeys{{"ranks", "2"}, {"zero", "3"}},
                                  OffloadKeys{{"ranks", "2"}, {"stages", "2"}}})
    for (const bool first : {true, false}) {
      const Training away = split(keys, "\"gradients\"");
      const OffloadDevice before(Order::random), after(Order::random);
      const auto saved = before.trainer(first ? away : resident);
      losses_of(*saved, 2);
      const std::string path = folder / text("of ", first, away.recipe.zero);
      save(*saved, path);
      const auto resumed = after.trainer(first ? resident : away);
      resume_from(path, *resumed);
      EXPECT_EQ(resumed->state_digest(), saved->state_digest()) << first;
      losses_of(*resumed, 2);
      EXPECT_EQ(resumed->state_digest(), whole->state_digest()) << first << ' ' << away.recipe.json();
    }
}

TEST(OffloadedState, OfAnEventThatIsNotWaitedForHasOtherBits) {
  const std::string wanted = told_by_cpu(offload_training({}, "\"none\""));
  for (const char* what : {"\"optimizer\"", "\"gradients\""}) {
    const Training training = offload_training({}, what);  // one stream computes, one copies, and nothing else is ordered by events
    for (const Planted planted : {Planted::stream_does_not_wait, Planted::event_is_early}) {
      bool is_found = false;
      for (const Order order : {Order::late, Order::random}) {
        const auto trainer = OffloadDevice(order, planted).trainer(training);
        is_found = is_found || told_of(*trainer, training) != wanted;
      }
      EXPECT_TRUE(is_found) << static_cast<int>(planted) << ' ' << what;
    }
  }
}

TEST(OffloadedState, ThatTheHostHasNoRoomForIsRefusedBeforeItIsAllocated) {
  const Training training = offload_training({{"ranks", "2"}});
  const OffloadDevice device(Order::late);
  const auto model = std::make_shared<Model>(device.context, build_gpt(training.options), 1);
  const int64_t before = device.uses().all.now;
  const int64_t each = training.trainer_of(model, nullptr)->plan().memory.host_bytes(), available = 2 * each - 1;
  device.device->set_host_free_bytes(available);
  const Error error = error_of([&] { training.trainer_of(model, nullptr); });
  EXPECT_TRUE(is_error(error, Code::out_of_memory,
                       {text(each, " bytes"), text(2 * each, " bytes"), text(available, " bytes"), "set offload to none"}));
  EXPECT_EQ(device.uses().all.now, before);
  EXPECT_EQ(device.uses().of[static_cast<size_t>(MemoryRole::host)].now, 0);
  device.device->set_host_free_bytes(2 * each);
  training.trainer_of(model, training.data())->step();
}

/// Two ranks: the first one's parameters are the model's.
TEST(OffloadedState, OfAllKindsIsCountedAsPlannedAndRefusedBeforeTheModelIsMoved) {
  const Training training = offload_training({{"ranks", "2"}, {"precision", "\"bf16\""}}, "\"gradients\"");
  const OffloadDevice device(Order::late);
  const auto model = std::make_shared<Model>(device.context, build_gpt(training.options), 1);
  const auto of = [&](MemoryRole role) { return device.uses().of[static_cast<size_t>(role)]; };
  const int64_t parameters = of(MemoryRole::parameters).now;
  device.device->set_host_free_bytes(1000);
  const Error error = error_of([&] { training.trainer_of(model, nullptr); });
  EXPECT_TRUE(is_error(error, Code::out_of_memory, {"1000 bytes", "set offload to none"})) << error.message();
  EXPECT_FALSE(model->is_on_host());
  device.device->set_host_free_bytes(int64_t{1} << 40);
  const auto trainer = training.trainer_of(model, training.data());
  const MemoryAccount::Uses made = device.uses();
  trainer->step();
  int64_t on_host = 0;
  for (const Plan* plan : trainer->plans()) {
    on_host += plan->memory.host_bytes();
    EXPECT_EQ(plan->memory.on_device(Arena::parameters) + plan->memory.on_device(Arena::gradients), 0);
  }
  EXPECT_TRUE(is_error(error, Code::out_of_memory, {text(on_host, " bytes")})) << error.message();
  EXPECT_GE(on_host, 2 * parameters * 4) << "a parameter, its gradient and two moments";
  EXPECT_EQ(of(MemoryRole::host).now, on_host);
  for (const MemoryRole role : {MemoryRole::parameters, MemoryRole::gradients, MemoryRole::optimizer}) EXPECT_EQ(of(role).now, 0);
  EXPECT_EQ(of(MemoryRole::gradients).peak, 0) << "they were never in the device's memory";
  EXPECT_EQ(device.uses().all.peak, made.all.peak) << "a step allocates nothing";
}

/// Each rank has its own stage's, and the model all of them.
TEST(OffloadedState, OfStagesIsCountedAsPlannedBesidesTheModel) {
  const Training training = offload_training({{"ranks", "2"}, {"stages", "2"}, {"micro_batches", "4"}}, "\"gradients\"");
  const OffloadDevice device(Order::late), other(Order::late);
  const auto of = [&](MemoryRole role) { return device.uses().of[static_cast<size_t>(role)]; };
  const auto model = std::make_shared<Model>(device.context, build_gpt(training.options), 1);
  const int64_t whole = of(MemoryRole::parameters).now;
  const auto trainer = training.trainer_of(model, training.data());
  const MemoryAccount::Uses made = device.uses();
  trainer->step();
  int64_t on_host = 0, on_device = 0;
  for (const Plan* plan : trainer->plans()) {
    on_host += plan->memory.host_bytes();
    on_device += plan->memory.device_bytes() + staged_memory(*plan);
  }
  EXPECT_GE(on_host, 4 * whole);
  EXPECT_EQ(of(MemoryRole::host).now, on_host + whole);
  for (const MemoryRole role : {MemoryRole::parameters, MemoryRole::gradients, MemoryRole::optimizer}) EXPECT_EQ(of(role).now, 0);
  EXPECT_EQ(made.all.now - made.of[static_cast<size_t>(MemoryRole::inputs)].now, on_device);
}

TEST(OffloadedState, OfAModelWhoseTrainerIsNotMadeGoesBack) {
  Training training = offload_training({{"ranks", "2"}, {"zero", "1"}}, "\"parameters\"");
  const OffloadDevice device(Order::late);
  const auto model = std::make_shared<Model>(device.context, build_gpt(training.options), 1);
  const auto of = [&](MemoryRole role) { return device.uses().of[static_cast<size_t>(role)]; };
  const int64_t parameters = of(MemoryRole::parameters).now, all = device.uses().all.now;
  const std::string before = model->digest();
  device.device->set_free_bytes(1000);
  const Error error = error_of([&] { training.trainer_of(model, nullptr); });
  EXPECT_TRUE(is_error(error, Code::out_of_memory, {"trainer: a training step", "1000 B is available"})) << error.message();
  EXPECT_GT(of(MemoryRole::host).peak, 0) << "it had been moved";
  EXPECT_FALSE(model->is_on_host());
  EXPECT_EQ(of(MemoryRole::parameters).now, parameters);
  EXPECT_EQ(device.uses().all.now, all);
  EXPECT_EQ(model->digest(), before);
  device.device->set_free_bytes(int64_t{1} << 40);
  training.trainer_of(model, training.data())->step();
  EXPECT_TRUE(model->is_on_host());
}

/// A whole one that is there, and one that is moved there for these shards.
TEST(OffloadedState, OfShardsWasNeverOnTheDevice) {
  for (const bool is_there : {true, false}) {
    const Training whole = offload_training({}, "\"parameters\""),
                   sharded = offload_training({{"ranks", "2"}, {"zero", "3"}}, is_there ? "\"none\"" : "\"parameters\"");
    const OffloadDevice device(Order::late);
    std::array<std::shared_ptr<Model>, 2> models;
    for (auto& model : models) model = std::make_shared<Model>(device.context, build_gpt(whole.options), 1);
    if (is_there)
      for (const auto& model : models) whole.trainer_of(model, nullptr);
    const int64_t peak = device.uses().of[static_cast<size_t>(MemoryRole::parameters)].peak;
    std::array<std::string, 2> told;
    expect_none(on_ranks(2, [&](DirectExchange& group) {
      const auto rank = static_cast<size_t>(group.rank());
      Recipe recipe = sharded.recipe;
      recipe.device = "cpu";
      Trainer trainer(models[rank], recipe, sharded.data(), PlanOptions(), &group);
      EXPECT_TRUE(models[rank]->is_on_host());
      told[rank] = told_of(trainer, sharded, 2);
    }));
    EXPECT_EQ(device.uses().of[static_cast<size_t>(MemoryRole::parameters)].peak, peak) << is_there;
    EXPECT_EQ(told[0], told[1]);
    const auto of_cpu = offload_training({{"ranks", "2"}, {"zero", "3"}}, "\"none\"").trainer();
    EXPECT_EQ(told[0], told_of(*of_cpu, sharded, 2));
  }
}

/// Until it is freed: later trainers and predictors compute with copies of the parameters too.
TEST(OffloadedState, OfAModelStaysWithIt) {
  const Training training = offload_training({}, "\"parameters\""), resident = offload_training({}, "\"none\""),
                 in_stages = offload_training({{"ranks", "2"}, {"stages", "2"}, {"micro_batches", "2"}}, "\"none\"");
  const auto own = training.data();
  const Rows batch(*own, {1, 2});
  const auto run = [&](const std::shared_ptr<Model>& model, const Training& first) {
    std::string all = text(losses_of(*first.trainer_of(model, first.data()), 2)[1], " ");
    const auto second = resident.trainer_of(model, resident.data());
    all += told_of(*second, resident, 2) + " ";
    const auto third = in_stages.trainer_of(model, in_stages.data());
    all += told_of(*third, in_stages, 2) + " ";
    for (const bool shared : {true, false}) {
      Predictor predictor(model, {.shared = shared, .threads = 1});
      std::vector<float> logits(static_cast<size_t>(2 * training.options.context * training.options.vocabulary));
      const HostView out = plain_view("logits", DType::f32, {2, training.options.context, training.options.vocabulary}, logits.data());
      predictor.run(std::span(batch.views).first(1), {&out, 1});
      predictor.refresh();
      for (const int32_t token : predictor.generate(std::vector<int32_t>{1, 2}, {.tokens = 3}, {})) all += text(token, " ");
      for (const float value : logits) all += text(value, " ");
    }
    return all + model->clone()->digest();
  };
  const OffloadDevice device(Order::late);
  const auto context = std::make_shared<Context>(ContextOptions{.threads = 1, .log = {}, .parallel = {}, .memory = {}, .make_backend = {}});
  const auto away = std::make_shared<Model>(device.context, build_gpt(training.options), 1);
  const auto here = std::make_shared<Model>(context, build_gpt(training.options), 1);
  EXPECT_EQ(run(away, training), run(here, resident));
  EXPECT_TRUE(away->is_on_host());
}

TEST(OffloadedState, OfAFileIsRefusedWithTheWayOut) {
  const OffloadDevice device(Order::late);
  const Error error = error_of([&] { device.trainer(offload_training({{"offload_folder", "\"/tmp\""}})); });
  EXPECT_TRUE(is_error(error, Code::unsupported, {"offload_folder is /tmp", "leave offload_folder out"}));
}

}  // namespace
}  // namespace st
