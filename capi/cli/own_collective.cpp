#include "own_collective.h"

#include <scaletrain/communicator.h>

#include <filesystem>
#include <thread>

#include "collective_probe.h"
#include "handle.h"

namespace cli {
namespace {

class OwnCollectives final : public CollectiveCalls {
 public:
  OwnCollectives(Communicator communicator, int rank, int size) : CollectiveCalls(rank, size), communicator_(std::move(communicator)) {}

  void all_reduce(float* data, int64_t elements) override {
    const st_view view = view_of(data, elements);
    run(st_communicator_all_reduce(communicator_.get(), "bench", &view, ST_REDUCE_SUM, nullptr));
  }
  void reduce_scatter(const float* whole, float* own, int64_t elements) override {
    const int64_t owned = share(elements);
    const st_view from = view_of(whole, elements), to = view_of(own, owned);
    run(st_communicator_reduce_scatter(communicator_.get(), "bench", &from, &to, ST_REDUCE_SUM, nullptr));
  }
  void all_gather(const float* own, float* whole, int64_t elements) override {
    const int64_t owned = share(elements);
    const st_view from = view_of(own, owned), to = view_of(whole, elements);
    run(st_communicator_all_gather(communicator_.get(), "bench", &from, &to, nullptr));
  }

 private:
  int64_t share(int64_t elements) const { return share_begin(elements, rank() + 1) - share_begin(elements, rank()); }
  /// Also borrows `elements`.
  static st_view view_of(const float* data, const int64_t& elements) {
    return {ST_F32, 1, &elements, nullptr, const_cast<float*>(data), elements * 4, 0, 0};
  }

  Communicator communicator_;
};

Context one_thread_context() {
  st_context_options options;
  ask(st_context_options_init(&options, sizeof options));
  options.threads = 1;
  return make<Context>(st_context_create, &options);
}

std::vector<std::string> serving_program(int ranks, const std::string& folder) {
  return {std::filesystem::read_symlink("/proc/self/exe"), "bench", "collective", "--ranks", std::to_string(ranks), "--serve", folder};
}

}  // namespace

std::vector<std::vector<std::string>> own_collective_threads(int ranks, const std::string& folder) {
  return {serving_program(ranks, folder)};
}

std::vector<std::vector<std::string>> own_collective_processes(int ranks, const std::string& folder) {
  std::vector<std::vector<std::string>> programs;
  for (int rank = 0; rank < ranks; ++rank) {
    programs.push_back(serving_program(ranks, folder));
    programs.back().insert(programs.back().end(), {"--rank", std::to_string(rank)});
  }
  return programs;
}

void serve_own_collectives(const std::string& folder, int rank, int ranks) {
  const Context context = one_thread_context();
  if (rank >= 0) {
    Communicator communicator = make<Communicator>(st_communicator_processes, context.get(), folder.c_str(), rank, ranks,
                                                   static_cast<const st_communicator_options*>(nullptr));
    OwnCollectives calls(std::move(communicator), rank, ranks);
    return serve_collectives(calls, folder);
  }
  std::vector<st_communicator*> ends(static_cast<size_t>(ranks));
  ask(st_communicator_local(context.get(), ranks, nullptr, ends.data()));
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r)
    threads.emplace_back([&folder, r, ranks, end = ends[static_cast<size_t>(r)]] {
      OwnCollectives calls(Communicator(end), r, ranks);
      serve_collectives(calls, folder);
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace cli
