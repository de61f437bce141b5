// Ranks over C functions of a host.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "comm/pipes/pipe_group.h"
#include "comm/plugins/callback_pipes.h"
#include "every_group.h"
#include "socket_pipes.h"

namespace st {
namespace {

std::vector<std::unique_ptr<Transport>> make_callback_group(int size) {
  const auto sockets = std::make_shared<test::SocketPipes>(size);
  return ends_of_ranks(size, [&](int rank) {
    st_transport_callbacks callbacks{};
    test::SocketPipes::fill(callbacks);
    return join_pipe_group(make_callback_pipes("callbacks", rank, size, callbacks, sockets->user(rank), sockets),
                           {.patience = 20, .is_cancelled = {}});
  });
}

INSTANTIATE_TEST_SUITE_P(Callbacks, EveryGroup, testing::Values(GroupKind{"callbacks", make_callback_group, 4}),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace st
