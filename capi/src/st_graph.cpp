#include <algorithm>
#include <cmath>

#include "context_object.h"
#include "graph_call.h"
#include "host_face.h"
#include "ir/counted_loss.h"
#include "ir/print.h"
#include "named_op.h"
#include "op_attributes.h"
#include "passes/seed_outputs.h"
#include "views.h"

using namespace st;
using namespace st::capi;

namespace {

/// Optional inputs are an op's last ones; drops trailing ST_NONE.
int32_t given_inputs(const OpInfo& op, int32_t n, const st_value* inputs) {
  while (n > 0 && inputs != nullptr && n <= static_cast<int32_t>(op.inputs.size()) && op.inputs[static_cast<size_t>(n - 1)].optional &&
         inputs[n - 1] == ST_NONE)
    --n;
  return n;
}

/// The runtime fills in a dropout's counters and site; a host only gives the rate.
std::vector<Value> dropout(Builder& b, const std::vector<Value>& in, const Attrs& attrs) {
  check(in.size() == 1, "dropout: ", in.size(), " inputs given; it takes 1");
  for (const auto& [name, value] : attrs.all()) check(name == "rate", "dropout: no attribute \"", name, "\"; its only attribute is rate");
  if (!attrs.has("rate")) return {b.dropout(in[0])};
  const AttrValue& rate = *attrs.find("rate");
  check(std::holds_alternative<double>(rate) || std::holds_alternative<int64_t>(rate), "dropout: attribute rate must be a number, got ",
        text_of(rate));
  return {b.dropout(in[0], attrs.real("rate"))};
}

std::vector<Value> parameter(GraphObject& g, Builder& b, const std::string& name, const Shape& shape, Initializer init) {
  check(!shape.is_symbolic(), "a parameter's shape ", shape, " cannot depend on the batch");
  const size_t slots = g.program.slots.size();
  const Value value = b.parameter(name, shape, std::move(init));
  count_parameters(g, slots);
  return {value};
}

bool is_scalar(const Type& type) { return is_floating(type.dtype) && type.shape.rank() == 0; }

/// Shared by st_graph_op and st_graph_apply.
std::vector<Value> apply(const GraphObject& g, Builder& b, const char* op, int32_t n, const st_value* inputs, const Attrs& attrs,
                         int32_t m) {
  check(m >= 1, "there is room for ", m, " values; it must be for at least 1");
  const NamedOp found = named_op(*g.context, name_given(op), attrs);
  const std::vector<Value> in = values_of(g, given_inputs(info_of(found.op), n, inputs), inputs);
  return found.op == Op::dropout ? dropout(b, in, found.attrs) : b.append(found.op, in, found.attrs);
}

}  // namespace

st_status st_graph_create(st_context* context, st_graph** graph) {
  return guard([&] {
    given(graph, "st_graph_create: graph");
    const auto home = peek(context);  // first, so that allocations use its memory
    auto object = std::make_shared<GraphObject>();
    object->context = home->context;
    object->program.sections.emplace_back();
    hand_out(graph, std::move(object));
  });
}

st_status st_graph_destroy(st_graph* graph) { return drop(graph); }

st_status st_graph_input(st_graph* graph, const char* name, st_dtype dtype, int32_t rank, const int64_t* dims, st_value* value) {
  return build(graph, "st_graph_input", 1, value, [&](GraphObject&, Builder& b) {
    static_cast<void>(name_of(static_cast<DType>(dtype)));  // throws for an unknown dtype
    return std::vector<Value>{b.input(name_given(name), static_cast<DType>(dtype), shape_of(rank, dims))};
  });
}

st_status st_graph_parameter(st_graph* graph, const char* name, int32_t rank, const int64_t* dims, int32_t init, double scale,
                             st_value* value) {
  return build(graph, "st_graph_parameter", 1, value, [&](GraphObject& g, Builder& b) {
    check(init >= ST_INIT_ZEROS && init <= ST_INIT_KAIMING, "init is ", init, "; it must be 0 (zeros) to 5 (kaiming)");
    check(init <= ST_INIT_ONES || std::isfinite(scale), "scale is ", scale, "; it must be finite");
    return parameter(g, b, name_given(name), shape_of(rank, dims), {.kind = static_cast<Init>(init), .scale = scale, .values = {}});
  });
}

