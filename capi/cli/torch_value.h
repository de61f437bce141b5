// The content of a PyTorch file as a tree, read by pickle_reader and written by pickle_writer.
#pragma once

#include <scaletrain/view.h>

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace cli {

struct TorchValue;

struct TorchList {
  std::vector<const TorchValue*> items;
  bool is_tuple = false;
};

struct TorchDict {
  std::vector<std::pair<const TorchValue*, const TorchValue*>> items;  // in the file's order
};

/// The file "data/<key>" of the archive: elements of one dtype.
struct TorchStorage {
  std::string key;
  st_dtype dtype = ST_F32;
  int64_t elements = 0;
  std::string foreign = {};  // an unsupported dtype under PyTorch's name: "torch.CharStorage", "torch.float8_e5m2"; else empty
};

struct TorchTensor {
  TorchStorage storage;
  int64_t offset = 0;  // in elements, like the strides
  std::vector<int64_t> dims, strides;
  bool is_negated = false;  // PyTorch's lazy negation: the values have the opposite sign of the storage's
};

/// A class or function by its name: "collections.OrderedDict".
struct TorchGlobal {
  std::string name;
};

struct TorchValue {
  std::variant<std::monostate /* None */, bool, int64_t, double, std::string, TorchList, TorchDict, TorchStorage, TorchTensor, TorchGlobal>
      is;

  template <class T>
  const T* as() const {
    return std::get_if<T>(&is);
  }
  /// The value of a text key in a dict; nullptr if absent.
  const TorchValue* find(std::string_view key) const {
    const auto* dict = as<TorchDict>();
    if (dict == nullptr) return nullptr;
    for (const auto& [name, value] : dict->items)
      if (const auto* word = name->as<std::string>(); word != nullptr && *word == key) return value;
    return nullptr;
  }
};

/// Owns a tree's values. Several places, even a value itself, may refer to one value, as in pickles.
class TorchValues {
 public:
  TorchValue* add(TorchValue value) {
    values_.push_back(std::move(value));
    return &values_.back();
  }
  TorchValue* text(std::string_view value) { return add({std::string(value)}); }
  TorchValue* list(TorchList items = {}) { return add({std::move(items)}); }
  TorchValue* dict() { return add({TorchDict{}}); }
  void set(TorchValue* dict, std::string_view key, const TorchValue* value) {
    std::get<TorchDict>(dict->is).items.emplace_back(text(key), value);
  }

 private:
  std::deque<TorchValue> values_;
};

}  // namespace cli
