#include "exec/planned_exchange.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "exec/device_exchange.h"
#include "exec/device_operands.h"
#include "exec/network_exchange.h"

namespace st {

PlannedExchange::PlannedExchange(const ExchangePlan& exchange, const Program& program, const Call& call, Communicator& ranks,
                                 Backend& backend, Stream* stream, Stream* computing, TermRoom* room)
    : exchange_(exchange),
      program_(program),
      call_(call),
      ranks_(ranks),
      backend_(backend),
      stream_(stream),
      op_(exchange.op),
      adds_(exchange.adds),
      label_(exchange.label),
      dtype_(exchange.dtype),
      parts_(ranks),
      whole_(ranks) {
  if (!backend.is_host_memory()) mirror_.emplace(backend, call);
  if (stream != nullptr && is_over_network(exchange, ranks, backend)) {
    is_networked_ = true;
    device_ = std::make_unique<NetworkExchange>(exchange, program, call, ranks, backend, computing == nullptr ? *stream : *computing, room);
  } else if (stream != nullptr && DeviceExchange::is_possible(backend, ranks)) {
    device_ = std::make_unique<DeviceExchange>(exchange, program, call, ranks, backend);
  }
  if (device_) {
    forked_ = backend.make_event();
    joins_ = backend.make_event();
  }
  place();
}

bool PlannedExchange::is_over_network(const ExchangePlan& exchange, const Communicator& ranks, const Backend& backend) {
  return !backend.is_host_memory() && ranks.devices() != nullptr && exchange.axis != MeshAxis::stage;
}

void PlannedExchange::place() {
  if (!mirror_) return place_in_host();
  if (device_) device_->place();
  mirror_->place();
  is_placed_ = false;
}

void PlannedExchange::place_in_host() {
  parts_.clear();
  whole_.clear();
  terms_.clear();
  sums_.clear();
  const std::span<const Operand> operands = op_ == Op::reduce_scatter ? call_.in : call_.writes;
  for (const ExchangePlan::Tensor& tensor : exchange_.tensors)
    for (int32_t rank = 0; rank < ranks_.size(); ++rank) {
      auto* const whole = in_host(operands[static_cast<size_t>(tensor.operand)]);  // null: not bound yet
      each_part_of(exchange_, tensor, program_, rank, [&](int64_t begin, int64_t elements) {
        parts_.add(rank, whole == nullptr ? nullptr : whole + begin * tensor.bytes, elements * tensor.bytes / bytes_of(dtype_));
      });
    }
  switch (op_) {
    case Op::tensor_gather:
    case Op::tensor_scatter:
      place_rows();
      break;
    case Op::tensor_sum:
      place_sum();
      break;
    case Op::reduce_scatter:
      for (const Operand& part : call_.writes) parts_.add_sum(in_host(part), part.elements());
      break;
    case Op::all_gather:
      own_ = call_.reads;
      break;
    case Op::rank_sums: {
      const auto terms = static_cast<size_t>(exchange_.terms);
      gathered_.resize(terms * static_cast<size_t>(ranks_.size()));
      for (int rank = 0; rank < ranks_.size(); ++rank) parts_.add(rank, gathered_.data() + rank * exchange_.terms, exchange_.terms);
      const auto each = [&](std::span<const Operand> of, auto& to) {
        for (const Operand& operand : of)
          for (int64_t i = 0; i < operand.elements(); ++i) to.push_back(in_host<double>(operand) + i);
      };
      each(call_.in, terms_);
      each(call_.writes, sums_);
      break;
    }
    default:
      squares_ = in_host<const double>(call_.in[0]);
  }
}

void PlannedExchange::run(int contributors) {
  if (!mirror_) return run_in_host(contributors);
  if (!device_) return run_mirrored(contributors);
  stream_->wait(*forked_);
  if (!device_->run(*stream_, contributors)) {
    stream_->finish();
    run_mirrored(contributors);
  }
  stream_->record(*joins_);
}

void PlannedExchange::fork(Stream& computing) { computing.record(*forked_); }

void PlannedExchange::join(Stream& computing) { computing.wait(*joins_); }

void PlannedExchange::run_mirrored(int contributors) {
  require_on_device(backend_, call_, op_, label_);
  if (!std::exchange(is_placed_, true)) place_in_host();
  mirror_->download();
  run_in_host(contributors);
  mirror_->upload();
}

void PlannedExchange::run_in_host(int contributors) {
  switch (op_) {
    case Op::reduce_scatter:
      return parts_.reduce(dtype_, exchange_.sums, contributors, adds_, label_);
    case Op::rank_sums:
      return sum_terms(contributors);
    case Op::tensor_scatter:
      return parts_.reduce(dtype_, SumType::wide, contributors, false, label_);
    case Op::tensor_gather:
      std::memcpy(parts_.own()[0].data, in_host(call_.in[0]), static_cast<size_t>(call_.in[0].elements() * bytes_of(dtype_)));
      return parts_.gather(dtype_, label_);
    case Op::tensor_sum:
      return add_values();
    case Op::gather_squares:
      place_squares();
      return parts_.gather(dtype_, label_);
    case Op::all_gather:
      place_own_pieces();
      [[fallthrough]];
    default:
      return parts_.gather(dtype_, label_);
  }
}

/// This rank's, from where they lie, among those of all.
void PlannedExchange::place_own_pieces() {
  auto to = parts_.own().begin();
  for (const Operand& own : own_)
    for (int64_t at = 0, bytes = own.elements() * bytes_of(own.dtype); at < bytes; ++to) {
      std::memcpy(to->data, in_host(own) + at, static_cast<size_t>(to->elements * bytes_of(dtype_)));
      at += to->elements * bytes_of(dtype_);
    }
}

/// The ranks' rows of a value, one run each.
void PlannedExchange::place_rows() {
  const Operand& whole = op_ == Op::tensor_gather ? call_.out[0] : call_.in[0];
  const int64_t own = whole.elements() / ranks_.size();
  for (int rank = 0; rank < ranks_.size(); ++rank) parts_.add(rank, in_host(whole) + rank * own * bytes_of(dtype_), own);
  if (op_ == Op::tensor_scatter) parts_.add_sum(in_host(call_.out[0]), own);
}

void PlannedExchange::place_sum() {
  const int64_t elements = exchange_.elements, width = bytes_of(dtype_);
  if (is_summed_at_once()) {
    values_.resize(static_cast<size_t>(ranks_.size() * elements * width));
    for (int rank = 0; rank < ranks_.size(); ++rank) parts_.add(rank, values_.data() + rank * elements * width, elements);
    return;
  }
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    const int64_t first = ranks_.share(elements, rank), count = ranks_.share(elements, rank + 1) - first;
    if (count == 0) continue;
    parts_.add(rank, in_host(call_.in[0]) + first * width, count);
    whole_.add(rank, in_host(call_.out[0]) + first * width, count);
  }
  for (const Communicator::Shard& sums : whole_.own()) parts_.add_sum(sums.data, sums.elements);
}

