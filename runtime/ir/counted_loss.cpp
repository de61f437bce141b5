#include "ir/counted_loss.h"

#include <algorithm>
#include <tuple>

namespace st {
namespace {

bool is_loss(Op op) { return info_of(op).layout_rule == "loss"; }

bool is_one_element(const Type& type) { return !type.shape.is_symbolic() && type.shape.elements() == 1; }

bool grows_with_rows(const Type& type) {
  return std::ranges::count_if(type.shape, [](int64_t dim) { return dim < 0; }) == 1;
}

/// The elements that a term's sum is over. Counts that depend on the data are equal if all their operands are.
struct Count {
  enum class Known { rows, micro_batch, data } by = Known::data;
  int64_t elements = 0;  // rows: of a row; micro_batch: of each
  std::tuple<Value, Value, int64_t> made_of = {};
  bool operator==(const Count&) const = default;

  bool has_fixed_ratio_to(const Count& other) const { return *this == other || (by == other.by && by != Known::data); }
};

/// One of the terms that are added. Without a count it already is a mean over rows.
struct Term {
  int32_t node;
  Value sum, count = {};
  Count over = {};
};

class Formula {
 public:
  Formula(Builder& b, Value loss) : b_(b), loss_(loss) {
    find_facts();
    find_terms();
  }

  CountedLoss make() {
    find_count();
    std::vector<Value> made(terms_of_.size());
    const auto counted = [&](Value v) { return varies(v) ? made[static_cast<size_t>(v.node)] : times_count(v); };
    for (int32_t n = 0; n <= loss_.node; ++n) {
      const int32_t term = terms_of_[static_cast<size_t>(n)];
      if (term >= 0) made[static_cast<size_t>(n)] = counted_term(terms_[static_cast<size_t>(term)]);
      if (term == kChain) made[static_cast<size_t>(n)] = counted_node(Node(b_.graph()[n]), counted);
    }
    return {counted(loss_), count_};
  }

 private:
  static constexpr int32_t kNeither = -1, kChain = -2;

  const Graph& graph() const { return b_.graph(); }
  bool varies(Value v) const { return varies_[static_cast<size_t>(v.node)]; }
  bool is_on_batch(int32_t node) const { return on_batch_[static_cast<size_t>(node)]; }
  std::string name(int32_t node) const {
    const std::string& scope = b_.program().regions[static_cast<size_t>(graph()[node].region)].name;
    return text(name_of(graph()[node].op), " (%", node, scope.empty() ? "" : " in ", scope, ")");
  }

  void find_facts() {
    for (int32_t n = 0; n <= loss_.node; ++n) {
      const Node& node = graph()[n];
      const auto any = [&](const std::vector<bool>& fact) {
        return std::ranges::any_of(node.in, [&](Value v) { return fact[static_cast<size_t>(v.node)]; });
      };
      const Slot* loaded = node.op == Op::load ? &b_.program().slot(node.reads[0]) : nullptr;
      const bool is_control = loaded != nullptr && loaded->role == Role::control;  // as dropout's counters
      const bool is_trained = loaded != nullptr && loaded->role == Role::parameter && loaded->trainable;
      const bool is_of_rows = std::ranges::any_of(node.out, [](const Type& type) { return type.shape.is_symbolic(); });
      on_batch_.push_back(is_of_rows || is_control || any(on_batch_));
      varies_.push_back(on_batch_.back() || is_loss(node.op) || any(varies_));
      const auto is_varying_scalar = [&](Value v) { return varies(v) && graph().type(v).shape.rank() == 0; };
      of_scalars_.push_back(std::ranges::any_of(node.in, is_varying_scalar) || any(of_scalars_));
      trains_.push_back(is_trained || any(trains_));
    }
  }

