#include "passes/tensor_split.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "base/error.h"

namespace st {
namespace {

/// One attempt to split, under which some products are known not to work.
class Walk {
 public:
  Walk(const Program& program, const Graph& graph, int32_t ranks, const Program* like, const std::set<int32_t>& whole)
      : program_(program), graph_(graph), ranks_(ranks), like_(like), whole_(whole) {
    split_.kinds.resize(graph.nodes.size());
    for (const Node& node : graph.nodes) split_.cut.emplace_back(node.out.size());
    of_.resize(graph.nodes.size());
  }

  TensorSplit run() {
    for (at_ = 0; at_ < graph_.size(); ++at_) look_at(graph_[at_]);
    spoil(program_.loss_sum);
    spoil(program_.loss_count);
    check_parameters();
    return std::move(split_);
  }
  const std::set<int32_t>& spoiled() const { return spoiled_; }
  /// Throws the first refusal, unless a product that it is about stays whole anyway.
  void require_parts() const {
    for (const auto& [products, why] : refusals_)
      if (std::ranges::none_of(products, [&](int32_t product) { return spoiled_.contains(product); })) fail(Code::invalid_argument, why);
  }

 private:
  using Kind = TensorSplit::Kind;
  std::optional<TensorCut>& cut(Value v) { return split_.cut[static_cast<size_t>(v.node)][static_cast<size_t>(v.output)]; }
  const Shape& shape(Value v) const { return graph_.type(v).shape; }

  /// The products whose columns a value depends on cannot be split.
  void spoil(Value v) {
    if (v && cut(v)) spoiled_.insert(of_[static_cast<size_t>(v.node)].begin(), of_[static_cast<size_t>(v.node)].end());
  }
  void spoil_all(const Node& node) {
    for (const Value v : node.in) spoil(v);
  }

  bool any_cut(const Node& node) {
    return std::ranges::any_of(node.in, [&](Value v) { return cut(v).has_value(); });
  }

  /// The outputs are cut so; what they depend on is that of the inputs.
  void cut_outputs(const Node& node, const TensorCut& as) {
    for (size_t o = 0; o < node.out.size(); ++o) cut({at_, static_cast<int32_t>(o)}) = as;
    for (const Value v : node.in)
      if (cut(v)) of_[static_cast<size_t>(at_)].insert(of_[static_cast<size_t>(v.node)].begin(), of_[static_cast<size_t>(v.node)].end());
  }

  void look_at(const Node& node) {
    if (is_weight_product(program_, graph_, node)) return look_at_product(node);
    if (node.op == Op::embedding) return look_at_embedding(node);
    if (!any_cut(node)) return;
    if (node.op == Op::cross_entropy) return look_at_loss(node);
    if (node.op == Op::store) return look_at_store(node);
    if (node.op == Op::split) return look_at_split(node);
    if (node.op == Op::reshape) return look_at_reshape(node);
    if (node.op == Op::attention || node.op == Op::rope) return look_at_heads(node);
    if (info_of(node.op).elementwise && node.op != Op::dropout) return look_at_elementwise(node);
    spoil_all(node);
  }

  void look_at_product(const Node& node) {
    const SlotId weight = parameter_behind(program_, graph_, node.in[1]);
    const bool is_transposed = node.attrs.flag(node.op == Op::linear ? "transpose_weight" : "transpose_b");
    for (size_t i = 1; i < node.in.size(); ++i) spoil(node.in[i]);
    if (const auto& x = cut(node.in[0])) {
      if (x->dimension != shape(node.in[0]).rank() - 1 || whole_.contains(at_)) return spoil(node.in[0]);
      split_.kinds[static_cast<size_t>(at_)] = Kind::rows;
      use(weight, {is_transposed ? 1 : 0, x->segments}, at_);
      return;
    }
    if (whole_.contains(at_)) return;
    const Shape& y = node.out[0].shape;
    split_.kinds[static_cast<size_t>(at_)] = Kind::columns;
    cut({at_, 0}) = TensorCut{y.rank() - 1, {y.last()}};
    of_[static_cast<size_t>(at_)].insert(at_);
    pending_[at_] = {weight, is_transposed ? 0 : 1};
    if (node.op == Op::linear) bias_of_[at_].push_back(parameter_behind(program_, graph_, node.in[2]));
  }

