// The format in which C++ and C# exchange everything except plain numbers and arrays: a sequence of 8-byte values, and UTF-8 strings that
// are preceded by their length and padded to 8 bytes. ScaleTrain/Record.cs is the C# side.
#pragma once

#include <cstdint>
#include <cstring>
#include <scaletrain/checkpoint.hpp>
#include <scaletrain/context.hpp>
#include <scaletrain/data.hpp>
#include <scaletrain/graph.hpp>
#include <scaletrain/model.hpp>
#include <scaletrain/optimizer.hpp>
#include <scaletrain/trainer.hpp>
#include <string>
#include <vector>

namespace scaletrain::csharp {

/// The result of a call, in a buffer of this thread that its next call overwrites. C# reads it before that, so it need not be freed.
class Record {
 public:
  Record() : bytes_(memory()) { bytes_.clear(); }
  Record& add(int64_t value) { return append(&value, sizeof value); }
  Record& add(double value) { return append(&value, sizeof value); }
  Record& add(bool value) { return add(static_cast<int64_t>(value ? 1 : 0)); }
  Record& add(DType value) { return add(static_cast<int64_t>(value)); }
  Record& add(const std::string& text) {
    add(static_cast<int64_t>(text.size()));
    append(text.data(), text.size());
    bytes_.resize((bytes_.size() + 7) / 8 * 8);
    return *this;
  }
  template <class T>
  Record& add(const std::vector<T>& list) {
    add(static_cast<int64_t>(list.size()));
    for (const T& one : list) add(one);
    return *this;
  }
  Record& add(const MemoryUse& use) { return add(use.role).add(use.bytes).add(use.peak_bytes); }
  Record& add(const Metric& metric) { return add(metric.name).add(metric.mean); }
  const void* done() const { return bytes_.data(); }

 private:
  static std::vector<unsigned char>& memory() {
    thread_local std::vector<unsigned char> bytes;
    return bytes;
  }
  Record& append(const void* from, size_t count) {
    const auto* const first = static_cast<const unsigned char*>(from);
    bytes_.insert(bytes_.end(), first, first + count);
    return *this;
  }

  std::vector<unsigned char>& bytes_;
};

inline const void* record(const std::string& text) { return Record().add(text).done(); }
inline const void* record(const StepReport& report) {
  return Record()
      .add(report.skipped)
      .add(report.step)
      .add(report.loss)
      .add(report.lr)
      .add(report.grad_norm)
      .add(report.loss_scale)
      .add(report.tokens)
      .add(report.tokens_per_second)
      .add(report.milliseconds)
      .add(report.memory_bytes)
      .add(report.gradient_noise_scale)
      .add(report.save_error)
      .add(report.saved_step)
      .done();
}
inline const void* record(const OptimizerReport& report) {
  return Record().add(report.skipped).add(report.step).add(report.lr).add(report.norm).done();
}
inline const void* record(const Evaluation& evaluation) {
  return Record().add(evaluation.loss).add(evaluation.count).add(evaluation.metrics).done();
}
inline const void* record(const MemoryStats& stats) {
  return Record()
      .add(stats.allocated_bytes)
      .add(stats.available_bytes)
      .add(stats.resident_bytes)
      .add(stats.peak_bytes)
      .add(stats.limit_bytes)
      .add(stats.roles)
      .done();
}
inline const void* record(const ParameterInfo& info) {
  return Record().add(info.name).add(info.dtype).add(info.dims).add(info.trainable).done();
}
inline const void* record(const ValueInfo& info) { return Record().add(info.dtype).add(info.dims).done(); }
inline const void* record(const ReadReport& report) { return Record().add(report.read).add(report.missing).add(report.unexpected).done(); }
inline const void* record(const LoadReport& report) {
  return Record()
      .add(report.step)
      .add(report.name)
      .add(report.metadata)
      .add(report.read)
      .add(report.missing)
      .add(report.unexpected)
      .add(report.skipped)
      .add(report.changed)
      .done();
}
inline const void* record(const SaveProgress& now) {
  return Record()
      .add(now.bytes_done)
      .add(now.bytes_all)
      .add(now.waiting)
      .add(now.saved)
      .add(now.failed)
      .add(now.saved_step)
      .add(now.blocked_seconds)
      .add(now.write_seconds)
      .done();
}
inline const void* record(const std::vector<Value>& values) {
  Record all;
  all.add(static_cast<int64_t>(values.size()));
  for (const Value& value : values) all.add(static_cast<int64_t>(value.id()));
  return all.done();
}
/// Describes memory of the library: dtype, dims, size and address. Throws nothing: records are made outside of what SWIG guards.
inline void add_view(Record& to, const View& view) {
  to.add(view.dtype()).add(view.dims()).add(view.bytes()).add(static_cast<int64_t>(reinterpret_cast<intptr_t>(view.data())));
}
inline const void* record(const Views& views) {
  Record all;
  all.add(views.size());
  for (const NamedView& named : views) {
    all.add(named.name);
    add_view(all, named.view);
  }
  return all.done();
}

/// Reads values that C# wrote. A null pointer is an empty list.
class Reader {
 public:
  explicit Reader(const void* bytes) : at_(static_cast<const unsigned char*>(bytes)) {}
  int64_t integer() { return number<int64_t>(); }
  double real() { return number<double>(); }
  std::string text() {
    const auto size = static_cast<size_t>(integer());
    std::string text(reinterpret_cast<const char*>(at_), size);
    at_ += (size + 7) / 8 * 8;
    return text;
  }
  template <class T, class One>
  std::vector<T> list(const One& one) {
    std::vector<T> all;
    for (int64_t left = at_ == nullptr ? 0 : integer(); left > 0; --left) all.push_back(one());
    return all;
  }
  std::vector<int64_t> integers() {
    return list<int64_t>([this] { return integer(); });
  }

