#include "team/feed.h"

namespace st {
namespace {

constexpr int64_t kBatchesAhead = 2;

Shape with_rows(int64_t rows, const Shape& row) {
  Shape shape{rows};
  for (const int64_t dim : row) shape.push_back(dim);
  return shape;
}

}  // namespace

Feed::Feed(std::shared_ptr<const Dataset> data, uint64_t seed, const MicroBatches& batches, int64_t cursor,
           std::shared_ptr<MemorySource> memory)
    : data_(std::move(data)), prefetcher_(data_, DataStream(data_->rows(), seed), batches, cursor, kBatchesAhead, std::move(memory)) {
  for (const Field& field : data_->fields())
    views_.push_back(plain_view(field.name, field.dtype, with_rows(batches.rows, field.shape), nullptr));
}

std::optional<std::span<const HostView>> Feed::next(const Patience& patience) {
  const Batch* batch = prefetcher_.next(patience);
  if (batch == nullptr) return std::nullopt;
  for (size_t i = 0; i < views_.size(); ++i) views_[i].data = batch->fields[i].data;
  return views_;
}

}  // namespace st
