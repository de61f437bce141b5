#include "planner/rank_plan.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <utility>

#include "backend/needs.h"
#include "base/text.h"
#include "models/mlp.h"
#include "plan/input_copies.h"
#include "plan/kernel_segments.h"
#include "plan/wire_bytes.h"
#include "planned_runs.h"
#include "planner/forecast.h"
#include "planner/run_plan.h"
#include "planner/textbook.h"
#include "rank_group.h"
#include "refusal.h"
#include "train/trainer.h"

namespace st {
namespace {

TEST(RankPlan, IsThePlanThatATrainerExecutes) {
  ContextOptions options;
  options.threads = 1;
  const auto context = std::make_shared<Context>(options);
  for (const char* json :
       {R"({"batch":2,"threads":1})", R"({"batch":2,"accumulate":3,"precision":"bf16","threads":1,"recompute":"attention"})",
        R"({"batch":2,"ranks":2,"zero":1,"threads":1})", R"({"batch":2,"ranks":3,"zero":3,"precision":"bf16","threads":1})",
        R"({"batch":2,"ranks":4,"stages":2,"accumulate":4,"zero":2,"threads":1})",
        R"({"batch":2,"ranks":4,"stages":2,"tensor":2,"accumulate":2,"threads":1})"}) {
    SCOPED_TRACE(json);
    PlannedRun run{.model = build_gpt(kSmall), .recipe = recipe(json), .machine = machine_of(profile_of(context->backend(), 1), 1)};
    run.by_threads = true;
    const Trainer trainer(std::make_shared<Model>(context, build_gpt(kSmall), 0), run.recipe, nullptr);
    const std::vector<const Plan*> executed = trainer.plans();
    ASSERT_EQ(executed.size(), static_cast<size_t>(run.recipe.ranks));
    int64_t held = 0;
    for (int32_t rank = 0; rank < run.recipe.ranks; ++rank) {
      const RankPlan planned = plan_of_rank(run, rank);
      const Plan& own = *executed[static_cast<size_t>(rank)];
      EXPECT_EQ(planned.plan.instructions, own.instructions) << "rank " << rank;
      EXPECT_EQ(planned.plan.memory.bytes, own.memory.bytes) << "rank " << rank;
      int64_t sent = 0;
      for (const AxisTraffic& traffic : planned.numbers.traffic) sent += traffic.bytes;
      EXPECT_EQ(sent, wire_bytes(own, run.recipe.step_micro_batches()).all()) << "rank " << rank;
      held += planned.numbers.memory.device_total() + planned.numbers.memory.host_total();
    }
    EXPECT_NEAR(static_cast<double>(held), static_cast<double>(trainer.memory_bytes()), static_cast<double>(run.recipe.ranks));
    const double planned = run.recipe.ranks == 1 ? plan_of_rank(run, 0).step_seconds(run.recipe) : RunPlan(run).simulate().seconds();
    const Forecast own = forecast(executed, run.recipe, run.machine, 1);
    EXPECT_NEAR(own.step_seconds, planned, 0.02 * planned);
    EXPECT_NEAR(forecast(RunPlan(run)).step_seconds, own.step_seconds, 0.02 * planned);  // as a rank of a group does
  }
}

/// Backward of a product is two products, of the first layer one: nobody asks for the gradient of the input.
TEST(RankPlan, CountsTheArithmeticOfProducts) {
  constexpr double kInputs = 24, kHidden = 40, kOutputs = 8, kRows = 4, kMicroBatches = 3;
  const PlannedRun run{.model = build_mlp({.inputs = 24, .hidden = {40}, .outputs = 8}),
                       .recipe = recipe(R"({"batch":4,"accumulate":3})"),
                       .machine = machine_named("a100-80g")};
  const RankNumbers numbers = plan_of_rank(run, 0).numbers;
  EXPECT_EQ(numbers.flops, kMicroBatches * 2 * kRows * (2 * kInputs * kHidden + 3 * kHidden * kOutputs));
  EXPECT_EQ(numbers.repeated_flops, 0);
  const RankNumbers plain = plan_of_rank(run_of(kSmall, R"({"batch":2})"), 0).numbers;
  const RankNumbers repeats = plan_of_rank(run_of(kSmall, R"({"batch":2,"recompute":"blocks"})"), 0).numbers;
  EXPECT_EQ(repeats.flops, plain.flops + repeats.repeated_flops);
  const double rows = 2.0 * static_cast<double>(kSmall.context), width = static_cast<double>(kSmall.width);
  const double products = 2 * rows * 12 * width * width * static_cast<double>(kSmall.layers);
  EXPECT_GT(repeats.repeated_flops, 0.5 * products) << "of each block, but for what backward does not need";
  EXPECT_LT(repeats.repeated_flops, plain.flops / 3);
}

/// Masters in shards, with stages, tensor ranks and both; an offer that the recipe does not take up changes nothing.
TEST(RankPlan, IsThePlanThatARankOfAGroupExecutes) {
  for (const char* json : {R"({"batch":2,"ranks":3,"zero":1,"precision":"bf16","threads":1})",
                           R"({"batch":2,"ranks":4,"stages":2,"accumulate":4,"zero":2,"precision":"fp16","threads":1})",
                           R"({"batch":2,"ranks":4,"tensor":2,"accumulate":2,"zero":1,"precision":"bf16","threads":1})",
                           R"({"batch":2,"ranks":8,"stages":2,"tensor":2,"accumulate":2,"zero":1,"precision":"bf16","threads":1})",
                           R"({"batch":2,"ranks":4,"stages":2,"tensor":2,"accumulate":2,"zero":1,"precision":"bf16","threads":1})",
                           R"({"batch":2,"ranks":4,"stages":2,"accumulate":2,"zero":2,"threads":1})"})
    for (const bool is_late : {true, false})
      each_of_group(static_cast<int>(recipe(json).ranks), [&](int rank, Communicator& own) {
        ContextOptions options;
        options.threads = 1;
        options.late_parameters = is_late;
        const auto context = std::make_shared<Context>(options);
        PlannedRun run{.model = build_gpt(kSmall), .recipe = recipe(json), .machine = machine_of(profile_of(context->backend(), 1), 1)};
        run.late_parameters = is_late;
        const Trainer trainer(std::make_shared<Model>(context, build_gpt(kSmall), 0), run.recipe, nullptr, {}, &own);
        const RankPlan planned = plan_of_rank(run, rank);
        EXPECT_EQ(planned.plan.instructions, trainer.plan().instructions) << json << ", rank " << rank;
        EXPECT_EQ(planned.plan.memory.bytes, trainer.plan().memory.bytes) << json << ", rank " << rank;
      });
}

/// One exchange is under way at a time. Here the largest is that of a gradient of 4 times the width squared, cut into equal parts.
TEST(RankPlan, CountsTheTermsOfTheLargestExchangeAndTheNetworksBuffers) {
  constexpr const char* kJson = R"({"ranks":4,"zero":2,"reduce":"step","bucket":1,"micro_batches":)";
  PlannedRun run = run_of(kSmall, text(kJson, "6}"));
  const PlannedMemory ordered = plan_of_rank(run, 0).numbers.memory;
  EXPECT_EQ(ordered.terms, 3 * kSmall.width * kSmall.width * 4 / 4 * 4);
  EXPECT_EQ(ordered.network, int64_t{128} << 20) << "of one group, within what is reserved";
  run.by_threads = true;
  const PlannedMemory shared = plan_of_rank(run, 0).numbers.memory;
  EXPECT_EQ(shared.terms, 0);
  EXPECT_EQ(shared.network, 0);
  EXPECT_EQ(ordered.device_total() - shared.device_total(), ordered.terms);
  // The network adds where the sums lie, unless a rank has no rows in a round, as in any step for which a host has fewer.
  const auto fast = [&](const char* micro_batches) {
    return plan_of_rank(run_of(kSmall, text(kJson, micro_batches, R"(,"collectives":"fast"})")), 0).numbers.memory.terms;
  };
  for (const char* const micro_batches : {"6", "8"}) EXPECT_EQ(fast(micro_batches), ordered.terms) << micro_batches;
}

/// A graph of 10,000 kernels takes 22 MiB.
TEST(RankPlan, CountsTheGraphsOfTheKernelsThatADeviceRecords) {
  const auto planned = [](const char* json) { return plan_of_rank(run_of(kSmall, json), 0); };
  const RankPlan wide = planned(R"({"batch":2,"micro_batches":3})"), half = planned(R"({"batch":2,"micro_batches":3,"precision":"bf16"})");
  for (const RankPlan* const of : {&wide, &half}) {
    int64_t once = 0, copies = 0, repeated = 0;  // kernels of recordings; those that make lasting copies; those of their segments
    std::set<int32_t> seen;
    for (const KernelSegment& segment : segments_of(of->plan)) {
      if (!seen.insert(segment.recording).second) continue;
      once += static_cast<int64_t>(segment.end - segment.begin);
      int64_t lasting = 0;
      for (size_t i = segment.begin; i < segment.end; ++i) lasting += of->plan.instructions[i].makes == Copy::lasting ? 1 : 0;
      copies += lasting;
      if (lasting > 0) repeated += static_cast<int64_t>(segment.end - segment.begin);
    }
    EXPECT_EQ(copies > 0, of == &half);
    EXPECT_EQ(recorded_kernels(of->plan), once + repeated - copies);
    const PlannedMemory& use = of->numbers.memory;
    EXPECT_EQ(use.recordings, recorded_kernels(of->plan) * (int64_t{22} << 20) / 10'000);
    PlannedMemory without = use;
    without.recordings = 0;
    EXPECT_EQ(use.device_total() - without.device_total(), use.recordings);
  }
  EXPECT_LT(wide.numbers.memory.recordings, half.numbers.memory.recordings);
}

/// The numbers of the norm and the loss stay in the order of sums; a small sum of values takes the traffic of a ring.
TEST(RankPlan, FastCollectivesAreThoseOfGradientsWeightsAndValues) {
  const char* const json = R"({"ranks":8,"tensor":2,"stages":2,"zero":1,"batch":1,"accumulate":4)";
  const RankPlan ordered = plan_of_rank(run_of(kSmall, text(json, "}")), 0);
  const RankPlan fast = plan_of_rank(run_of(kSmall, text(json, R"(,"collectives":"fast"})")), 0);
  EXPECT_EQ(fast.plan.instructions, ordered.plan.instructions);
  std::set<Op> ops;
  for (size_t i = 0; i < fast.plan.exchanges.size(); ++i) {
    const ExchangePlan& exchange = fast.plan.exchanges[i];
    const bool is_of_numbers = exchange.op == Op::rank_sums || exchange.op == Op::gather_squares;
    EXPECT_EQ(exchange.is_fast, !is_of_numbers && exchange.axis != MeshAxis::stage) << exchange.label;
    EXPECT_FALSE(ordered.plan.exchanges[i].is_fast);
    if (exchange.is_fast) ops.insert(exchange.op);
  }
  EXPECT_TRUE(ops.contains(Op::reduce_scatter) && ops.contains(Op::all_gather) && ops.contains(Op::tensor_scatter));
  const auto data = static_cast<size_t>(MeshAxis::data), tensor = static_cast<size_t>(MeshAxis::tensor);
  EXPECT_EQ(fast.numbers.traffic[data].bytes, ordered.numbers.traffic[data].bytes);
  EXPECT_EQ(fast.numbers.traffic[tensor].bytes, ordered.numbers.traffic[tensor].bytes);  // of two ranks
  EXPECT_NE(print_instructions(fast.plan).find("along the tensor axis, fast"), std::string::npos);
  EXPECT_EQ(print_instructions(ordered.plan).find("fast"), std::string::npos);
}

TEST(RankPlan, FastCollectivesAreRefusedWhereNoNetworkConnectsDevices) {
  const auto plan = [](PlannedRun run, bool by_threads) {
    run.by_threads = by_threads;
    return [run] { plan_of_rank(run, 0); };
  };
  PlannedRun run = run_of(kSmall, R"({"ranks":2,"batch":2,"collectives":"fast"})");
  EXPECT_TRUE(refuses(Code::unsupported, {"collectives fast needs ranks that are processes", "use collectives ordered"}, plan(run, true)));
  ContextOptions options;
  options.threads = 1;
  run.machine = machine_of(profile_of(Context(options).backend(), 1), 1);
  EXPECT_TRUE(refuses(Code::unsupported, {"collectives fast needs NVIDIA devices", "got device cpu", "ordered"}, plan(run, false)));
  run.recipe.ranks = 1;
  EXPECT_EQ(error_of(plan(run, false)).code(), Code::ok);
}

/// A stage between the first and the last has only weights of products, besides norms and biases.
TEST(RankPlan, RanksWithStagesOrTensorKeepTheirShardsOfTheMasters) {
  struct Split {
    const char* json;
    int32_t rank;
    int64_t data;
  };
  for (const auto& [json, rank, data] :
       {Split{R"({"ranks":24,"stages":3,"zero":1,"batch":1,"accumulate":4,"precision":"bf16"})", 8, 8},
        Split{R"({"ranks":12,"stages":3,"tensor":2,"zero":2,"batch":1,"accumulate":4,"precision":"fp16"})", 5, 2},
        Split{R"({"ranks":48,"stages":3,"tensor":4,"zero":1,"batch":1,"accumulate":4,"precision":"bf16"})", 17, 4}}) {
    PlannedRun run = run_of(k10B, json);
    const PlannedMemory whole = plan_of_rank(run, rank).numbers.memory;
    run.late_parameters = true;
    const PlannedMemory shards = plan_of_rank(run, rank).numbers.memory;
    const auto bytes = [](const PlannedMemory& of, Arena arena) { return static_cast<double>(of.device[static_cast<size_t>(arena)]); };
    const double ratio = bytes(shards, Arena::parameters) / bytes(whole, Arena::parameters), all = 1.0 / static_cast<double>(data);
    EXPECT_GT(ratio, all) << json;
    EXPECT_LT(ratio, all + 0.001) << json;
    for (const Arena arena : {Arena::gradients, Arena::optimizer, Arena::packed, Arena::stash, Arena::buckets})
      EXPECT_EQ(bytes(shards, arena), bytes(whole, arena)) << json << ", " << name_of(arena);
    run.recipe.precision = "fp32";
    const double wide = bytes(plan_of_rank(run, rank).numbers.memory, Arena::parameters);
    EXPECT_EQ(wide, bytes(whole, Arena::parameters)) << json;
  }
}

TEST(RankPlan, ARankOfFourThousandNeedsNoneOfThem) {
  const PlannedRun run = run_of({.layers = 96, .width = 12288, .heads = 96, .context = 2048, .vocabulary = 51200},
                                R"({"ranks":4096,"stages":16,"tensor":8,"zero":1,"batch":1,"accumulate":64,"precision":"bf16"})");
  const RankPlan plan = plan_of_rank(run, 1733);
  EXPECT_EQ(plan.at, (MeshPosition{.data = 24, .tensor = 5, .stage = 6}));
  // 8 flops a parameter and token less recomputation, plus attention: this rank has one 128th of the work of 64 micro-batches.
  const double parameters = 96 * 12.0 * 12288 * 12288;
  EXPECT_GT(plan.numbers.flops, 6 * parameters * 64 * 2048 / 128);
  EXPECT_LT(plan.numbers.flops, 6.8 * parameters * 64 * 2048 / 128);
  EXPECT_GT(plan.bubble(run.recipe), 0.05);  // less than the schedule's 15 / 79, since exchange takes time too
  EXPECT_TRUE(refuses({"rank is 4096", "ranks 0 to 4095"}, [&] { plan_of_rank(run, 4096); }));
}

TEST(RankPlan, TheTextbookSaysTwelveBytesAParameter) {
  const PlannedRun run = run_of(k10B, R"({"ranks":8,"precision":"fp16","optimizer":"adam"})");
  const Textbook book = textbook(run);
  EXPECT_EQ(book.per_parameter(), 12);
  EXPECT_EQ(book.data_parallel(), 12.0 * static_cast<double>(parameter_count(k10B)));
  EXPECT_EQ(book.zero_3(8), book.data_parallel() / 8);
}

TEST(RankPlan, OffloadedStateIsInTheHostsMemoryAndCrossesItsLink) {
  const PlannedRun here = run_of(kSmall, R"({"precision":"bf16"})"), away = run_of(kSmall, R"({"precision":"bf16","offload":"optimizer"})");
  const RankPlan with = plan_of_rank(away, 0), without = plan_of_rank(here, 0);
  const int64_t moments = without.numbers.memory.device[static_cast<size_t>(Arena::optimizer)];
  EXPECT_GT(moments, 0);
  EXPECT_EQ(with.numbers.memory.host_total(), moments + without.numbers.memory.host_total());
  EXPECT_EQ(without.numbers.memory.host_total(), without.numbers.memory.pinned) << "for inputs on their way";
  EXPECT_EQ(without.numbers.memory.inputs, input_copies(without.plan).bytes);
  EXPECT_GT(without.numbers.memory.inputs, 0);
  const MemoryLayout& memory = with.plan.memory;
  EXPECT_GT(memory.windows.size(), 8U);
  EXPECT_EQ(memory.windows[0].copies[0].staged.arena, Arena::stash) << "which the update does not read";
  EXPECT_EQ(memory.host_bytes(), moments);
  EXPECT_EQ(with.numbers.memory.device_total(), without.numbers.memory.device_total() - moments);
  const double crossing = with.step_seconds(away.recipe) - without.step_seconds(here.recipe);
  EXPECT_NEAR(crossing, 2 * 8.0 * static_cast<double>(parameter_count(kSmall)) / machine_named("a100-80g").to_host.bytes_per_second, 1e-9);
}

TEST(RankPlan, WhatIsOffloadedCrossesTheLinkInItsCopies) {
  const GptOptions odd{.layers = 2, .width = 20, .heads = 2, .context = 8, .vocabulary = 30};  // few tensors are whole units of alignment
  for (const char* what : {"optimizer", "parameters", "gradients"}) {
    SCOPED_TRACE(what);
    PlannedRun run = run_of(odd, text(R"({"precision":"bf16","batch":2,"offload":")", what, "\"}"));
    const RankPlan slow = plan_of_rank(run, 0);
    double bytes = 0;
    for (const Instruction& at : slow.plan.instructions) {
      const bool is_of_a_usual_step = at.makes != Copy::gathered && at.makes != Copy::lasting;
      if (!is_of_a_usual_step || (at.kind != Instruction::Kind::fetch && at.kind != Instruction::Kind::write_back)) continue;
      for (const StagedBytes& of : slow.plan.memory.windows[static_cast<size_t>(at.window)].copies)
        if (at.kind == Instruction::Kind::fetch || of.is_written) bytes += static_cast<double>(of.bytes);
    }
    EXPECT_GT(bytes, 2 * 8.0 * static_cast<double>(parameter_count(odd)));
    if (what == std::string_view("optimizer")) {  // each moment goes up and comes back once
      EXPECT_EQ(bytes, 2 * static_cast<double>(slow.plan.memory.of(Arena::optimizer)));
    }
    const double crossing = bytes / std::exchange(run.machine.to_host.bytes_per_second, 0);  // 0: copies take no time
    EXPECT_NEAR(slow.step_seconds(run.recipe) - plan_of_rank(run, 0).step_seconds(run.recipe), crossing, 1e-9);
  }
}

TEST(RankPlan, TheFirstOfRanksThatAreThreadsHasTheWholeModelOnTheHostBesidesItsShards) {
  PlannedRun run = run_of(kSmall, R"({"ranks":2,"zero":3,"offload":"parameters"})");
  const auto on_host = [&](int32_t rank) { return plan_of_rank(run, rank).numbers.memory.host_total(); };
  const int64_t first = on_host(0), second = on_host(1);
  run.by_threads = true;
  EXPECT_EQ(on_host(0), first + 4 * parameter_count(kSmall));
  EXPECT_EQ(on_host(1), second);
  const RunPlan all(run);
  for (const int32_t rank : {0, 1}) EXPECT_EQ(all.class_of(rank).numbers.memory.host_total(), on_host(rank)) << "rank " << rank;
}

TEST(RankPlan, StagesAndTensorRanksOffloadAllThatTheyKeep) {
  for (const char* split : {R"("stages":2)", R"("tensor":2)"}) {
    SCOPED_TRACE(split);
    const auto planned = [&](const char* what, bool by_threads) {
      PlannedRun run = run_of(kSmall, text(R"({"ranks":2,"accumulate":4,"offload":")", what, "\",", split, "}"));
      run.by_threads = by_threads;
      return plan_of_rank(run, 0);
    };
    const RankPlan away = planned("gradients", false), here = planned("none", false);
    for (const Arena arena : {Arena::parameters, Arena::gradients, Arena::optimizer}) {
      EXPECT_EQ(away.numbers.memory.device[static_cast<size_t>(arena)], 0);
      EXPECT_EQ(away.numbers.memory.host[static_cast<size_t>(arena)], here.numbers.memory.device[static_cast<size_t>(arena)]);
    }
    EXPECT_LT(away.numbers.memory.device_total(), here.numbers.memory.device_total());
    EXPECT_EQ(planned("gradients", true).numbers.memory.host_total(), away.numbers.memory.host_total() + 4 * parameter_count(kSmall))
        << "the whole model of the process";
  }
}

/// The optimizer's state, the fp32 parameters, and the gradients, each with those before it; the copies that products read stay.
TEST(RankPlan, OffloadMovesMoreWithEachOfItsValues) {
  const auto planned = [](const char* what) {
    return plan_of_rank(run_of(kSmall, text(R"({"precision":"bf16","accumulate":2,"offload":")", what, "\"}")), 0);
  };
  const RankPlan resident = planned("none");
  std::set<Arena> away;
  for (const auto& [what, arena] :
       {std::pair{"optimizer", Arena::optimizer}, {"parameters", Arena::parameters}, {"gradients", Arena::gradients}}) {
    SCOPED_TRACE(what);
    away.insert(arena);
    const RankPlan plan = planned(what);
    for (int32_t a = 0; a < kArenas; ++a) {
      const int64_t bytes = resident.numbers.memory.device[static_cast<size_t>(a)];
      const bool is_away = away.contains(static_cast<Arena>(a));
      EXPECT_EQ(plan.numbers.memory.host[static_cast<size_t>(a)], is_away ? bytes : 0) << name_of(static_cast<Arena>(a));
      const int64_t room = plan.numbers.memory.device[static_cast<size_t>(a)] - (is_away ? 0 : bytes);
      if (static_cast<Arena>(a) == Arena::buckets && away.contains(Arena::parameters))  // for what forward and backward use
        EXPECT_TRUE(room > 0 && room < plan.numbers.memory.host[static_cast<size_t>(Arena::parameters)]) << room;
      else
        EXPECT_EQ(room, 0) << name_of(static_cast<Arena>(a));
    }
  }
}

