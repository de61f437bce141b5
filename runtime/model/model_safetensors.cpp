// Model::write and Model::read: parameters as one safetensors file or stream.
#include <algorithm>
#include <exception>
#include <vector>

#include "base/float_mode.h"
#include "base/os/whole_file.h"
#include "checkpoint/weight_files.h"
#include "model/element_conversion.h"
#include "model/model.h"

namespace st {

void Model::write(const std::string& path, ShardedModelCall* collective) const {
  require_readable("write", collective);
  const auto into_file = [&](const WriteBytes& write) {
    if (const std::exception_ptr why = stream(write, collective)) std::rethrow_exception(why);
  };
  const WeightsGate::TryReader reader(gate_);
  if (collective == nullptr) return os::write_named_file(path, into_file);
  collective->agree("write to a file");
  bool is_streamed = false;
  std::exception_ptr failed;
  try {
    if (collective->ranks().rank() == 0)
      os::write_named_file(path, [&](const WriteBytes& write) {
        is_streamed = true;
        into_file(write);
      });
  } catch (...) {
    failed = std::current_exception();
  }
  if (!is_streamed) static_cast<void>(stream([](std::span<const std::byte>) {}, collective));  // others, or a file that could not be begun
  collective->require_all_fine(failed);
}

void Model::write(const WriteBytes& write, ShardedModelCall* collective) const {
  require_readable("write", collective);
  const WeightsGate::TryReader reader(gate_);
  if (collective != nullptr) collective->agree("write");
  const std::exception_ptr failed = stream(write, collective);
  if (collective != nullptr) collective->require_all_fine(failed);
}

/// In a collective call the others need this rank's pieces, whatever has become of its stream: what `write` throws is given back at the
/// end.
std::exception_ptr Model::stream(const WriteBytes& write, ShardedModelCall* collective) const {
  std::vector<TensorRecord> records;
  for (const SlotId id : parameters_)
    records.push_back({.name = slot(id).name, .dtype = slot(id).type.dtype, .shape = slot(id).type.shape});
  std::exception_ptr failed;
  const WriteBytes keeping = [&](std::span<const std::byte> bytes) {
    if (failed) return;
    try {
      write(bytes);
    } catch (...) {
      failed = std::current_exception();
    }
  };
  std::vector<std::byte> room(static_cast<size_t>(context_->backend().transfer_bytes(kPiece)));
  write_safetensors(
      collective == nullptr ? write : keeping, records, {{"format", "scaletrain"}}, [&](const TensorRecord& record, const WriteBytes& put) {
        each_part(parameter_named(record.name), room, collective, [&](int64_t, std::span<const std::byte> part) { put(part); });
      });
  return failed;
}

void Model::read(const std::string& path, const ReadOptions& options, ReadReport& report) {
  const WeightFiles weights(path);
  const WeightsMatch match =
      match_weights(weights.tensors(), program_, parameters_, options, path, report, Code::not_found, weights.foreign());
  int64_t largest = 0;
  const auto bytes_here = [&](SlotId id) { return piece(id).elements * bytes_of(slot(id).type.dtype); };
  for (const SlotId id : parameters_) largest = std::max(largest, bytes_here(id));
  auto next = match.parameters.begin();
  for (const SafetensorsFile& file : weights.files())
    for (const TensorRecord& record : file.header().tensors)
      if (*next++ >= 0) require_no_nan(record, file.bytes(record).data(), 0, record.shape.elements(), file.path());
  require_made();
  std::vector<std::byte> values(static_cast<size_t>(largest));  // before anything changes: running out of memory halfway leaves a mixture
  const FloatMode mode;
  const WeightsGate::Writer writer(gate_);
  next = match.parameters.begin();
  for (const SafetensorsFile& file : weights.files()) {
    for (const TensorRecord& record : file.header().tensors) {
      const SlotId id = *next++;
      if (id < 0) continue;
      const DType as = slot(id).type.dtype;
      piece(id).each_run([&](int64_t in_whole, int64_t in_range, int64_t elements) {
        convert_elements(record.dtype, file.bytes(record).data() + in_whole * bytes_of(record.dtype), as,
                         values.data() + in_range * bytes_of(as), elements);
      });
      context_->backend().to_device(data(id), values.data(), bytes_here(id));
      ++report.read;
    }
  }
}

void Model::read(const ReadBytes& read, const ReadOptions& options, ReadReport& report) {
  const std::string source = "the stream";
  SafetensorsStream stream(read, source);
  const WeightsMatch match =
      match_weights(stream.header().tensors, program_, parameters_, options, source, report, Code::not_found, stream.header().foreign);

  require_made();
  // All of it waits here until the stream has given the last byte: a stream that ends in the middle changes nothing.
  context_->require_memory("read: the buffer for a stream's weights", storage_.bytes());
  const auto room_for_all = storage_.bytes() > 0 ? context_->backend().allocate(storage_.bytes(), MemoryRole::other) : nullptr;
  const Address staged = room_for_all ? room_for_all->data() : Address();
  const int64_t at_a_time = context_->backend().transfer_bytes(kPiece);
  std::vector<std::byte> piece(static_cast<size_t>(at_a_time)), values(piece.size() * 4);
  const FloatMode mode;
  for (size_t i = 0; i < match.parameters.size(); ++i) {
    const TensorRecord& record = stream.header().tensors[i];
    const SlotId id = match.parameters[i];
    if (id < 0) continue;
    stream.skip_to(record.offset);
    const DType as = slot(id).type.dtype;
    const Address place = staged + offsets_[static_cast<size_t>(id)];
    const PieceRange own = this->piece(id);
    const int64_t width = bytes_of(record.dtype);
    for (int64_t at = 0, elements = record.shape.elements(); at < elements;) {
      const std::span<std::byte> now = std::span(piece).first(static_cast<size_t>(std::min((elements - at) * width, at_a_time)));
      stream.read(now);
      require_no_nan(record, now.data(), at, std::ssize(now) / width, source);
      const int64_t next = at + std::ssize(now) / width;
      own.each_run_between(at, next, [&](int64_t in_whole, int64_t in_range, int64_t count) {
        convert_elements(record.dtype, now.data() + (in_whole - at) * width, as, values.data(), count);
        context_->backend().to_device(place + in_range * bytes_of(as), values.data(), count * bytes_of(as));
      });
      at = next;
    }
  }
  stream.skip_to(stream.header().data_bytes);

  const WeightsGate::Writer writer(gate_);
  for (const SlotId id : match.parameters) {
    if (id < 0) continue;
    context_->backend().copy(data(id), staged + offsets_[static_cast<size_t>(id)],
                             this->piece(id).elements * bytes_of(slot(id).type.dtype));
    ++report.read;
  }
}

}  // namespace st
