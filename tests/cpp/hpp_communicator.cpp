// scaletrain.hpp: ranks as threads.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

#include "each_rank.h"
#include "sine_objects.h"

namespace {

using namespace scaletrain;
using namespace scaletrain::test;

TEST(HppCommunicator, ExchangesEveryWay) {
  const Context context;
  on_ranks(context, 3, [](const Communicator& own) {
    const auto me = static_cast<float>(own.rank());
    std::vector<float> whole(7, me + 1), gathered(7), trade = {me, me + 10, me + 20}, traded(3);
    const std::vector<float> weights(2, 5);
    std::vector<float> received(2);
    EXPECT_EQ(own.size(), 3);
    own.all_reduce(view(whole), ReduceOp::mean, "gradients");
    EXPECT_EQ(whole, std::vector<float>(7, 2));
    const Share share = own.share(7);
    EXPECT_EQ(share.count, own.rank() == 0 ? 3 : 2);
    EXPECT_EQ(own.share(7, 2).begin, 5);
    std::vector<float> mine(static_cast<size_t>(share.count));
    own.reduce_scatter(view(whole), view(mine), ReduceOp::max);
    own.all_gather(view(mine), view(gathered));
    EXPECT_EQ(gathered, whole);
    own.all_to_all(view(trade), view(traded));
    EXPECT_EQ(traded, (std::vector<float>{10 * me, 10 * me + 1, 10 * me + 2}));
    if (own.rank() == 1) {
      own.broadcast(view(weights), 1);  // its root only reads
    } else {
      own.broadcast(view(received), 1);
      EXPECT_EQ(received, weights);
    }
    if (own.rank() == 0) own.send(view(weights), 2, "letter");
    if (own.rank() == 2) own.receive(view(received), 0, "letter");
    own.barrier("end");
    EXPECT_GT(own.sent_bytes(), 0);
    EXPECT_TRUE(has(own.flight_record(), "gradients"));
  });
}

TEST(HppCommunicator, GoesOnInTheBackground) {
  const Context context;
  on_ranks(context, 2, [](const Communicator& own) {
    std::vector<float> a(4, 1), b(2), c(4), d = {1, 2}, e(2), f(3, static_cast<float>(own.rank()));
    std::vector<Pending> pendings;
    pendings.push_back(own.all_reduce_async(view(a)));
    pendings.push_back(own.reduce_scatter_async(view(a), view(b)));
    pendings.push_back(own.all_gather_async(view(b), view(c)));
    pendings.push_back(own.all_to_all_async(view(d), view(e)));
    pendings.push_back(own.broadcast_async(view(f), 1));
    pendings.push_back(own.rank() == 0 ? own.send_async(view(d), 1) : own.receive_async(view(d), 0));
    pendings.push_back(own.barrier_async());
    for (const Pending& pending : pendings) pending.wait();
    EXPECT_EQ(c, std::vector<float>(4, 4));
    EXPECT_EQ(f, std::vector<float>(3, 1));
  });
}

TEST(HppCommunicator, SplitsIntoGroups) {
  const Context context;
  on_ranks(context, 3, [](const Communicator& own) {
    const Communicator reversed = own.split(0, -own.rank()), twin = reversed.duplicate();
    EXPECT_EQ(twin.rank(), 2 - own.rank());
    std::vector<float> values = {static_cast<float>(own.rank())};
    twin.all_reduce(view(values));
    EXPECT_EQ(values[0], 3);
    EXPECT_THROW(static_cast<void>(own.split(own.rank() / 2)), Error) << "color 1 is rank 2's alone";
    CommunicatorOptions options;
    options.allow_single = true;
    EXPECT_EQ(own.split(own.rank() / 2, 0, options).size(), own.rank() == 2 ? 1 : 2);
  });
}

TEST(HppCommunicator, ThrowsWithTheRankThatEndedTheGroup) {
  const Context context;
  const std::vector<Communicator> ranks = Communicator::local(context, 2);
  std::vector<float> values(3);
  ranks[1].abort("the disk is full");
  try {
    ranks[0].all_reduce(view(values), ReduceOp::sum, "gradients");
    FAIL() << "the group is over";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::rank_failed);
    EXPECT_EQ(error.info().rank, 1);
    EXPECT_EQ(error.info().tensor, "gradients");
    EXPECT_EQ(error.info().collective, "all_reduce");
    EXPECT_TRUE(has(error.what(), "the disk is full"));
  }
  const std::vector<float> constant(3);
  EXPECT_THROW(ranks[0].all_reduce(view(constant)), Error) << "it is to be written";
  for (const int32_t n : {0, 257}) EXPECT_THROW(Communicator::local(context, n), Error);
}

TEST(HppCommunicator, JoinsOtherProcesses) {
  const Context context;
  CommunicatorOptions options;
  options.start_milliseconds = 50;
  const std::string job = "HppCommunicator-" + std::to_string(getpid());
  const Communicator alone = Communicator::processes(context, job, 0, 1, options);
  std::vector<float> values = {3};
  alone.all_reduce(view(values));
  EXPECT_EQ(values[0], 3);
  EXPECT_THROW(Communicator::processes(context, job, 0, 2, options), Error) << "nobody else comes";
  EXPECT_THROW(Communicator::env(context), Error) << "no launcher started this";
}

