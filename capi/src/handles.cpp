#include "handles.h"

#include <atomic>
#include <mutex>
#include <vector>

#include "base/os.h"

namespace st::capi {
namespace {

struct Entry {
  std::shared_ptr<Object> object;  // null: free
  uint32_t generation = 0;
};

struct Table {
  std::mutex mutex;
  std::vector<Entry> entries;
  std::vector<uint32_t> free;
};

// A handle's bits: generation (32), slot + 1 (24), kind + 1 (8). Never null, and never the address of anything.
constexpr uint64_t kKindBits = 8, kSlotBits = 24;

// Never destroyed: a thread of the host's may still be in a call while the process exits.
Table& table(Kind kind) {
  static auto& tables = *new std::array<Table, kKinds>;
  return tables[static_cast<size_t>(kind)];
}

void* pack(Kind kind, uint32_t slot, uint32_t generation) {
  const uint64_t bits =
      (uint64_t{generation} << (kKindBits + kSlotBits)) | (uint64_t{slot + 1} << kKindBits) | (static_cast<uint64_t>(kind) + 1);
  return reinterpret_cast<void*>(bits);
}

/// The child of a fork has none of the parent's threads and perhaps its locked mutexes: calls there must say so, not wait for ever.
void check_process(Kind kind) {
  static std::atomic<int64_t> owner{0};
  const int64_t here = os::process_id();
  int64_t first = 0;
  if (owner.compare_exchange_strong(first, here) || first == here) return;
  fail(Code::wrong_state, text(name_of(kind), ": process ", here, " was forked from ", first,
                               ", which had handles already; start it with spawn or exec, or fork before the first call"));
}

[[noreturn]] void refuse(Kind kind, std::string_view why) {
  fail(Code::invalid_handle, text(name_of(kind), ": ", why, "; pass a handle that was created and not yet destroyed"));
}

/// The entry of a live handle; the table's mutex is held.
Entry& entry_of(Table& table, Kind kind, const void* handle) {
  if (handle == nullptr) refuse(kind, "the handle is NULL");
  const auto bits = reinterpret_cast<uint64_t>(handle);
  const uint64_t found_kind = bits & 0xFF, slot = (bits >> kKindBits) & 0xFFFFFF;
  if (found_kind != static_cast<uint64_t>(kind) + 1) {
    const bool ours = found_kind >= 1 && found_kind <= kKinds;
    refuse(kind, ours ? text("this is no such handle (it may be of a ", name_of(static_cast<Kind>(found_kind - 1)), ")")
                      : "this is not a handle of ours");
  }
  if (slot == 0 || slot > table.entries.size()) refuse(kind, "this is not a handle of ours");
  Entry& entry = table.entries[slot - 1];
  if (entry.generation != static_cast<uint32_t>(bits >> (kKindBits + kSlotBits)) || !entry.object) refuse(kind, "the handle was destroyed");
  return entry;
}

}  // namespace

bool Object::enter() {
  const std::lock_guard lock(mutex_);
  if (inside_ || (runner_ != std::thread::id() && runner_ != std::this_thread::get_id())) return false;
  return inside_ = true;
}

void Object::leave() {
  const std::lock_guard lock(mutex_);
  inside_ = false;
}

bool Object::begin_run() {
  const std::lock_guard lock(mutex_);
  if (inside_ || runner_ != std::thread::id()) return false;
  runner_ = std::this_thread::get_id();
  return true;
}

void Object::end_run() {
  const std::lock_guard lock(mutex_);
  runner_ = std::thread::id();
}

bool Object::is_busy() {
  const std::lock_guard lock(mutex_);
  return inside_ || runner_ != std::thread::id();
}

std::string_view name_of(Kind kind) {
  constexpr std::array<std::string_view, kKinds> kNames = {"context", "graph", "model", "data", "recipe", "trainer", "predictor"};
  return kNames[static_cast<size_t>(kind)];
}

void* add(Kind kind, std::shared_ptr<Object> object) {
  check_process(kind);
  Table& t = table(kind);
  const std::lock_guard lock(t.mutex);
  if (t.free.empty()) {
    require(t.entries.size() < 0xFFFFFE, Code::out_of_memory, name_of(kind), ": more than 16 million live handles");
    t.free.reserve(t.entries.size() + 1);  // so that remove() cannot fail
    t.entries.emplace_back();
    t.free.push_back(static_cast<uint32_t>(t.entries.size() - 1));
  }
  const uint32_t slot = t.free.back();
  t.free.pop_back();
  Entry& entry = t.entries[slot];
  entry.object = std::move(object);
  return pack(kind, slot, ++entry.generation);
}

std::shared_ptr<Object> look_up(Kind kind, const void* handle) {
  check_process(kind);
  Table& t = table(kind);
  const std::lock_guard lock(t.mutex);
  return entry_of(t, kind, handle).object;
}

void remove(Kind kind, const void* handle) {
  if (handle == nullptr) return;
  check_process(kind);
  std::shared_ptr<Object> last;  // destroyed after the lock is given back: a destructor may take its time
  Table& t = table(kind);
  const std::lock_guard lock(t.mutex);
  Entry& entry = entry_of(t, kind, handle);
  require(!entry.object->is_busy(), Code::busy, name_of(kind), ": a call on this handle is running; destroy it afterwards");
  last = std::move(entry.object);
  t.free.push_back(static_cast<uint32_t>(&entry - t.entries.data()));
}

int64_t live(Kind kind) {
  check_process(kind);
  Table& t = table(kind);
  const std::lock_guard lock(t.mutex);
  return static_cast<int64_t>(t.entries.size() - t.free.size());
}

}  // namespace st::capi
