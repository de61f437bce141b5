#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "guard.h"
#include "ir/print.h"
#include "objects.h"

using namespace st;
using namespace st::capi;

namespace {

constexpr double kMaxElements = 0x1p48;

/// A call that makes values: on error the ids are 0, the graph keeps the first error, and the status tells too. The values may lie where
/// the inputs do, so they are written last.
template <class Body>
st_status build(st_graph* graph, const char* call, int32_t m, st_value* values, const Body& body) {
  std::vector<st_value> ids;
  const st_status status = guard(
      [&] {
        const auto g = find(graph);
        try {
          check(m == 0 || values != nullptr, "values is NULL");
          Builder b(g->program, 0);
          b.set_region(g->scopes.empty() ? 0 : g->scopes.back());
          const std::vector<Value> made = body(*g, b);
          for (int32_t i = 0; i < m && i < static_cast<int32_t>(made.size()); ++i) {
            g->values.push_back(made[static_cast<size_t>(i)]);
            ids.push_back(static_cast<st_value>(g->values.size()));
          }
        } catch (const Error& error) {
          Error named(error.code(), text(call, ": ", error.message()));
          named.place = error.place;
          if (!g->first_error) g->first_error = named;
          throw named;
        }
      },
      call);
  for (int32_t i = 0; values != nullptr && i < m; ++i)
    values[i] = i < static_cast<int32_t>(ids.size()) && status == ST_OK ? ids[static_cast<size_t>(i)] : 0;
  return status;
}

Value value_of(const GraphObject& graph, st_value id) {
  if (id == 0 && graph.first_error) throw *graph.first_error;  // carried on: the first call that was wrong is the one to name
  check(id > 0 && id <= static_cast<st_value>(graph.values.size()), "value ", id, " is not one of this graph's");
  return graph.values[static_cast<size_t>(id - 1)];
}

Shape shape_of(int32_t rank, const int64_t* dims) {
  check(rank >= 0 && rank <= kMaxDims, "rank is ", rank, ", allowed is 0 to ", kMaxDims);
  check(rank == 0 || dims != nullptr, "dims is NULL with rank ", rank);
  const Shape shape(std::span<const int64_t>(dims, static_cast<size_t>(rank)));
  double elements = 1;  // of one row when the first dimension is the batch; a double says "too many" where int64 would wrap around
  for (const int64_t dim : shape) elements *= std::abs(static_cast<double>(dim));
  check(elements <= kMaxElements, "shape ", shape, " has more elements than any memory holds");
  return shape;
}

std::string name_given(const char* name) {
  check(name != nullptr && *name != '\0', "name is NULL or empty");
  return name;
}

AttrValue attr_of(const Json& value, const std::string& key) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_number()) return value.get<double>();
  if (value.is_string()) return value.get<std::string>();
  check(value.is_array(), "attribute ", key, " is ", value.dump(), "; a bool, number, text or list of whole numbers is needed");
  Ints ints;
  for (const Json& item : value) {
    check(item.is_number_integer(), "attribute ", key, " holds ", item.dump(), "; whole numbers are needed");
    ints.push_back(item.get<int64_t>());
  }
  return ints;
}

Attrs attrs_of(const char* json) {
  Attrs attrs;
  if (json == nullptr || *json == '\0') return attrs;
  const Json object = parse_json(json, "attributes");
  check(object.is_object(), "attributes: a JSON object is needed, got ", object.dump());
  for (const auto& [key, value] : object.items()) attrs.set(key, attr_of(value, key));
  return attrs;
}

}  // namespace

st_status st_graph_create(st_context* context, st_graph** graph) {
  return guard([&] {
    given(graph, "st_graph_create: graph");
    auto object = std::make_shared<GraphObject>();
    object->context = peek(context)->context;
    object->program.sections.emplace_back();
    hand_out(graph, std::move(object));
  });
}

st_status st_graph_destroy(st_graph* graph) {
  return guard([&] { drop(graph); });
}

st_status st_graph_input(st_graph* graph, const char* name, st_dtype dtype, int32_t rank, const int64_t* dims, st_value* value) {
  return build(graph, "st_graph_input", 1, value, [&](GraphObject&, Builder& b) {
    static_cast<void>(name_of(static_cast<DType>(dtype)));  // throws when it is none
    return std::vector<Value>{b.input(name_given(name), static_cast<DType>(dtype), shape_of(rank, dims))};
  });
}

st_status st_graph_parameter(st_graph* graph, const char* name, int32_t rank, const int64_t* dims, int32_t init, double scale,
                             st_value* value) {
  return build(graph, "st_graph_parameter", 1, value, [&](GraphObject& g, Builder& b) {
    check(init >= ST_INIT_ZEROS && init <= ST_INIT_KAIMING, "init is ", init, ", allowed is 0 (zeros) to 5 (kaiming)");
    const Shape shape = shape_of(rank, dims);
    check(!shape.is_symbolic(), "a parameter's shape ", shape, " cannot depend on the batch");
    g.parameter_elements += static_cast<double>(shape.elements());
    check(g.parameter_elements <= 0x1p53, "the graph's parameters have about ", g.parameter_elements,
          " elements, more than any memory holds");
    return std::vector<Value>{b.parameter(name_given(name), shape, {.kind = static_cast<Init>(init), .scale = scale, .values = {}})};
  });
}

st_status st_graph_op(st_graph* graph, const char* op, int32_t n, const st_value* inputs, const char* attributes, int32_t m,
                      st_value* values) {
  return build(graph, "st_graph_op", m, values, [&](GraphObject& g, Builder& b) {
    check(n >= 0 && (n == 0 || inputs != nullptr), "inputs is NULL or their number ", n, " negative");
    check(m >= 1, "there is room for ", m, " values; at least 1 is needed");
    std::vector<Value> in;
    for (int32_t i = 0; i < n; ++i) in.push_back(value_of(g, inputs[i]));
    const Op which = op_named(name_given(op));
    check(!info_of(which).outputs.empty() || which == Op::split, name_of(which), " is not an op of models");
    return b.append(which, in, attrs_of(attributes));
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
    check(!taken, "an output named \"", given_name, "\" is there already");
    b.program().outputs.push_back({given_name, value_of(g, value)});
    return std::vector<Value>{};
  });
}

st_status st_graph_loss(st_graph* graph, st_value value) {
  return build(graph, "st_graph_loss", 0, nullptr, [&](GraphObject& g, Builder& b) {
    const Value loss = value_of(g, value);
    const Type& type = b.type(loss);
    check(is_floating(type.dtype) && type.shape.rank() == 0, "the loss is ", text_of(type), "; a floating scalar of shape [] is needed");
    const Op op = b.graph()[loss.node].op;
    const bool counted = op == Op::cross_entropy || op == Op::mse || op == Op::huber || op == Op::bce_with_logits;
    check(!counted || loss.output == 0, "the loss of ", name_of(op), " is its first result");
    g.program.loss_sum = loss;
    g.program.loss_count = counted ? Value{loss.node, 1} : Value{};
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