  /// Walks back from the loss through nodes that are linear in the terms.
  void find_terms() {
    terms_of_.assign(varies_.size(), kNeither);
    const auto need = [&](Value v) {
      if (!varies(v)) return;
      check(v.output == 0 || !is_loss(graph()[v.node].op), "the loss of ", name_of(graph()[v.node].op), " is its first result, not its ",
            v.output == 1 ? "count" : "row values");
      terms_of_[static_cast<size_t>(v.node)] = kChain;
    };
    need(loss_);
    for (int32_t n = loss_.node; n >= 0; --n) {
      if (terms_of_[static_cast<size_t>(n)] != kChain) continue;
      if (is_chain(graph()[n])) {
        std::ranges::for_each(graph()[n].in, need);
      } else {
        terms_of_[static_cast<size_t>(n)] = static_cast<int32_t>(terms_.size());
        terms_.push_back(term_at(n));
      }
    }
  }

  bool is_chain(const Node& node) const {
    if (!is_one_element(node.out[0]) || !is_floating(node.out[0].dtype) || node.in.empty()) return false;
    const Type& operand = graph().type(node.in[0]);
    switch (node.op) {
      case Op::add:
      case Op::sub:
      case Op::neg:
      case Op::affine:
      case Op::reshape:
        return true;
      case Op::cast:
        return is_floating(operand.dtype);
      case Op::sum:
      case Op::mean:
        return is_one_element(operand);
      case Op::mul:
        return !varies(node.in[0]) || !varies(node.in[1]);
      case Op::div:
        return !varies(node.in[1]);
      default:
        return false;
    }
  }

  bool is_over_rows(int32_t node, Op op) const {
    const Node& it = graph()[node];
    return it.op == op && is_one_element(it.out[0]) && grows_with_rows(graph().type(it.in[0])) && !of_scalars_[static_cast<size_t>(node)];
  }

  /// Whether the value's sum over micro-batches is the value of the step.
  bool is_total(Value v) const {
    const bool is_of_loss = is_loss(graph()[v.node].op) && v.output <= 1 && !of_scalars_[static_cast<size_t>(v.node)];
    return is_of_loss || is_over_rows(v.node, Op::sum);
  }

  Value behind_casts(Value v) const {
    while (graph()[v.node].op == Op::cast) v = graph()[v.node].in[0];
    return v;
  }

  Term term_at(int32_t node) const {
    const Node& it = graph()[node];
    if (is_loss(it.op) && is_total({node, 0})) return {node, {node, 0}, {node, 1}, count_of(it)};
    if (is_over_rows(node, Op::mean)) return {node, {node, 0}};
    if (it.op == Op::div) {
      const Value above = behind_casts(it.in[0]), below = behind_casts(it.in[1]);
      const Node& divisor = graph()[below.node];
      const bool has_totals = is_total(above) && is_total(below);
      if (has_totals && is_loss(divisor.op) && below.output == 1) return {node, above, below, count_of(divisor)};
      if (has_totals && divisor.op == Op::sum && !trains_[static_cast<size_t>(below.node)])
        return {node, above, below, {.made_of = {below, {}, 0}}};
    }
    if (is_over_rows(node, Op::sum))
      fail(Code::invalid_argument, text(name(node), " sums over the rows of a micro-batch, so the loss grows with their number; use mean"));
    fail(Code::invalid_argument,
         text(name(node),
              " reads a value computed over a whole micro-batch, such as a loss, so its result would depend on how a batch is cut into "
              "micro-batches. Losses and means over the batch can be scaled, added and subtracted; compute any other function on each row, "
              "before the mean, or in the host (st_trainer_forward)"));
  }

  Count count_of(const Node& loss) const {
    const Type& x = graph().type(loss.in[0]);
    const Value weights = loss.in.size() > 2 ? loss.in[2] : Value{};
    if (loss.op == Op::cross_entropy) return {.made_of = {loss.in[1], weights, loss.attrs.integer("ignore_index")}};
    if (weights) return {.made_of = {{}, weights, 0}};
    if (grows_with_rows(x)) return {.by = Count::Known::rows, .elements = -x.shape.elements()};
    if (!x.shape.is_symbolic()) return {.by = Count::Known::micro_batch, .elements = x.shape.elements()};
    return {.made_of = {loss.in[0], {}, 0}};
  }