st_status st_graph_parameter_values(st_graph* graph, const char* name, const st_view* values, int32_t trainable, st_value* value) {
  return build(graph, "st_graph_parameter_values", 1, value, [&](GraphObject& g, Builder& b) {
    const std::string own_name = name_given(name);
    check(values != nullptr, "values is NULL");
    check(trainable == 0 || trainable == 1, "trainable is ", trainable, "; it must be 0 or 1");
    Initializer init{.kind = Init::values, .scale = 1, .values = floats_of(own_name, values, "values")};
    const Shape shape = shape_of(values->rank, values->dims);
    auto made = parameter(g, b, own_name, shape, std::move(init));
    g.program.slots.back().trainable = trainable == 1;
    return made;
  });
}

st_status st_graph_op(st_graph* graph, const char* op, int32_t n, const st_value* inputs, const char* attributes, int32_t m,
                      st_value* values) {
  return build(graph, "st_graph_op", m, values,
               [&](GraphObject& g, Builder& b) { return apply(g, b, op, n, inputs, attrs_of(attributes), m); });
}

st_status st_graph_apply(st_graph* graph, const char* op, int32_t n, const st_value* inputs, int32_t attribute_count,
                         const st_attribute* attributes, int32_t m, st_value* values) {
  return build(graph, "st_graph_apply", m, values,
               [&](GraphObject& g, Builder& b) { return apply(g, b, op, n, inputs, attrs_of(attribute_count, attributes), m); });
}

st_status st_value_info_init(st_value_info* info, size_t size) { return init(info, size, st_value_info{}); }

st_status st_graph_value(st_graph* graph, st_value value, st_value_info* info) {
  return guard([&] {
    const auto g = find(graph);
    const Type& type = g->program.sections[0].graph.type(value_of(*g, value));
    st_value_info ours{};
    ours.dtype = static_cast<st_dtype>(type.dtype);
    ours.rank = type.shape.rank();
    std::ranges::copy(type.shape.dims(), ours.dims);
    give(info, ours, "st_graph_value: info");
  });
}

st_status st_graph_scope(st_graph* graph, const char* name) {
  return build(graph, "st_graph_scope", 0, nullptr, [&](GraphObject& g, Builder& b) {
    b.enter(name_given(name));
    g.scopes.push_back(b.region());
    return std::vector<Value>{};
  });
}

st_status st_graph_scope_end(st_graph* graph) {
  return build(graph, "st_graph_scope_end", 0, nullptr, [&](GraphObject& g, Builder&) {
    check(!g.scopes.empty(), "no scope is open");
    g.scopes.pop_back();
    return std::vector<Value>{};
  });
}

st_status st_graph_output(st_graph* graph, const char* name, st_value value) {
  return build(graph, "st_graph_output", 0, nullptr, [&](GraphObject& g, Builder& b) {
    const std::string given_name = name_given(name);
    const bool taken = std::ranges::any_of(g.program.outputs, [&](const Output& o) { return o.name == given_name; });
    check(!taken, "there already is an output named \"", given_name, "\"");
    const Value given = value_of(g, value);
    Output output{.name = given_name, .value = given};
    if (is_metric(given_name) && is_scalar(b.type(given)) && reads_loss(b.graph(), given)) {
      const CountedLoss mean = counted_loss(b, given);
      output.value = mean.sum;
      output.count = mean.count;
    }
    g.program.outputs.push_back(std::move(output));
    return std::vector<Value>{};
  });
}

st_status st_graph_loss(st_graph* graph, st_value value) {
  return build(graph, "st_graph_loss", 0, nullptr, [&](GraphObject& g, Builder& b) {
    const Value loss = value_of(g, value);
    const Type& type = b.type(loss);
    check(is_scalar(type), "the loss is ", text_of(type), "; it must be a floating scalar of shape []");
    const CountedLoss mean = counted_loss(b, loss);
    g.program.loss_sum = mean.sum;
    g.program.loss_count = mean.count;
    return std::vector<Value>{};
  });
}

st_status st_graph_text(st_graph* graph, const char** out) {
  return guard([&] {
    const auto g = find(graph);
    g->answer = print(g->program);
    given(out, "st_graph_text: text") = g->answer.c_str();
  });
}
