// Ranks over functions of a host's own, as C has them.
#include <gtest/gtest.h>

#include <memory>
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
  for_each_rank(size, [&](int rank) {
    st_transport_callbacks callbacks{};
    test::SocketPipes::fill(callbacks);
    auto pipes = make_callback_pipes("callbacks", rank, size, callbacks, sockets->user(rank), sockets);
    ends[static_cast<size_t>(rank)] = join_pipe_group(std::move(pipes), {.patience = 20, .is_cancelled = {}});
  });
  return ends;
}

INSTANTIATE_TEST_SUITE_P(Callbacks, EveryGroup, testing::Values(GroupKind{"callbacks", make_callback_group, 4}),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace st
