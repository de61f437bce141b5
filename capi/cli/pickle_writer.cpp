#include "pickle_writer.h"

#include <bit>
#include <limits>
#include <stdexcept>

namespace cli {
namespace {

struct StorageName {
  st_dtype dtype;
  const char* name;
};
constexpr StorageName kStorages[] = {{ST_F32, "FloatStorage"}, {ST_F64, "DoubleStorage"}, {ST_BF16, "BFloat16Storage"},
                                     {ST_F16, "HalfStorage"},  {ST_I32, "IntStorage"},    {ST_I64, "LongStorage"},
                                     {ST_U8, "ByteStorage"},   {ST_BOOL, "BoolStorage"}};

class PickleWriter {
 public:
  std::string operator()(const TorchValue& value) {
    out_ = "\x80\x02";
    put(value);
    return out_ + '.';
  }

 private:
  void put(const TorchValue& value) {
    std::visit([&](const auto& is) { put_value(is); }, value.is);
  }

  void put_value(std::monostate) { out_ += 'N'; }
  void put_value(bool value) { out_ += value ? '\x88' : '\x89'; }
  void put_value(double value) {
    out_ += 'G';
    const auto bits = std::bit_cast<uint64_t>(value);
    for (int shift = 56; shift >= 0; shift -= 8) out_ += static_cast<char>(bits >> shift & 0xFF);  // the only big-endian opcode
  }
  void put_value(int64_t value) {
    if (value >= std::numeric_limits<int32_t>::min() && value <= std::numeric_limits<int32_t>::max()) {
      out_ += 'J';
      little(static_cast<uint64_t>(value), 4);
    } else {
      out_ += "\x8a\x08";
      little(static_cast<uint64_t>(value), 8);
    }
  }
  void put_value(const std::string& value) {
    out_ += 'X';
    little(value.size(), 4);
    out_ += value;
  }
  void put_value(const TorchList& list) {
    if (list.is_tuple) {
      out_ += '(';
      for (const TorchValue* item : list.items) put(*item);
      out_ += 't';
      return;
    }
    out_ += "](";
    for (const TorchValue* item : list.items) put(*item);
    out_ += 'e';
  }
  void put_value(const TorchDict& dict) {
    out_ += "}(";
    for (const auto& [key, value] : dict.items) {
      put(*key);
      put(*value);
    }
    out_ += 'u';
  }
  void put_value(const TorchTensor& tensor) {
    // torch._utils._rebuild_tensor_v2(storage, offset, size, stride, requires_grad, backward_hooks)
    global("torch._utils", "_rebuild_tensor_v2");
    out_ += '(';
    put_value(tensor.storage);
    put_value(tensor.offset);
    whole_numbers(tensor.dims);
    whole_numbers(tensor.strides);
    put_value(false);
    global("collections", "OrderedDict");
    out_ += ")RtR";
  }
  void put_value(const TorchStorage& storage) {  // ("storage", class, key, device, elements); the reader finds it by its key
    out_ += '(';
    put_value(std::string("storage"));
    global("torch", storage_name(storage.dtype));
    put_value(storage.key);
    put_value(std::string("cpu"));
    put_value(storage.elements);
    out_ += "tQ";
  }
  void put_value(const TorchGlobal&) { throw std::logic_error("pickle: a global is not a value"); }

  void whole_numbers(const std::vector<int64_t>& numbers) {
    out_ += '(';
    for (const int64_t number : numbers) put_value(number);
    out_ += 't';
  }
  void global(const char* module, const char* name) { out_ += std::string("c") + module + '\n' + name + '\n'; }
  void little(uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) out_ += static_cast<char>(value >> 8 * i & 0xFF);
  }

  std::string out_;
};

}  // namespace

std::string pickle(const TorchValue& value) { return PickleWriter()(value); }

const char* storage_name(st_dtype dtype) {
  for (const StorageName& row : kStorages)
    if (row.dtype == dtype) return row.name;
  return nullptr;
}

st_dtype storage_dtype(std::string_view name) {
  for (const StorageName& row : kStorages)
    if (row.name == name) return row.dtype;
  return 0;
}

}  // namespace cli
