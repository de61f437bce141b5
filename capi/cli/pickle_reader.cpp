#include "pickle_reader.h"

#include <bit>
#include <cstdio>
#include <map>

#include "failure.h"
#include "pickle_writer.h"

namespace cli {
namespace {

constexpr int64_t kMostDims = 8;
constexpr int64_t kMostValues = 1 << 20;  // a tensor needs about twenty; hostile values of one byte each take about 150 MB

class PickleReader {
 public:
  PickleReader(std::string_view text, std::string_view file, TorchValues& values) : text_(text), file_(file), values_(values) {}

  const TorchValue& operator()() {
    for (;;) {
      const auto opcode = static_cast<unsigned char>(take(1).front());
      if (opcode == '.') return *pop();
      step(opcode);
    }
  }

 private:
  template <class... Parts>
  [[noreturn]] void refuse_file(const Parts&... parts) const {
    refuse(file_, ": data.pkl, byte ", at_, ": ", parts...);
  }

  // The opcodes of protocol 2, with the letters of Python's pickletools.
  void step(unsigned char opcode) {
    switch (opcode) {
      case 0x80:  // PROTO
        if (const uint64_t protocol = little(1); protocol != 2) refuse_file("pickle protocol ", protocol, "; torch.save writes 2");
        return;
      case 'N':
        return push({});
      case 0x88:
        return push({true});
      case 0x89:
        return push({false});
      case 'K':
        return push({static_cast<int64_t>(little(1))});
      case 'M':
        return push({static_cast<int64_t>(little(2))});
      case 'J':
        return push({static_cast<int64_t>(static_cast<int32_t>(little(4)))});
      case 0x8a:
        return push({long_number()});
      case 'G':
        return push({real()});
      case 'X':
        return push({std::string(take(little(4)))});
      case 'U':  // SHORT_BINSTRING
        return push({std::string(take(little(1)))});
      case ']':
        return push({TorchList{}});
      case ')':
        return push({TorchList{{}, true}});
      case '}':
        return push({TorchDict{}});
      case '(':
        marks_.push_back(stack_.size());
        return;
      case 't':
        return push({TorchList{behind_mark(), true}});
      case 0x85:
      case 0x86:
      case 0x87:
        return push_tuple(opcode - 0x84);
      case 'a':
        return append({pop()});
      case 'e':
        return append(behind_mark());
      case 's': {
        TorchValue* value = pop();
        TorchValue* key = pop();
        return set_items({key, value});
      }
      case 'u':
        return set_items(behind_mark());
      case 'q':
        memo_[little(1)] = top();
        return;
      case 'r':
        memo_[little(4)] = top();
        return;
      case 'h':
        return recall(little(1));
      case 'j':
        return recall(little(4));
      case 'c': {
        const std::string module(line());
        return push({TorchGlobal{module + "." + std::string(line())}});
      }
      case 'Q':
        return push({storage(*pop())});
      case 'R':
        return call();
      case 'b':
        return build();
      case 0x81: {  // NEWOBJ
        pop();
        const auto* made = pop()->as<TorchGlobal>();
        refuse_file("creates a ", made == nullptr ? "value" : made->name, ", which is refused; save state_dict()s, not whole objects");
      }
      default:
        char code[8];
        std::snprintf(code, sizeof code, "0x%02x", opcode);
        refuse_file("opcode ", code, " is not needed for tensors, dicts, lists or numbers; save state_dict()s with torch.save");
    }
  }

  std::string_view take(uint64_t bytes) {
    if (bytes > text_.size() - at_) refuse_file("the pickle is truncated");
    at_ += bytes;
    return text_.substr(at_ - bytes, bytes);
  }
  uint64_t little(int bytes) {
    uint64_t value = 0;
    int shift = 0;
    for (const char byte : take(static_cast<uint64_t>(bytes)))
      value |= static_cast<uint64_t>(static_cast<unsigned char>(byte)) << 8 * shift++;
    return value;
  }
  int64_t long_number() {
    const uint64_t size = little(1);
    if (size > 8) refuse_file("an integer of ", size, " bytes; at most 8 are supported");
    const uint64_t bits = little(static_cast<int>(size));
    const int unused = 64 - 8 * static_cast<int>(size);
    return size == 0 ? 0 : static_cast<int64_t>(bits << unused) >> unused;  // two's complement in fewer than 64 bits
  }
  double real() {
    uint64_t bits = 0;
    for (const char byte : take(8)) bits = bits << 8 | static_cast<unsigned char>(byte);
    return std::bit_cast<double>(bits);
  }
  std::string_view line() {
    const size_t end = text_.find('\n', at_);
    if (end == std::string_view::npos) refuse_file("the pickle is truncated");
    const std::string_view word = take(end - at_);
    take(1);
    return word;
  }