 private:
  template <class T>
  T number() {
    T value;
    std::memcpy(&value, at_, sizeof value);
    at_ += sizeof value;
    return value;
  }

  const unsigned char* at_;
};

inline void read(const void* bytes, std::vector<int64_t>& to) { to = Reader(bytes).integers(); }
inline void read(const void* bytes, std::vector<int32_t>& to) {
  Reader from(bytes);
  to = from.list<int32_t>([&] { return static_cast<int32_t>(from.integer()); });
}
inline void read(const void* bytes, std::vector<std::string>& to) {
  Reader from(bytes);
  to = from.list<std::string>([&] { return from.text(); });
}
/// Reads ids of values of the graph that is called; 0 is an omitted optional input.
inline void read(const void* bytes, std::vector<Value>& to) {
  Reader from(bytes);
  to = from.list<Value>([&] {
    const auto id = static_cast<st_value>(from.integer());
    return Value(nullptr, id == 0 ? ST_NONE : id, nullptr);
  });
}
inline void read(const void* bytes, std::vector<Field>& to) {
  Reader from(bytes);
  to = from.list<Field>([&] {
    std::string name = from.text();
    const auto dtype = static_cast<DType>(from.integer());
    return Field{std::move(name), dtype, from.integers()};
  });
}
inline void read(const void* bytes, std::vector<OpType>& to) {
  Reader from(bytes);
  to = from.list<OpType>([&] {
    const auto dtype = static_cast<DType>(from.integer());
    return OpType{dtype, from.integers()};
  });
}
/// Reads attributes: a name, a kind (ST_ATTRIBUTE_*) and a value each.
inline void read(const void* bytes, std::vector<Attribute>& to) {
  Reader from(bytes);
  to = from.list<Attribute>([&] {
    std::string name = from.text();
    switch (from.integer()) {
      case ST_ATTRIBUTE_BOOL:
        return Attribute(std::move(name), from.integer() != 0);
      case ST_ATTRIBUTE_REAL:
        return Attribute(std::move(name), from.real());
      case ST_ATTRIBUTE_WORD:
        return Attribute(std::move(name), from.text().c_str());
      case ST_ATTRIBUTE_INTS:
        return Attribute(std::move(name), from.integers());
      default:
        return Attribute(std::move(name), from.integer());
    }
  });
}

}  // namespace scaletrain::csharp