/// In rank order either way.
void PlannedExchange::add_values() {
  if (!is_summed_at_once()) {
    parts_.reduce(dtype_, SumType::wide, ranks_.size(), false, label_);
    return whole_.gather(dtype_, label_);
  }
  const auto own = static_cast<size_t>(exchange_.elements * bytes_of(dtype_));
  std::memcpy(parts_.own()[0].data, in_host(call_.in[0]), own);
  parts_.gather(dtype_, label_);
  const auto add = [&]<class T>(T* sums) {
    for (int rank = 0; rank < ranks_.size(); ++rank) {
      const T* const terms = static_cast<const T*>(parts_.of(rank)[0].data);
      for (int64_t i = 0; i < exchange_.elements; ++i) sums[i] = rank == 0 ? terms[i] : sums[i] + terms[i];
    }
  };
  dtype_ == DType::f64 ? add(in_host<double>(call_.out[0])) : add(in_host<float>(call_.out[0]));
}

/// This rank's, among those of all.
void PlannedExchange::place_squares() {
  const double* from = squares_;
  for (const Communicator::Shard& piece : parts_.own()) {
    std::copy_n(from, piece.elements, static_cast<double*>(piece.data));
    from += piece.elements;
  }
}

void PlannedExchange::sum_terms(int contributors) {
  const size_t terms = terms_.size();
  for (size_t i = 0; i < terms; ++i) gathered_[static_cast<size_t>(ranks_.rank()) * terms + i] = *terms_[i];
  parts_.gather(dtype_, label_);
  for (int rank = 0; rank < contributors; ++rank)
    for (size_t i = 0; i < terms; ++i) {
      const double term = gathered_[static_cast<size_t>(rank) * terms + i];
      *sums_[i] = rank == 0 && !adds_ ? term : *sums_[i] + term;
    }
}

}  // namespace st
