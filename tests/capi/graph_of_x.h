// A graph with one input, x of [batch, 3], for tests that build on it or expect a refusal.
#pragma once

#include "held.h"

namespace st::test {

class GraphOfX : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(works(st_context_create(nullptr, context.out())));
    ASSERT_TRUE(works(st_graph_create(context, graph.out())));
    const int64_t dims[] = {ST_BATCH, 3};
    ASSERT_TRUE(works(st_graph_input(graph, "x", ST_F32, 2, dims, &x)));
  }
  st_status create() { return st_model_create(graph, 0, model.out()); }

  HeldContext context;
  HeldGraph graph;
  HeldModel model;
  st_value x = 0, y = 7;  // y: result of the test's next op; a refused op sets it to 0
};

}  // namespace st::test
