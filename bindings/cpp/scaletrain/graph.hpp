// A graph: a model as ops over values. Unlike in C, a wrong call throws at once.
#pragma once

#include <scaletrain/graph.h>
#include <scaletrain/layer.h>

#include <initializer_list>
#include <scaletrain/context.hpp>
#include <string>
#include <type_traits>
#include <vector>

namespace scaletrain {

/// An input's first dimension, bound by each call's data; n * kBatch is n times the batch.
constexpr int64_t kBatch = -1;

enum class Init : int32_t { zeros = 0, ones = 1, normal = 2, uniform = 3, xavier = 4, kaiming = 5 };

class Graph;

/// A value: an id and its graph. Valid while its Graph, or the one that was moved to, lives.
class Value {
 public:
  Value() = default;
  Value(st_graph* graph, st_value id, detail::Host* host) : graph_(graph), id_(id), host_(host) {}
  // For the C ABI: x.made(st_op_softmax(x.graph(), x.id(), -1)).
  st_value id() const noexcept { return id_; }
  st_graph* graph() const noexcept { return graph_; }
  /// The id, for a call of `graph`. Throws if the value belongs to another graph, where the same id would be another value.
  st_value id_in(const st_graph* graph) const {
    if (graph != nullptr && graph_ != nullptr && graph_ != graph)
      throw Error(Status::invalid_argument, "value " + std::to_string(id_) + " belongs to another graph; make it in this one");
    return id_;
  }
  /// Wraps the result of a wrapper of ops.h; if it is 0, throws that call's error.
  Value made(st_value id) const;

  friend Value operator+(const Value& a, const Value& b) { return apply("add", {a, b}, nullptr); }
  friend Value operator-(const Value& a, const Value& b) { return apply("sub", {a, b}, nullptr); }
  friend Value operator*(const Value& a, const Value& b) { return apply("mul", {a, b}, nullptr); }
  friend Value operator/(const Value& a, const Value& b) { return apply("div", {a, b}, nullptr); }
  friend Value operator-(const Value& a) { return apply("neg", {a}, nullptr); }

 private:
  static Value apply(const char* op, std::initializer_list<Value> inputs, const char* attributes) {
    const Value& first = *inputs.begin();
    st_value ids[2] = {0, 0}, made = 0;
    int32_t n = 0;
    for (const Value& input : inputs) ids[n++] = input.id_in(first.graph_);
    detail::conclude(st_graph_op(first.graph_, op, n, ids, attributes, 1, &made), first.host_, nullptr);
    return {first.graph_, made, first.host_};
  }

  st_graph* graph_ = nullptr;
  st_value id_ = 0;
  detail::Host* host_ = nullptr;
};

namespace detail {

/// The error of this thread's last call, which gave 0.
inline st_status status_of_last_error() {
  st_error_info info;
  check(st_error_info_init(&info, sizeof info));
  check(st_last_error_info(&info));
  return info.status;
}

inline Value made(st_graph* graph, st_value id, Host* host) {
  conclude(id == 0 ? status_of_last_error() : ST_OK, host, nullptr);
  return {graph, id, host};
}

inline st_value id_or_none(const Value& value, const st_graph* graph) { return value.id() == 0 ? ST_NONE : value.id_in(graph); }

inline std::vector<st_value> ids_of(const std::vector<Value>& values, const st_graph* graph) {
  std::vector<st_value> ids;
  for (const Value& value : values) ids.push_back(value.id_in(graph));
  return ids;
}

/// The value whose graph a list is for.
inline const Value& first_of(const std::vector<Value>& values) {
  if (values.empty()) throw Error(Status::invalid_argument, "ops: a list of values is empty, so there is no graph to work on");
  return values.front();
}

}  // namespace detail

inline Value Value::made(st_value id) const { return detail::made(graph_, id, host_); }

/// An attribute of an op: {"axis", -1}, {"epsilon", 1e-5}, {"keep_dims", true}, {"axes", {0, 1}}, {"approximate", "erf"}.
class Attribute {
 public:
  template <class Number, class Arithmetic = std::enable_if_t<std::is_arithmetic_v<Number>>>
  Attribute(std::string name, Number value) : name_(std::move(name)) {
    if constexpr (std::is_same_v<Number, bool>) {
      type_ = ST_ATTRIBUTE_BOOL;
      integer_ = value ? 1 : 0;
    } else if constexpr (std::is_integral_v<Number>) {
      type_ = ST_ATTRIBUTE_INT;
      integer_ = static_cast<int64_t>(value);
    } else {
      type_ = ST_ATTRIBUTE_REAL;
      real_ = static_cast<double>(value);
    }
  }
  Attribute(std::string name, const char* word) : name_(std::move(name)), type_(ST_ATTRIBUTE_WORD), word_(word) {}
  Attribute(std::string name, std::vector<int64_t> integers)
      : name_(std::move(name)), type_(ST_ATTRIBUTE_INTS), integers_(std::move(integers)) {}