  void push(TorchValue value) {
    if (++pushed_ > kMostValues) refuse_file("more than ", kMostValues, " values");
    stack_.push_back(values_.add(std::move(value)));
  }
  TorchValue* top() {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) refuse_file("the pickle's stack is empty");
    return stack_.back();
  }
  TorchValue* pop() {
    TorchValue* value = top();
    stack_.pop_back();
    return value;
  }
  std::vector<const TorchValue*> behind_mark() {
    if (marks_.empty()) refuse_file("the pickle closes a group that it did not open");
    const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<const TorchValue*> items(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return items;
  }
  void push_tuple(int size) {
    TorchList tuple{std::vector<const TorchValue*>(static_cast<size_t>(size)), true};
    for (size_t i = tuple.items.size(); i-- > 0;) tuple.items[i] = pop();
    push({std::move(tuple)});
  }
  void append(const std::vector<const TorchValue*>& items) {
    auto* list = std::get_if<TorchList>(&top()->is);
    if (list == nullptr || list->is_tuple) refuse_file("appends to a value that is not a list");
    list->items.insert(list->items.end(), items.begin(), items.end());
  }
  void set_items(const std::vector<const TorchValue*>& items) {
    auto* dict = std::get_if<TorchDict>(&top()->is);
    if (dict == nullptr || items.size() % 2 != 0) refuse_file("sets an item of a value that is not a dict");
    for (size_t i = 0; i < items.size(); i += 2) dict->items.emplace_back(items[i], items[i + 1]);
  }
  void recall(uint64_t key) {
    const auto found = memo_.find(key);
    if (found == memo_.end()) refuse_file("refers to value ", key, ", which does not exist");
    stack_.push_back(found->second);
  }

  /// Converts a persistent id ("storage", class, key, device, elements).
  TorchStorage storage(const TorchValue& id) const {
    const auto* parts = id.as<TorchList>();
    if (parts == nullptr || parts->items.size() != 5) refuse_file("a persistent id that does not name a storage");
    const auto* kind = parts->items[1]->as<TorchGlobal>();
    const auto* key = parts->items[2]->as<std::string>();
    const auto* elements = parts->items[4]->as<int64_t>();
    if (kind == nullptr || key == nullptr || elements == nullptr || *elements < 0)
      refuse_file("a persistent id that does not name a storage");
    constexpr std::string_view kModule = "torch.";
    if (!kind->name.starts_with(kModule) || !kind->name.ends_with("Storage"))
      refuse_file("a tensor of ", kind->name, ", which is not a storage");
    const st_dtype dtype = storage_dtype(std::string_view(kind->name).substr(kModule.size()));
    return {*key, dtype, *elements, dtype == 0 ? kind->name : ""};
  }

  void call() {
    TorchValue* arguments = pop();
    TorchValue* callee = pop();
    const auto* function = callee->as<TorchGlobal>();
    const auto* given = arguments->as<TorchList>();
    if (function == nullptr || given == nullptr) refuse_file("calls a value that is not a function");
    if (function->name == "collections.OrderedDict" && given->items.empty()) return push({TorchDict{}});
    if (function->name == "torch._utils._rebuild_tensor_v2") return push({tensor(given->items)});
    if (function->name == "torch._utils._rebuild_tensor_v3") return push({untyped_tensor(given->items)});
    if (function->name == "torch._utils._rebuild_parameter" && !given->items.empty() && given->items[0]->as<TorchTensor>() != nullptr)
      return push(*given->items[0]);
    refuse_file("calls ", function->name, ", which is refused: it does not create a tensor, dict, list or number");
  }

  TorchTensor tensor(const std::vector<const TorchValue*>& given) const {
    const auto* storage = given.size() < 4 ? nullptr : given[0]->as<TorchStorage>();
    const auto* offset = storage == nullptr ? nullptr : given[1]->as<int64_t>();
    if (offset == nullptr || *offset < 0) refuse_file("a tensor without a storage or an offset");
    TorchTensor made{*storage, *offset, whole_numbers(*given[2]), whole_numbers(*given[3])};
    if (made.dims.size() != made.strides.size())
      refuse_file("a tensor with ", made.dims.size(), " dims and ", made.strides.size(), " strides");
    if (!storage->foreign.empty()) return made;  // its bytes are not read
    check_inside(made);
    if (given.size() > 6) made.is_negated = is_negated(*given[6]);
    return made;
  }

  /// From bytes and a dtype. PyTorch writes dtypes without a storage class this way; all of them are foreign.
  TorchTensor untyped_tensor(const std::vector<const TorchValue*>& given) const {
    const auto* dtype = given.size() < 7 ? nullptr : given[6]->as<TorchGlobal>();
    if (dtype == nullptr) refuse_file("a tensor of bytes without a dtype");
    TorchTensor made = tensor({given.begin(), given.begin() + 4});
    made.storage.foreign = dtype->name;
    return made;
  }

  /// Reads the metadata argument of _rebuild_tensor_v2.
  bool is_negated(const TorchValue& metadata) const {
    const auto* dict = metadata.as<TorchDict>();
    if (dict == nullptr) return false;
    bool negated = false;
    for (const auto& [key, value] : dict->items) {
      const auto* name = key->as<std::string>();
      const auto* is_set = value->as<bool>();
      if (is_set != nullptr && !*is_set) continue;
      if (name == nullptr || is_set == nullptr || *name != "neg")
        refuse_file("a tensor with \"", name == nullptr ? "?" : *name, "\" set; save its resolve_conj().clone()");
      negated = true;
    }
    return negated;
  }

  std::vector<int64_t> whole_numbers(const TorchValue& value) const {
    const auto* list = value.as<TorchList>();
    if (list == nullptr || std::ssize(list->items) > kMostDims) refuse_file("a tensor's size or stride is not a tuple of at most 8");
    std::vector<int64_t> numbers;
    for (const TorchValue* item : list->items) {
      const auto* number = item->as<int64_t>();
      if (number == nullptr || *number < 0) refuse_file("a tensor's size or stride is not a whole number of 0 or more");
      numbers.push_back(*number);
    }
    return numbers;
  }

  /// Checks that the last element is inside the storage and that no two elements share a place: a tensor is never larger than the file's
  /// data.
  void check_inside(const TorchTensor& tensor) const {
    int64_t last = tensor.offset, elements = 1, reach = 0;
    for (size_t i = 0; i < tensor.dims.size(); ++i) {
      if (__builtin_mul_overflow(elements, tensor.dims[i], &elements)) refuse_file("a tensor's size overflows");
      if (tensor.dims[i] > 0 &&
          (__builtin_mul_overflow(tensor.dims[i] - 1, tensor.strides[i], &reach) || __builtin_add_overflow(last, reach, &last)))
        refuse_file("a tensor's strides overflow");
    }
    if (elements == 0) return;
    if (last >= tensor.storage.elements)
      refuse_file("a tensor reaches element ", last, " of storage ", tensor.storage.key, ", which has ", tensor.storage.elements);
    if (elements > tensor.storage.elements - tensor.offset) refuse_file("an expanded tensor; save its contiguous()");
  }

  /// An OrderedDict's attributes, such as a state_dict's _metadata: none of them holds data.
  void build() {
    pop();
    if (top()->as<TorchDict>() == nullptr) refuse_file("sets attributes of a value that is not a dict");
  }

  std::string_view text_, file_;
  TorchValues& values_;
  size_t at_ = 0;
  int64_t pushed_ = 0;
  std::vector<TorchValue*> stack_;
  std::vector<size_t> marks_;
  std::map<uint64_t, TorchValue*> memo_;
};

}  // namespace

const TorchValue& unpickle(std::string_view text, std::string_view file, TorchValues& values) { return PickleReader(text, file, values)(); }

}  // namespace cli
