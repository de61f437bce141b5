// Ranks over functions of a host's own, as C has them.
#include <gtest/gtest.h>

#include <exception>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "comm/pipes/pipe_group.h"
#include "comm/plugins/callback_pipes.h"
#include "every_group.h"
#include "socket_pipes.h"

namespace st {
namespace {

std::vector<std::unique_ptr<Transport>> make_callback_group(int size) {
  const auto sockets = std::make_shared<test::SocketPipes>(size);
  std::vector<std::unique_ptr<Transport>> ends(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      st_transport_callbacks callbacks{};
      test::SocketPipes::fill(callbacks);
      auto pipes = make_callback_pipes("callbacks", rank, size, callbacks, sockets->user(rank), sockets);
      ends[static_cast<size_t>(rank)] = join_pipe_group(std::move(pipes), {.patience = 20, .is_cancelled = {}});
    });
  for (auto& thread : threads) thread.join();
  return ends;
}

INSTANTIATE_TEST_SUITE_P(Callbacks, EveryGroup, testing::Values(GroupKind{"callbacks", make_callback_group, 4}),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace st