  /// For the C ABI; points into this attribute.
  st_attribute raw() const {
    st_attribute raw{};
    raw.name = name_.c_str();
    raw.type = type_;
    raw.count = static_cast<int32_t>(integers_.size());
    raw.integer = integer_;
    raw.real = real_;
    raw.integers = integers_.data();
    raw.word = word_.c_str();
    return raw;
  }

 private:
  std::string name_;
  int32_t type_ = 0;
  int64_t integer_ = 0;
  double real_ = 0;
  std::vector<int64_t> integers_;
  std::string word_;
};

struct ValueInfo {
  DType dtype = DType::f32;
  std::vector<int64_t> dims;  // dims[0] = -n is n times the batch
};

/// A scope that ends with the C++ block: { const Scope scope = graph.scope("encoder"); ... }
class Scope {
 public:
  explicit Scope(st_graph* graph) noexcept : graph_(graph) {}
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  ~Scope() { end(); }
  void end() noexcept {
    if (graph_ != nullptr) st_graph_scope_end(graph_);
    graph_ = nullptr;
  }

 private:
  st_graph* graph_;
};

class Graph : public detail::Handle<st_graph, st_graph_destroy> {
 public:
  explicit Graph(const Context& context) : Handle(detail::Access::host(context)) { done(st_graph_create(context.get(), out())); }

  Value input(const std::string& name, DType dtype, const std::vector<int64_t>& dims) const {
    st_value made = 0;
    return value(st_graph_input(get(), name.c_str(), static_cast<st_dtype>(dtype), rank(dims), dims.data(), &made), made);
  }
  /// scale: standard deviation, half width or gain, depending on Init.
  Value parameter(const std::string& name, const std::vector<int64_t>& dims, Init init, double scale) const {
    st_value made = 0;
    return value(st_graph_parameter(get(), name.c_str(), rank(dims), dims.data(), static_cast<int32_t>(init), scale, &made), made);
  }
  /// A parameter with these initial values, copied. Not trainable: no step changes it.
  Value parameter(const std::string& name, const View& values, bool trainable) const {
    st_value made = 0;
    const st_view raw = values.raw();
    return value(st_graph_parameter_values(get(), name.c_str(), &raw, trainable ? 1 : 0, &made), made);
  }

  /// Any op. attributes: a JSON object, or "".
  Value op(const std::string& name, const std::vector<Value>& inputs, const std::string& attributes) const {
    return op(name, inputs, attributes, 1).front();
  }
  Value op(const std::string& name, const std::vector<Value>& inputs) const { return op(name, inputs, std::string()); }
  /// Returns its first `count` results.
  std::vector<Value> op(const std::string& name, const std::vector<Value>& inputs, const std::string& attributes, int32_t count) const {
    std::vector<st_value> ids = detail::ids_of(inputs, get()), made = room(count);
    done(st_graph_op(get(), name.c_str(), static_cast<int32_t>(ids.size()), ids.data(), attributes.empty() ? nullptr : attributes.c_str(),
                     count, made.data()));
    return results(name, made);
  }
  /// The same with typed attributes.
  Value apply(const std::string& name, const std::vector<Value>& inputs, const std::vector<Attribute>& attributes) const {
    return apply(name, inputs, attributes, 1).front();
  }
  std::vector<Value> apply(const std::string& name, const std::vector<Value>& inputs, const std::vector<Attribute>& attributes,
                           int32_t count) const {
    std::vector<st_value> ids = detail::ids_of(inputs, get()), made = room(count);
    std::vector<st_attribute> raw;
    for (const Attribute& attribute : attributes) raw.push_back(attribute.raw());
    done(st_graph_apply(get(), name.c_str(), static_cast<int32_t>(ids.size()), ids.data(), static_cast<int32_t>(raw.size()), raw.data(),
                        count, made.data()));
    return results(name, made);
  }

