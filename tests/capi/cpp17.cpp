// The headers are C++17 too, under stricter warnings than ours: a host may compile with its own.
#include <scaletrain/scaletrain.h>

st_value uses_a_wrapper(st_graph* graph, st_value a, st_value b);
st_value uses_a_wrapper(st_graph* graph, st_value a, st_value b) { return st_op_matmul(graph, a, b, 0, 1); }
