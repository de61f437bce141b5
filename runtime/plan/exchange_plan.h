// The collectives of a plan and its messages between stages: what each rank contributes to and receives from them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/reduce_op.h"
#include "ir/program.h"

namespace st {

struct ExchangePlan {
  /// One of the tensors that are cut into the shards of the ranks, as cuts_of() the parameter; here `grain` elements of the parameter are
  /// one.
  struct Tensor {
    int32_t operand;    // index in the inputs of a reduce_scatter, in the written slots of the other ops
    SlotId cut_like;    // the parameter
    int64_t bytes;      // of an element
    int64_t first = 0;  // the element at which rank 0's shard begins
    int64_t grain = 1;
    bool operator==(const Tensor&) const = default;
  };

  struct Range {
    int64_t begin, elements;
  };
  /// Gets the parts of a shard that are contiguous in the operand, in order.
  using Part = std::function<void(int64_t begin, int64_t elements)>;

  Op op = Op::await;
  MeshAxis axis = MeshAxis::data;  // the ranks that take part
  DType dtype = DType::f32;        // of the elements exchanged; u8: the bytes of tensors of several types
  bool adds = false;               // reductions: adds to what the results are
  SumType sums = SumType::wide;    // reductions: the type of the results
  std::string label = {};          // name of one of its gradients or parameters, and their number
  std::vector<Tensor> tensors = {};
  int64_t terms = 0;              // rank_sums: the numbers that each rank contributes
  int32_t link = -1, other = -1;  // send, receive: index in Program::links; the other stage
  bool is_fast = false;           // the network of the ranks' devices adds and gathers by its own collectives (use_fast_collectives)
  int64_t elements = 0;           // of a message, or of the whole value of a collective of values (is_of_values)
  bool operator==(const ExchangePlan&) const = default;
};

/// A tensor_sum of at most so many bytes: each rank gets the terms of all and adds them itself.
constexpr int64_t kSummedAtOnce = 4096;

/// Whether each rank of a network gets the sum of whole terms, instead of its part of it.
bool is_of_whole_terms(const ExchangePlan& exchange);

/// The exchange of a collective node.
ExchangePlan exchange_of(const Program& program, const Graph& graph, const Node& node);

/// Marks the exchanges that a network of devices runs by its own collectives: those of gradients, weights and values. The numbers of the
/// norm and the loss are few, and stay in our order of sums, like what goes along the stage axis.
void use_fast_collectives(std::vector<ExchangePlan>& exchanges);

/// The shard of a tensor that a data rank has, in elements of the operand.
ExchangePlan::Range shard_of(const ExchangePlan::Tensor& tensor, const Program& program, int32_t data_rank);
/// The same for a rank along the exchange's axis, in parts: along `all`, it may be a shard of a tensor rank's piece.
void each_part_of(const ExchangePlan& exchange, const ExchangePlan::Tensor& tensor, const Program& program, int32_t rank,
                  const ExchangePlan::Part& take);

}  // namespace st