  // Layers: parameters and their op under one scope. options: a JSON object, or "".
  Value linear(const std::string& name, const Value& x, const std::string& options) const {
    return layer(st_layer_linear, name, x, options);
  }
  Value embedding(const std::string& name, const Value& tokens, const std::string& options) const {
    return layer(st_layer_embedding, name, tokens, options);
  }
  Value norm(const std::string& name, const Value& x, const std::string& options) const { return layer(st_layer_norm, name, x, options); }
  Value attention(const std::string& name, const Value& x, const std::string& options) const {
    return layer(st_layer_attention, name, x, options);
  }
  Value mlp(const std::string& name, const Value& x, const std::string& options) const { return layer(st_layer_mlp, name, x, options); }
  Value dropout(const std::string& name, const Value& x, const std::string& options) const {
    return layer(st_layer_dropout, name, x, options);
  }

  /// Prefixes the names that follow with "name." while the result lives.
  [[nodiscard]] Scope scope(const std::string& name) const {
    done(st_graph_scope(get(), name.c_str()));
    return Scope(get());
  }
  void output(const std::string& name, const Value& value) const { done(st_graph_output(get(), name.c_str(), value.id_in(get()))); }
  /// Losses and means over the batch, also scaled, added and subtracted; a step minimises the formula's mean over its rows (st_graph_loss).
  void loss(const Value& value) const { done(st_graph_loss(get(), value.id_in(get()))); }

  ValueInfo info(const Value& value) const {
    st_value_info raw;
    done(st_value_info_init(&raw, sizeof raw));
    done(st_graph_value(get(), value.id_in(get()), &raw));
    return {static_cast<DType>(raw.dtype), std::vector<int64_t>(raw.dims, raw.dims + raw.rank)};
  }
  /// Wraps the result of a wrapper of ops.h; if it is 0, throws that call's error.
  Value made(st_value id) const { return detail::made(get(), id, host().get()); }
  /// The value of an id. Throws if the graph has none.
  Value value(st_value id) const {
    st_value_info raw;
    done(st_value_info_init(&raw, sizeof raw));
    done(st_graph_value(get(), id, &raw));
    return {get(), id, host().get()};
  }
  /// The graph as text, one node a line.
  std::string text() const { return Handle::text(st_graph_text); }

 private:
  using LayerCall = st_status (*)(st_graph*, const char*, st_value, const char*, st_value*);
  Value layer(LayerCall call, const std::string& name, const Value& x, const std::string& options) const {
    st_value made = 0;
    return value(call(get(), name.c_str(), x.id_in(get()), options.empty() ? nullptr : options.c_str(), &made), made);
  }
  Value value(st_status status, const st_value& made) const {  // by reference: read after the call that fills it
    done(status);
    return {get(), made, host().get()};
  }
  std::vector<Value> results(const std::string& op, const std::vector<st_value>& ids) const {
    std::vector<Value> made;
    for (const st_value id : ids) {
      if (id == 0)
        throw Error(Status::invalid_argument, "Graph: op \"" + op + "\" has " + std::to_string(made.size()) + " results, " +
                                                  std::to_string(ids.size()) + " were requested");
      made.emplace_back(get(), id, host().get());
    }
    return made;
  }
  static std::vector<st_value> room(int32_t count) {
    constexpr int32_t most = 65536;
    if (count < 1 || count > most)
      throw Error(Status::invalid_argument,
                  "Graph: " + std::to_string(count) + " results were requested; must be 1 to " + std::to_string(most));
    return std::vector<st_value>(static_cast<size_t>(count), 0);
  }
  static int32_t rank(const std::vector<int64_t>& dims) { return static_cast<int32_t>(dims.size()); }
};

}  // namespace scaletrain
