// The headers also compile as C++17 with stricter warnings than ours, since a host may use its own.
#include <scaletrain/scaletrain.h>

st_value uses_a_wrapper(st_graph* graph, st_value a, st_value b);
st_value uses_a_wrapper(st_graph* graph, st_value a, st_value b) { return st_op_matmul(graph, a, b, 0, 1); }