  void look_at_embedding(const Node& node) {
    const SlotId table = parameter_behind(program_, graph_, node.in[0]);
    const int64_t classes = shape(node.in[0])[0];
    spoil_all(node);
    if (table < 0 || whole_.contains(at_) || classes % ranks_ != 0) return;
    split_.kinds[static_cast<size_t>(at_)] = Kind::vocabulary;
    use(table, {0, {classes}}, at_);
  }

  void look_at_loss(const Node& node) {
    const auto& logits = cut(node.in[0]);
    const int32_t last = shape(node.in[0]).rank() - 1;
    if (!logits || logits->dimension != last || logits->segments.size() != 1 || shape(node.in[0]).last() % ranks_ != 0)
      return spoil_all(node);
    for (size_t i = 1; i < node.in.size(); ++i) spoil(node.in[i]);
    split_.kinds[static_cast<size_t>(at_)] = Kind::vocabulary;
  }

  /// An output's columns are gathered for the host.
  void look_at_store(const Node& node) {
    const TensorCut& x = *cut(node.in[0]);
    const bool is_gathered = program_.slot(node.writes[0]).role == Role::output && x.dimension == shape(node.in[0]).rank() - 1;
    if (!is_gathered || x.segments.size() != 1) spoil_all(node);
  }

  void look_at_split(const Node& node) {
    const TensorCut x = *cut(node.in[0]);
    const int32_t rank = shape(node.in[0]).rank();
    if (normalize_axis("split", node.attrs.integer("axis"), rank) != x.dimension || x.segments.size() != 1) return spoil_all(node);
    const std::set<int32_t>& products = of_[static_cast<size_t>(node.in[0].node)];
    const Ints& sizes = node.attrs.ints("sizes");
    for (const int32_t product : products) {
      const auto [known, is_new] = segments_.emplace(product, sizes);
      if (!is_new && known->second != sizes) return spoil_all(node);
    }
    cut_outputs(node, x);
    for (size_t o = 0; o < node.out.size(); ++o) cut({at_, static_cast<int32_t>(o)})->segments = {sizes[o]};
  }

  /// [.., heads * size] to [.., heads, size] and back, and leading dimensions joined or parted.
  void look_at_reshape(const Node& node) {
    const TensorCut x = *cut(node.in[0]);
    const Shape &from = shape(node.in[0]), &to = node.out[0].shape;
    const int64_t before = from.elements(0, x.dimension);
    for (int32_t i = 0; i < to.rank(); ++i) {
      if (to.elements(0, i) != before || to[i] == 1) continue;
      if (x.segments.size() > 1 && to[i] != from[x.dimension]) break;
      if (to[i] < from[x.dimension]) need_parts(to[i], "heads", of_[static_cast<size_t>(node.in[0].node)]);
      return cut_outputs(node, {i, x.segments.size() > 1 ? x.segments : Ints{to[i]}});
    }
    spoil_all(node);
  }

  void look_at_heads(const Node& node) {
    for (const Value v : node.in)
      if (!cut(v) || cut(v)->dimension != 2 || shape(v).rank() != 4) return spoil_all(node);
    cut_outputs(node, *cut(node.in[0]));
    if (node.op == Op::attention)
      for (size_t o = 1; o < node.out.size(); ++o) cut({at_, static_cast<int32_t>(o)}) = TensorCut{1, cut(node.in[0])->segments};
  }

  void look_at_elementwise(const Node& node) {
    std::optional<TensorCut> found;
    for (const Value v : node.in)
      if (cut(v) && shape(v) == node.out[0].shape) found = cut(v);
    if (!found) return spoil_all(node);
    for (const Value v : node.in) {
      if (cut(v) == found) continue;
      const SlotId parameter = parameter_behind(program_, graph_, v);
      const bool is_bias = parameter >= 0 && shape(v).rank() == 1 && found->dimension == node.out[0].shape.rank() - 1 &&
                           shape(v).last() == node.out[0].shape.last();
      if (cut(v) || (!is_bias && shape(v).elements() != 1)) return spoil_all(node);
    }
    cut_outputs(node, *found);
    for (const Value v : node.in)
      if (!cut(v) && shape(v).elements() > 1)
        for (const int32_t product : of_[static_cast<size_t>(at_)]) bias_of_[product].push_back(parameter_behind(program_, graph_, v));
  }