  /// Takes the count of the first batch-dependent term that has one, or of the only term; otherwise the number of rows, or 1.
  void find_count() {
    std::ranges::reverse(terms_);
    for (int32_t& term : terms_of_)
      if (term >= 0) term = static_cast<int32_t>(terms_.size()) - 1 - term;
    const auto first = [&](const auto& is_it) { return std::ranges::find_if(terms_, is_it); };
    auto found = first([&](const Term& term) { return term.count && is_on_batch(term.node); });
    if (found == terms_.end() && terms_.size() == 1) found = first([](const Term& term) { return static_cast<bool>(term.count); });
    if (found != terms_.end()) {
      over_ = found->over;
      whose_ = found->node;
      count_ = b_.as(found->count, DType::f64);
      return;
    }
    const bool has_rows = first([](const Term& term) { return !term.count; }) != terms_.end();
    over_ = {.by = has_rows ? Count::Known::rows : Count::Known::micro_batch, .elements = 1};
    const Value one = b_.fill(has_rows ? Shape{kBatch} : Shape{}, 1, DType::f64);
    count_ = has_rows ? b_.sum(one, {}) : one;
  }

  Value scalar(Value v) { return b_.as(b_.shape(v).rank() == 0 ? v : b_.reshape(v, {}), DType::f64); }
  Value times_count(Value mean) { return b_.mul(scalar(mean), count_); }

  Value counted_term(const Term& term) {
    if (!term.count) {
      if (over_.by != Count::Known::rows) refuse_with_others(term);
      return times_count(term.sum);
    }
    const Value sum = scalar(term.sum);
    if (term.over == over_) return sum;
    if (term.over.has_fixed_ratio_to(over_))
      return b_.scale(sum, static_cast<double>(over_.elements) / static_cast<double>(term.over.elements));
    if (is_on_batch(term.node)) refuse_with_others(term);
    return times_count(b_.div(sum, scalar(term.count)));
  }

  [[noreturn]] void refuse_with_others(const Term& term) const {
    fail(Code::invalid_argument,
         text(name(whose_), " and ", name(term.node),
              " are added, but the ratio of their counts differs between micro-batches: one count depends on the data (ignored labels, "
              "weights, a divisor) or does not grow with the batch. Give both the same targets and weights, write both as means over the "
              "batch (of weight times loss of each row), or compute the loss in the host (st_trainer_forward)"));
  }

  /// Rebuilds a node that is linear in the terms, multiplied by the count.
  template <class Counted>
  Value counted_node(const Node& node, const Counted& counted) {
    const Value x = node.in[0];
    switch (node.op) {
      case Op::add:
        return b_.add(counted(x), counted(node.in[1]));
      case Op::sub:
        return b_.sub(counted(x), counted(node.in[1]));
      case Op::neg:
        return b_(Op::neg, {counted(x)});
      case Op::affine: {
        const double shift = node.attrs.real("shift");
        const Value scaled = b_.scale(counted(x), node.attrs.real("scale"));
        return shift == 0 ? scaled : b_.add(scaled, b_.scale(count_, shift));
      }
      case Op::mul:
        return varies(x) ? b_.mul(counted(x), scalar(node.in[1])) : b_.mul(scalar(x), counted(node.in[1]));
      case Op::div:
        return b_.div(counted(x), scalar(node.in[1]));
      default:  // the same number in another type or shape
        return counted(x);
    }
  }

  Builder& b_;
  Value loss_, count_;
  Count over_;
  int32_t whose_ = -1;  // the node of the term whose count is count_
  // By node: depends on the batch; on the batch or on a loss op's value; on a scalar of the second kind; on a trainable parameter.
  std::vector<bool> on_batch_, varies_, of_scalars_, trains_;
  std::vector<int32_t> terms_of_;  // by node: its term, kChain for a node between terms and the loss, or kNeither
  std::vector<Term> terms_;
};

}  // namespace

CountedLoss counted_loss(Builder& b, Value loss) { return Formula(b, loss).make(); }

bool reads_loss(const Graph& graph, Value value) {
  std::vector<bool> reads(static_cast<size_t>(value.node) + 1);
  const auto is_or_reads = [&](Value v) { return reads[static_cast<size_t>(v.node)] || (is_loss(graph[v.node].op) && v.output == 0); };
  for (int32_t n = 0; n <= value.node; ++n) reads[static_cast<size_t>(n)] = std::ranges::any_of(graph[n].in, is_or_reads);
  return is_or_reads(value);
}

}  // namespace st