TEST(RankPlan, SumsOf16BitsTakeHalfTheMemoryOfGradients) {
  for (const char* json : {R"({"precision":"bf16","gradient_dtype":"bf16","accumulate":2)",
                           R"({"precision":"fp16","gradient_dtype":"fp16","accumulate":2,"ranks":4,"zero":2,"stages":2)",
                           R"({"precision":"bf16","gradient_dtype":"bf16","accumulate":2,"ranks":4,"tensor":2,"reduce":"step")"}) {
    SCOPED_TRACE(json);
    const auto planned = [&](const std::string& more) { return plan_of_rank(run_of(kSmall, text(json, more, "}")), 0).numbers; };
    const RankNumbers wide = planned(""), narrow = planned(R"(,"accumulate_dtype":")" + std::string(json + 14, 4) + "\"");
    const auto gradients = static_cast<size_t>(Arena::gradients);
    EXPECT_EQ(narrow.memory.device[gradients] * 2, wide.memory.device[gradients]);
    EXPECT_LT(narrow.memory.device_total(), wide.memory.device_total());
  }
}

TEST(RunPlan, OneRankOfEachClassStandsForAll) {
  for (const char* json : {R"({"ranks":16,"stages":2,"zero":1,"batch":1,"accumulate":2})",
                           R"({"ranks":8,"tensor":2,"stages":2,"zero":3,"batch":1,"accumulate":2})",
                           R"({"ranks":9,"zero":2,"batch":1,"micro_batches":12,"reduce":"step"})"}) {
    SCOPED_TRACE(json);
    const PlannedRun run = run_of(kSmall, json);
    const RunPlan all(run);
    EXPECT_LT(all.classes().size(), static_cast<size_t>(run.recipe.ranks));
    for (int32_t rank = 0; rank < run.recipe.ranks; ++rank) {
      const RankPlan own = plan_of_rank(run, rank);
      const RankClass& of = all.class_of(rank);
      EXPECT_EQ(of.at.stage, own.at.stage);
      EXPECT_NEAR(static_cast<double>(of.numbers.instructions), static_cast<double>(own.numbers.instructions), 8) << "rank " << rank;
      EXPECT_DOUBLE_EQ(of.numbers.flops, own.numbers.flops) << "rank " << rank;
      EXPECT_NEAR(static_cast<double>(of.numbers.memory.device_total()), static_cast<double>(own.numbers.memory.device_total()),
                  3 * 4 * 1024 * 8)
          << "rank " << rank;
    }
    const SimulatedStep step = all.simulate();
    EXPECT_EQ(step.ranks.size(), static_cast<size_t>(run.recipe.ranks));
    const SimulatedStep slow = all.simulate({{Trouble::Kind::straggler, 1, 3}});
    EXPECT_GT(slow.seconds(), step.seconds());
    for (const SimulatedRank& rank : slow.ranks) EXPECT_LE(rank.computed, slow.seconds());
  }
}

}  // namespace
}  // namespace st
