// The cost of adding in rank order: a reduce_scatter by direct exchange that waits for rank 0's shard first, then rank 1's, as ours does,
// compared with one that adds whatever has arrived. Both use the same streams, in turn; only the order differs.
//
// Usage: reduction_order [ROUNDS]     default 15
#include <algorithm>
#include <barrier>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/combine.h"
#include "base/os/machine.h"
#include "comm/local/thread_group.h"
#include "comm/transport.h"
#include "samples.h"

namespace {

using bench::median;

constexpr int64_t kChunk = 16384;  // elements reduced at a time, as in a communicator

enum Order { of_ranks, of_arrival };

/// One rank's end of the transport, and its side of a reduce_scatter of `elements` f32, of which each rank owns an equal shard.
class Rank {
 public:
  Rank(std::unique_ptr<st::Transport> end, int64_t elements)
      : end_(std::move(end)),
        share_(elements / end_->size()),
        data_(static_cast<size_t>(share_ * end_->size()), 1.F + static_cast<float>(end_->rank())) {
    sums_.resize(static_cast<size_t>(share_));
  }

  void reduce_scatter(Order order) {
    const int size = end_->size(), rank = end_->rank();
    for (int step = 1; step < size; ++step) {
      const int owner = (rank + step) % size;
      end_->post(owner, std::as_bytes(std::span(data_).subspan(static_cast<size_t>(owner * share_), static_cast<size_t>(share_))));
    }
    for (int64_t done = 0; done < share_; done += kChunk) {
      const int64_t count = std::min(kChunk, share_ - done);
      if (order == of_ranks)
        add_in_order(done, count);
      else
        add_as_it_comes(done, count);
    }
    for (int other = 0; other < size; ++other)
      while (other != rank && !end_->is_sent(other)) move();
  }

  /// Whether each element is 1 + 2 + ...: small whole numbers, exact in any order.
  bool is_right() const {
    float expected = 0;
    for (int r = 0; r < end_->size(); ++r) expected += 1.F + static_cast<float>(r);
    return std::ranges::all_of(sums_, [&](float sum) { return sum == expected; });
  }

 private:
  void add_in_order(int64_t begin, int64_t count) {
    bool is_first = true;
    for (int r = 0; r < end_->size(); ++r) {
      if (r == end_->rank()) add(own() + begin, begin, count, is_first);
      for (int64_t done = 0; r != end_->rank() && done < count;) done += add_run(r, begin + done, count - done, is_first);
      is_first = false;
    }
  }

  void add_as_it_comes(int64_t begin, int64_t count) {
    add(own() + begin, begin, count, true);
    std::vector<int64_t> done(static_cast<size_t>(end_->size()), 0);
    done[static_cast<size_t>(end_->rank())] = count;
    for (int64_t left = count * (end_->size() - 1); left > 0;) {
      const int64_t before = left;
      for (int r = 0; r < end_->size(); ++r) {
        int64_t& of = done[static_cast<size_t>(r)];
        if (of == count || end_->arrived(r).size() < sizeof(float)) continue;
        const int64_t run = add_run(r, begin + of, count - of, false);
        of += run;
        left -= run;
      }
      if (left == before) move();
    }
  }

  /// Adds what has arrived from a rank, at least one element. Messages consist of whole pages, and so do rings, so no element is split.
  int64_t add_run(int from, int64_t begin, int64_t most, bool writes) {
    while (end_->arrived(from).size() < sizeof(float)) move();
    const auto run = end_->arrived(from);
    const int64_t count = std::min(most, std::ssize(run) / 4);
    add(reinterpret_cast<const float*>(run.data()), begin, count, writes);
    end_->take(from, count * 4);
    return count;
  }

  void add(const float* piece, int64_t begin, int64_t count, bool writes) {
    auto* const to = reinterpret_cast<std::byte*>(sums_.data() + begin);
    const auto* const from = reinterpret_cast<const std::byte*>(piece);
    if (writes)
      std::memcpy(to, from, static_cast<size_t>(count) * 4);
    else
      st::combine(st::DType::f32, st::ReduceOp::sum, from, to, count);
  }

  void move() {
    if (!end_->progress()) end_->idle(1);
  }
  const float* own() const { return data_.data() + end_->rank() * share_; }

  std::unique_ptr<st::Transport> end_;
  int64_t share_;
  std::vector<float> data_, sums_;
};

void compare(int ranks, int64_t bytes, int rounds) {
  const int calls = bytes <= 1 << 20 ? 50 : 5;
  auto ends = st::make_thread_group(ranks);
  std::barrier<> together(ranks);
  std::vector<double> seconds[2];  // per call, by order
  const auto run_rank = [&](std::unique_ptr<st::Transport> end) {
    const bool prints = end->rank() == 0;
    Rank rank(std::move(end), bytes / 4);
    for (int round = -1; round < rounds; ++round)  // the first is not counted
      for (const Order order : {of_ranks, of_arrival}) {
        together.arrive_and_wait();
        const double began = st::os::seconds();
        for (int call = 0; call < calls; ++call) rank.reduce_scatter(order);
        together.arrive_and_wait();
        if (prints && round >= 0) seconds[order].push_back((st::os::seconds() - began) / calls);
        if (rank.is_right()) continue;
        std::printf("a wrong sum: %d ranks, %lld bytes, %s\n", ranks, static_cast<long long>(bytes),
                    order == of_ranks ? "in order" : "as they come");
        std::exit(3);
      }
  };
  std::vector<std::thread> threads;
  for (auto& end : ends) threads.emplace_back(run_rank, std::move(end));
  for (std::thread& thread : threads) thread.join();
  std::vector<double> ratios;
  for (size_t i = 0; i < seconds[0].size(); ++i) ratios.push_back(seconds[of_ranks][i] / seconds[of_arrival][i]);
  std::printf("%d ranks, %8lld bytes: in the order of ranks %9.1f us, as they come %9.1f us, %.3f times as long (%.3f to %.3f)\n", ranks,
              static_cast<long long>(bytes), median(seconds[of_ranks]) * 1e6, median(seconds[of_arrival]) * 1e6, median(ratios),
              bench::quantile(ratios, 0.1), bench::quantile(ratios, 0.9));
}

}  // namespace

int main(int count, char** arguments) {
  const int rounds = count > 1 ? std::atoi(arguments[1]) : 15;
  for (const int ranks : {2, 3, 4})
    for (const int64_t bytes : {int64_t{4} << 10, int64_t{64} << 10, int64_t{1} << 20, int64_t{16} << 20}) compare(ranks, bytes, rounds);
  return 0;
}