/// A transport of the program: bytes between ranks in this process's memory.
struct Queues {
  Transport of(int32_t own) {
    return {[this, own](int32_t to, const void* data, int64_t bytes) {
              const std::lock_guard<std::mutex> lock(mutex);
              if (is_cut) throw std::runtime_error("the cable is out");
              const char* const first = static_cast<const char*>(data);
              between[{own, to}].insert(between[{own, to}].end(), first, first + bytes);
              return bytes;
            },
            [this, own](int32_t from, void* data, int64_t bytes) {
              const std::lock_guard<std::mutex> lock(mutex);
              if (is_cut) throw std::runtime_error("the cable is out");
              std::deque<char>& queue = between[{from, own}];
              const auto count = std::min(bytes, static_cast<int64_t>(queue.size()));
              std::copy_n(queue.begin(), count, static_cast<char*>(data));
              queue.erase(queue.begin(), queue.begin() + count);
              return count;
            }};
  }

  std::mutex mutex;
  std::map<std::pair<int32_t, int32_t>, std::deque<char>> between;
  std::atomic<bool> is_cut{false};
};

TEST(HppCommunicator, ReachesRanksByTheProgramsOwnFunctions) {
  const Context context;
  Queues queues;
  std::atomic<int> reduced{0};
  on_ranks(context, 3, [&](const Communicator& thread) {
    const Communicator own = Communicator::callbacks(context, thread.rank(), 3, queues.of(thread.rank()));
    std::vector<float> values(5000, static_cast<float>(own.rank()));
    own.all_reduce(view(values));
    EXPECT_EQ(values, std::vector<float>(5000, 3));
    own.barrier();
    for (++reduced; reduced < 3;) std::this_thread::yield();
    queues.is_cut = true;
    EXPECT_TRUE(has(refusal(Status::rank_failed, [&] { own.barrier("after the cut"); }), "the cable is out"));
  });
  EXPECT_THROW(Communicator::callbacks(context, 0, 2, Transport()), Error);
}

/// `call` throws wrong_state and names the collective call and the recipe's key.
template <class Call>
void expect_refused(const char* collective, Call&& call) {
  const std::string why = refusal(Status::wrong_state, call);
  EXPECT_TRUE(has(why, collective) && has(why, "(zero 3)")) << collective << ": " << why;
}

TEST(HppCommunicator, ShardedWeightsAndStateAreReadByCollectiveCalls) {
  const Sine alone;
  alone.trainer.step(alone.batch);
  std::vector<float> weight(16), gradient(16);
  alone.model.get("first.weight", view(weight, {1, 16}));
  alone.trainer.gradient("first.weight", view(gradient, {1, 16}));
  const std::string state = alone.trainer.digest(), weights = alone.model.digest();
  std::string stream;
  alone.model.write([&](const void* bytes, int64_t count) { stream.append(static_cast<const char*>(bytes), static_cast<size_t>(count)); });
  on_ranks(alone.context, 2, [&](const Communicator& own) {
    const Model model = sine_model(alone.context);
    const Recipe recipe(R"({"batch": 4, "micro_batches": 2, "warmup": 0, "lr": 0.01, "zero": 3, "threads": 1})");
    const Trainer trainer(model, recipe, own);
    const auto first = static_cast<size_t>(4 * own.rank());
    std::vector<float> x(alone.x.begin() + first, alone.x.begin() + first + 4), y(alone.y.begin() + first, alone.y.begin() + first + 4);
    trainer.step({{"x", view(x, {4, 1})}, {"y", view(y, {4, 1})}});
    std::vector<float> read(16);
    std::string written;
    const auto write = [&](const void* bytes, int64_t count) {
      written.append(static_cast<const char*>(bytes), static_cast<size_t>(count));
    };
    expect_refused("st_model_digest_collective", [&] { static_cast<void>(model.digest()); });
    expect_refused("st_model_clone_collective", [&] { static_cast<void>(model.clone()); });
    expect_refused("st_model_write_collective", [&] { model.write(write); });
    expect_refused("st_predictor_create_collective", [&] { const Predictor predictor(model); });
    expect_refused("st_trainer_gradient_collective", [&] { trainer.gradient("first.weight", view(read, {1, 16})); });
    expect_refused("st_trainer_digest_collective", [&] { static_cast<void>(trainer.digest()); });
    model.get_collective("first.weight", view(read, {1, 16}));
    EXPECT_EQ(read, weight);
    trainer.gradient_collective("first.weight", view(read, {1, 16}));
    EXPECT_EQ(read, gradient);
    EXPECT_EQ(model.digest_collective(), weights);
    EXPECT_EQ(model.clone_collective().digest(), weights);
    model.write_collective(write);
    EXPECT_EQ(written, stream);
    EXPECT_EQ(trainer.digest_collective(), state);
    EXPECT_EQ(trainer.digest(), state) << "the last one of all ranks";
    const Predictor predictor = Predictor::collective(model);
    predictor.refresh();
    std::vector<float> prediction(8);
    std::vector<float> inputs = alone.x;
    predictor.run({{"x", view(inputs, {8, 1})}}, {{"prediction", view(prediction, {8, 1})}});
    EXPECT_NE(prediction.front(), 0);
  });
}

TEST(HppCommunicator, OfTheHostsOwnGroupNeedsAPlugin) {
  const Context context;
  EXPECT_THROW(Communicator::of_host(context, "../mpi", nullptr), Error);
}

}  // namespace