  void need_parts(int64_t count, const char* of, const std::set<int32_t>& products) {
    if (count % ranks_ == 0) return;
    const std::string& scope = program_.regions[static_cast<size_t>(graph_[at_].region)].name;
    refusals_.emplace_back(products, text("tensor_parallel: ", scope.empty() ? "" : scope + ": ", count, " ", of, " cannot be cut into ",
                                          ranks_, " equal parts; use a tensor degree that divides them, or 1"));
  }

  void use(SlotId parameter, TensorCut as, int32_t node) { uses_[parameter].emplace_back(std::move(as), node); }

  /// Cut are only those that nothing else reads, and that all cut alike.
  void check_parameters() {
    for (const auto& [product, weight] : pending_) {
      if (spoiled_.contains(product)) continue;
      const auto found = segments_.find(product);
      const Ints segments = found == segments_.end() ? Ints{graph_[product].out[0].shape.last()} : found->second;
      use(weight.first, {weight.second, segments}, product);
      for (const SlotId bias : bias_of_[product]) use(bias, {0, segments}, product);
      at_ = product;
      for (const int64_t segment : segments) need_parts(segment, "columns", {product});
    }
    std::map<SlotId, int64_t> readers;
    for (const Node& node : graph_.nodes) {
      if (node.op == Op::cast || node.op == Op::store) continue;
      for (const Value v : node.in)
        if (const SlotId parameter = parameter_behind(program_, graph_, v); parameter >= 0) ++readers[parameter];
    }
    for (const auto& [parameter, uses] : uses_) {
      const auto is_like_first = [&first = uses.front().first](const auto& use) { return use.first == first; };
      const bool may_be_cut = like_ == nullptr || like_->slot(parameter).piece.is_cut();
      if (may_be_cut && std::ssize(uses) == readers[parameter] && std::ranges::all_of(uses, is_like_first)) {
        split_.parameters.emplace(parameter, uses.front().first);
        continue;
      }
      for (const auto& [cut, node] : uses) spoiled_.insert(node);
    }
  }

  const Program& program_;
  const Graph& graph_;
  const int32_t ranks_;
  const Program* const like_;
  const std::set<int32_t>& whole_;
  int32_t at_ = 0;
  TensorSplit split_;
  std::vector<std::set<int32_t>> of_;                                  // by node: products of whose columns its outputs are
  std::map<int32_t, Ints> segments_;                                   // by product, if its columns are those of several weights
  std::map<int32_t, std::pair<SlotId, int32_t>> pending_;              // by product: the weight and the dimension of its columns
  std::map<int32_t, std::vector<SlotId>> bias_of_;                     // by product
  std::map<SlotId, std::vector<std::pair<TensorCut, int32_t>>> uses_;  // how, and by which node
  std::set<int32_t> spoiled_;
  std::vector<std::pair<std::set<int32_t>, std::string>> refusals_;  // the products that each is about
};

}  // namespace

SlotId parameter_behind(const Program& program, const Graph& graph, Value v) {
  const Node* node = &graph[v.node];
  while (node->op == Op::cast) node = &graph[node->in[0].node];
  return program.parameter_of(*node);
}

bool is_weight_product(const Program& program, const Graph& graph, const Node& node) {
  if (node.op != Op::linear && (node.op != Op::matmul || node.attrs.flag("transpose_a"))) return false;
  return graph.type(node.in[1]).shape.rank() == 2 && parameter_behind(program, graph, node.in[1]) >= 0;
}

TensorSplit split_products(const Program& program, const Section& forward, int32_t ranks, const Program* like) {
  for (std::set<int32_t> whole;;) {
    Walk walk(program, forward.graph, ranks, like, whole);
    TensorSplit split = walk.run();
    walk.require_parts();
    if (walk.spoiled().empty()) return split;
    whole.insert(walk.spoiled().begin(), walk.spoiled().end());
  }
}

}  // namespace st
