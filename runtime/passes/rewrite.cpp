#include "passes/rewrite.h"

#include <string>
#include <utility>

#include "base/error.h"

namespace st {

Rewrite::Rewrite(Program& program, Section& section) : program_(program), section_(section) {
  size_t values = 0;
  begins_.reserve(old().nodes.size());
  for (const Node& node : old().nodes) {
    begins_.push_back(values);
    values += node.out.size();
  }
  made_.resize(values);
  new_.nodes.reserve(old().nodes.size());
}

Value Rewrite::at(Value old) const {
  const Value made = made_of(old);
  require(static_cast<bool>(made), Code::internal, "rewrite: output ", old.output, " of node ", old.node, " has no new value yet");
  return made;
}

int32_t Rewrite::append(Node node) {
  new_.nodes.push_back(std::move(node));
  return new_.size() - 1;
}

int32_t Rewrite::keep(int32_t node) {
  Node copy = old()[node];
  for (Value& v : copy.in) v = at(v);
  return replace(node, std::move(copy));
}

int32_t Rewrite::replace(int32_t node, Node by) {
  const int32_t index = append(std::move(by));
  const auto outputs = static_cast<int32_t>(old()[node].out.size());
  for (int32_t i = 0; i < outputs; ++i) map({node, i}, {index, i});
  return index;
}

void Rewrite::finish() {
  section_.graph = std::move(new_);
  if (&section_ != program_.last_forward()) return;
  const auto carry = [&](Value& v) {
    if (v) v = at(v);
  };
  for (Output& output : program_.outputs) {
    carry(output.value);
    carry(output.count);
  }
  carry(program_.loss_sum);
  carry(program_.loss_count);
}

Value append_cast(Rewrite& rewrite, Value value, DType dtype, RegionId region, When when) {
  Type type = rewrite.made().type(value);
  if (type.dtype == dtype) return value;
  type.dtype = dtype;
  return {rewrite.append({.op = Op::cast,
                          .in = {value},
                          .out = {type},
                          .reads = {},
                          .writes = {},
                          .attrs = make_attrs(Op::cast, {{"dtype", std::string(name_of(dtype))}}),
                          .region = region,
                          .when = when}),
          0};
}

std::string free_name(const Program& program, std::string name) {
  while (program.slot_named(name) >= 0) name += ".again";
  return name;
}

std::vector<std::vector<int32_t>> uses_of(const Program& program, const Section& section) {
  std::vector<std::vector<int32_t>> uses;
  for (const Node& node : section.graph.nodes) uses.emplace_back(node.out.size(), 0);
  const auto use = [&](Value v) {
    if (v) ++uses[static_cast<size_t>(v.node)][static_cast<size_t>(v.output)];
  };
  for (const Node& node : section.graph.nodes)
    for (const Value v : node.in) use(v);
  if (&section == program.last_forward()) {
    for (const Output& output : program.outputs) {
      use(output.value);
      use(output.count);
    }
    use(program.loss_sum);
    use(program.loss_count);
  }
  return uses;
}

}  // namespace st
