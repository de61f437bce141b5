#include "train/save_ranges.h"

#include <algorithm>
#include <bit>

#include "ir/cuts.h"

namespace st {
namespace {

constexpr int64_t kMessage = 1 << 20;  // elements of the whole that a message is about

}  // namespace

/// As the ranks have the pieces; what each data rank has whole, as its optimizer's state is cut.
SaveRanges::SaveRanges(const StateTensor& tensor, const Program& program) : tensor_(tensor) {
  const SlotId id = tensor.role == Role::parameter ? program.slot_named(tensor.name) : -1;
  for (const StateTensor::Piece& piece : tensor.pieces) {
    if (!tensor.is_sharded) break;
    if (id < 0 || !is_cut(program, id) || program.slot(id).type.layout.is_flat()) {
      sources_.push_back({piece.rank, piece.range});
      continue;
    }
    const Cuts cuts = cuts_of(program, id);
    MeshPosition at = position_of(program.mesh, piece.rank);
    for (at.data = 0; at.data < program.mesh.data; ++at.data)
      sources_.push_back({rank_at(program.mesh, at), {cuts[at.data], cuts.elements_of(at.data), piece.range.piece}});
  }
  std::erase_if(sources_, [](const Source& source) { return source.range.elements == 0; });
  std::ranges::sort(sources_, {}, &Source::rank);
  for (const auto& [rank, range] : sources_) {
    int64_t begin = -1, end = -1;
    range.each_run([&](int64_t in_whole, int64_t, int64_t elements) {
      if (begin < 0) begin = end = in_whole;
      are_exchanged_ = are_exchanged_ || in_whole != end;
      end = in_whole + elements;
    });
    ranges_.push_back({rank, begin, end});
  }
  if (ranges_.empty()) ranges_.push_back({0, 0, tensor.type.shape.elements()});
  if (!are_exchanged_) return;
  const int64_t all = tensor.type.shape.elements(), count = std::ssize(sources_);
  for (int64_t i = 0; i < count; ++i) {
    SharedSave::Range& range = ranges_[static_cast<size_t>(i)];
    range.begin = all * i / count;
    range.end = all * (i + 1) / count;
  }
  std::erase_if(ranges_, [](const SharedSave::Range& range) { return range.begin == range.end; });
}

/// In rounds of pairs, of which each rank is in one at most: in round r the i-th and the (i xor r)-th exchange what they have of the
/// other's range. The order of messages is one for all ranks, so that none waits for another in a circle.
void SaveRanges::exchange(Communicator& ranks, Backend& backend, std::span<std::byte> own) const {
  const auto here = std::ranges::find(sources_, ranks.rank(), &Source::rank);
  if (here == sources_.end()) return;
  const auto index = static_cast<size_t>(here - sources_.begin());
  move(ranks, backend, *here, *here, own);
  for (size_t round = 1; round < std::bit_ceil(sources_.size()); ++round) {
    const size_t other = index ^ round;
    if (other >= sources_.size()) continue;
    const Source &first = sources_[std::min(index, other)], &second = sources_[std::max(index, other)];
    move(ranks, backend, first, second, own);
    move(ranks, backend, second, first, own);
  }
}

/// Moves the elements that `from` has of the range that `to` writes; this rank is one of them, or both.
void SaveRanges::move(Communicator& ranks, Backend& backend, const Source& from, const Source& to, std::span<std::byte> own) const {
  const auto range = std::ranges::find(ranges_, to.rank, &SharedSave::Range::rank);
  if (range == ranges_.end()) return;
  const int64_t width = bytes_of(tensor_.type.dtype);
  std::vector<std::byte> whole, message;
  for (int64_t begin = range->begin; begin < range->end; begin += kMessage) {
    const int64_t end = std::min(begin + kMessage, range->end);
    int64_t elements = 0;
    from.range.each_run_between(begin, end, [&](int64_t, int64_t, int64_t count) { elements += count; });
    if (elements == 0) continue;
    message.resize(static_cast<size_t>(elements * width));
    std::byte* at = message.data();
    if (from.rank == ranks.rank()) {
      whole.resize(static_cast<size_t>((end - begin) * width));
      tensor_.to_host(backend, begin * width, whole);
      from.range.each_run_between(begin, end, [&](int64_t in_whole, int64_t, int64_t count) {
        at = std::copy_n(whole.data() + (in_whole - begin) * width, count * width, at);
      });
    }
    if (from.rank != to.rank && from.rank == ranks.rank())
      ranks.send(message.data(), std::ssize(message), DType::u8, to.rank, tensor_.name);
    if (to.rank != ranks.rank()) continue;
    if (from.rank != to.rank) ranks.receive(message.data(), std::ssize(message), DType::u8, from.rank, tensor_.name);
    at = message.data();
    from.range.each_run_between(begin, end, [&](int64_t in_whole, int64_t, int64_t count) {
      std::copy_n(at, count * width, own.data() + (in_whole - range->begin) * width);
      at += count * width;
    });
  }
}

}  // namespace st
